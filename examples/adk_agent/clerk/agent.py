"""An agent for `adk`. Its model is scripted and needs no API key."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.tool_context import ToolContext
from google.genai import types

PRICES = {"nails": 3, "rope": 12}


def price(thing: str, tool_context: ToolContext) -> dict[str, int]:
    """Return the price of a thing."""
    tool_context.state["asked"] = [*tool_context.state.get("asked", []), thing]
    return {"price": PRICES[thing]}


class Script(BaseLlm):
    """Scripted model that looks up prices and counts the messages."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        part = (llm_request.contents[-1].parts or [types.Part()])[-1]
        if part.function_response:
            answer = types.Part(text=f"It costs {(part.function_response.response or {}).get('price')}.")
        elif found := re.search("|".join(PRICES), part.text or ""):
            answer = types.Part(function_call=types.FunctionCall(name="price", args={"thing": found[0]}))
        else:
            said = sum(content.role == "user" for content in llm_request.contents)
            answer = types.Part(text=f"I sell {' and '.join(PRICES)}. You have said {said} things.")
        yield LlmResponse(content=types.Content(role="model", parts=[answer]))


root_agent = LlmAgent(name="clerk", model=Script(model="script"), instruction="Sell things.", tools=[price])
