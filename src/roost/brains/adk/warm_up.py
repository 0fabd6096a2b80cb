"""Warm-up: the ADK imports many modules in its first turn, which would block a loop for seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import cache

from google.adk.agents import LlmAgent
from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types


class _Understudy(BaseLlm):
    """Fake model that calls the only tool, and then answers."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        part = (llm_request.contents[-1].parts or [types.Part()])[-1]
        if part.function_response:
            answer = types.Part(text="done")
        else:
            answer = types.Part(function_call=types.FunctionCall(name="_nothing", args={}))
        yield LlmResponse(content=types.Content(role="model", parts=[answer]))


@cache
def warm_up() -> None:
    """Run a turn once on a separate loop; do nothing if a loop is running on this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(_play())


async def _play() -> None:
    understudy = _Understudy(model="understudy")
    agent = LlmAgent(name="rehearsal", model=understudy, tools=[_nothing])
    sessions = InMemorySessionService()
    await sessions.create_session(app_name="rehearsal", user_id="nobody", session_id="rehearsal")
    runner = Runner(app_name="rehearsal", agent=agent, session_service=sessions)
    said = types.Content(role="user", parts=[types.Part(text="go")])
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    async for _ in runner.run_async(user_id="nobody", session_id="rehearsal", new_message=said, run_config=config):
        pass


async def _nothing() -> str:
    """Do nothing."""
    return "nothing"
