"""Agents of the ADK with a model that needs no network: it follows what the person says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

seen: list[list[str]] = []
"""Contents that the model was shown, call by call: each as `role: text`."""
spoke: list[str] = []
"""Agents that asked, call by call."""
told: list[tuple[str, float | None]] = []
"""Instructions and temperature, call by call."""


def shown(content: types.Content) -> str:
    said = []
    for part in content.parts or []:
        if part.function_call:
            said.append(f"call {part.function_call.name}")
        elif part.function_response:
            said.append(f"result {part.function_response.response}")
        elif part.text:
            said.append(part.text)
    return f"{content.role}: {' | '.join(said)}"


class Scripted(BaseLlm):
    """Says back what was said, word by word. `wait` and it waits in the middle; `call NAME` and it calls that tool."""

    model: str = "scripted"
    usage: Any = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        seen.append([shown(content) for content in llm_request.contents])
        instruction = str(llm_request.config.system_instruction)
        told.append((instruction, llm_request.config.temperature))
        spoke.extend(re.findall(r'internal name is "(\w+)"', instruction)[:1])
        last = llm_request.contents[-1]
        part = (last.parts or [types.Part(text="")])[-1]
        if part.function_response:
            result = part.function_response.response or {}
            yield said(f"the tool says {next(iter(result.values()), None)}", usage=self.usage)
            return
        text = part.text or ""
        if found := re.match(r"(?:(.*) then )?call (\w+)(?: (.*))?", text):
            if found[1]:
                yield said(found[1], partial=True)
            parts = [types.Part(text=found[1])] if found[1] else []
            args = dict(pair.split("=") for pair in (found[3] or "").split() if "=" in pair)
            args = args or ({"text": found[3]} if found[3] else {})
            call = types.Part(function_call=types.FunctionCall(name=found[2], args=args))
            yield LlmResponse(content=types.Content(role="model", parts=[*parts, call]), usage_metadata=self.usage)
            return
        answer = f"you said {text}"
        for word in re.findall(r"\S+\s*", answer):
            yield said(word, partial=True)
            if word.strip() == "wait":
                await asyncio.sleep(60)
            if word.strip() == "break":
                raise ConnectionError("the model is gone")
        yield said(answer, usage=self.usage)


class Failing(BaseLlm):
    """Raises the error, or answers with it."""

    model: str = "failing"
    error: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        if isinstance(self.error, Exception):
            raise self.error
        yield self.error


def said(text: str, partial: bool | None = None, usage: Any = None) -> LlmResponse:
    content = types.Content(role="model", parts=[types.Part(text=text)])
    return LlmResponse(content=content, partial=partial, usage_metadata=usage)


async def slow(text: str = "") -> str:
    """A tool that takes long."""
    await asyncio.sleep(60)
    return "too late"


async def quick(text: str = "") -> str:
    """A tool."""
    return f"quick {text}"


def agent(*tools: Any, name: str = "helper", **more: Any) -> LlmAgent:
    model = more.pop("model", None) or Scripted()
    return LlmAgent(name=name, model=model, instruction="Help.", tools=list(tools or (slow, quick)), **more)


root_agent = agent()
counted_agent = agent(
    model=Scripted(usage=types.GenerateContentResponseUsageMetadata(prompt_token_count=5, candidates_token_count=2))
)
