"""What the agent's models are asked, as steps of the turn: a repeated turn is given the answers on record."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from roost.ports import ModelCall, Turn


@dataclass(slots=True)
class _Question:
    manager: AbstractAsyncContextManager[ModelCall]
    call: ModelCall
    answers: list[Any] = field(default_factory=list)


class Questions:
    """Of one turn. A question is over when something follows it: the ADK does not say when a model has ended."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._open: dict[str, _Question] = {}

    async def ask(self, agent: str, request: LlmRequest) -> LlmResponse | None:
        """The answer on record, if there is one."""
        await self.answered(agent)
        manager = self._turn.model_call(request.model or agent, _asked(agent, request))
        call = await manager.__aenter__()
        if call.recorded is None:
            self._open[agent] = _Question(manager, call)
            return None
        await manager.__aexit__(None, None, None)
        return _joined([LlmResponse.model_validate(one) for one in call.recorded])

    def hear(self, agent: str, response: LlmResponse) -> None:
        if not response.partial and (question := self._open.get(agent)) is not None:
            question.answers.append(response.model_dump(mode="json", exclude_none=True))

    async def answered(self, agent: str | None = None) -> None:
        """Whatever this agent, or any, has asked has its answer."""
        for name in [agent] if agent is not None else list(self._open):
            if (question := self._open.pop(name, None)) is not None:
                question.call.response = question.answers or None
                await question.manager.__aexit__(None, None, None)

    async def failed(self, error: BaseException) -> None:
        while self._open:
            _, question = self._open.popitem()
            with suppress(BaseException):  # it raises what it is given
                await question.manager.__aexit__(type(error), error, error.__traceback__)


def _asked(agent: str, request: LlmRequest) -> Any:
    """What is asked in this turn. Ids of calls are left out: they are others each time."""
    start = 0
    for number, content in enumerate(request.contents):
        if content.role == "user" and not any(part.function_response for part in content.parts or []):
            start = number
    told = [content.model_dump(mode="json", exclude_none=True) for content in request.contents[start:]]
    for one in told:
        for part in one.get("parts", ()):
            for name in ("function_call", "function_response"):
                part.get(name, {}).pop("id", None)
            part.pop("thought_signature", None)
    return {"agent": agent, "contents": told}


def _joined(responses: list[LlmResponse]) -> LlmResponse:
    last = responses[-1]
    if len(responses) > 1:
        parts = [part for one in responses if one.content for part in one.content.parts or []]
        last.content = types.Content(role="model", parts=parts)
    return last
