"""The brain `adk` on the bench: an agent whose model does what a test tells it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import errors, types
from pydantic import Field

import roost
from roost.brains.adk import Adk
from roost.testing.provider import Act, Call, Cut, Think, Wait
from tests.brains_for_tests import until
from tests.contracts.rigs import Rig

FAILURES: Mapping[str, Exception] = {
    "provider": errors.ServerError(503, {"error": {"message": "overloaded"}}),
    "rate_limit": errors.ClientError(429, {"error": {"message": "quota"}}),
    "bad_key": errors.ClientError(400, {"error": {"message": "API key not valid"}}),
    "too_long": errors.ClientError(400, {"error": {"message": "the input token count exceeds the maximum"}}),
    "model": errors.ClientError(404, {"error": {"message": "no such model"}}),
}


class Played(BaseLlm):
    newest: ClassVar[Any] = None
    """For an agent in a file."""
    model: str = "played"
    plays: deque[tuple[Act, ...]] = Field(default_factory=deque)
    asked: list[str] = Field(default_factory=list)
    offered: list[str] = Field(default_factory=list)
    failure: Any = None

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.append("\n".join(content.model_dump_json(exclude_none=True) for content in llm_request.contents))
        self.offered = self.offered or [*llm_request.tools_dict]
        if self.failure is not None:
            raise self.failure
        whole: list[types.Part] = []
        for act in self.plays.popleft() if self.plays else ("ok",):
            if isinstance(act, Wait):
                await until(act.until)
            elif isinstance(act, Cut):
                raise ConnectionError("cut off")
            elif isinstance(act, Call):
                whole.append(types.Part(function_call=types.FunctionCall(name=act.tool, args=arguments_of(act))))
            else:
                part = types.Part(text=act.text, thought=True) if isinstance(act, Think) else types.Part(text=str(act))
                whole.append(part)
                yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
        yield LlmResponse(content=types.Content(role="model", parts=whole))


def arguments_of(act: Call) -> dict[str, Any]:
    assert isinstance(act.arguments, dict)
    return act.arguments


class AdkRig(Rig):
    without = frozenset({"retry"})  # the ADK's models try again by themselves

    def __init__(self, stack: ExitStack) -> None:
        super().__init__(stack)
        self._model = Played()

    profile = roost.Profile("adk", "adk-agent")

    def brains(self) -> Mapping[str, roost.Brain]:
        return {"adk-agent": Adk(LlmAgent(name="rig", model=self._model))}

    def set_up(self, folder: Path) -> str:
        (folder / "house_clerk.py").write_text(
            "from google.adk.agents import LlmAgent\n"
            "from tests.contracts.adk_rig import Played\n\n"
            "root_agent = LlmAgent(name='clerk', model=Played.newest)\n"
        )
        Played.newest = self._model
        self.stack.callback(sys.modules.pop, "house_clerk", None)
        return 'brain = "adk"\nagent = "house_clerk:root_agent"'

    @property
    def offered(self) -> list[str]:
        return self._model.offered

    def play(self, *acts: Act) -> None:
        self._model.plays.append(acts)

    def fail(self, fault: str) -> None:
        self._model.failure = FAILURES[fault]

    @property
    def asked(self) -> list[str]:
        return self._model.asked
