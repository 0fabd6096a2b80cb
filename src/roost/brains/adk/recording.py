"""Journal of the model calls of one ADK turn.

A recorded answer takes the place of the model, not of the model call: the ADK asks a `RecordedModel`, which replays the
answer on record or asks the agent's model. Callbacks and plugins run around both in the same way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.flows.llm_flows.base_llm_flow import BaseLlmFlow
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types
from pydantic import PrivateAttr

from roost.brains.adk import tools
from roost.brains.adk.token_usage import spend
from roost.ports import Turn

_STREAMED = {"partial": True}
"""Marks, in a record, that the text of the response after it was streamed before it."""


class Recorder:
    """Model calls of one turn, as steps of its journal."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._expected: dict[int, tuple[LlmRequest, str, Any]] = {}

    def expect(self, agent: str, request: LlmRequest) -> None:
        """Fix the key of a model call before the agent's callbacks change the request.

        What they add (the time, search results) may differ in a repeated turn, where the call must be found again.
        """
        self._expected[id(request)] = request, request.model or agent, _question(agent, request)

    async def answer(
        self, model: BaseLlm, agent: str, request: LlmRequest, stream: bool
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the responses on record, or those of the model.

        Tool calls are yielded when the record is complete: the ADK runs tools before it asks for the next response.
        """
        if id(request) not in self._expected:
            self.expect(agent, request)
        _, name, question = self._expected.pop(id(request))
        tools.put_on_record(self._turn, request)
        held: list[LlmResponse] = []
        async with self._turn.model_call(name, question) as call:
            if call.recorded is not None:
                held = list(_replayed(call.recorded))
            else:
                record = _Record()
                async with aclosing(model.generate_content_async(request, stream=stream)) as responses:
                    async for response in responses:
                        record.add(response)
                        spend(self._turn, response)
                        held.append(response)
                        if not _calls_tools(held[0]):
                            yield held.pop()
                call.response = record.complete() or None
        for response in held:
            yield response


class RecordedModel(BaseLlm):
    """Recording proxy of an agent's model in a turn."""

    _recorder: Recorder = PrivateAttr()
    _origin: BaseLlm = PrivateAttr()
    _agent: str = PrivateAttr()

    @classmethod
    def of(cls, recorder: Recorder, model: BaseLlm, agent: str) -> RecordedModel:
        made = cls(model=model.model)
        made._recorder, made._origin, made._agent = recorder, model, agent
        return made

    def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        return self._recorder.answer(self._origin, self._agent, llm_request, stream)


class Recording(BasePlugin):
    """Plugin that records the model calls of its run."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(name="roost")
        self.recorder = Recorder(turn)


_get_llm = BaseLlmFlow._get_llm


async def _get_recorded_llm(self: BaseLlmFlow, invocation_context: InvocationContext) -> BaseLlm:
    model = await _get_llm(self, invocation_context)
    plugin = invocation_context.plugin_manager.get_plugin("roost")
    agent, live = invocation_context.agent, invocation_context.live_request_queue is not None
    if live or agent is None or not isinstance(plugin, Recording):
        return model
    return RecordedModel.of(plugin.recorder, model, agent.name)


BaseLlmFlow._get_llm = _get_recorded_llm  # type: ignore[method-assign]
"""The one place where the ADK resolves the model of an agent; it has no hook there.

Runs without Roost's plugin get their model as before. Replacing the models of agents instead would miss agents that
are created during the run, and change foreign objects.
"""


class _Record:
    """Responses of one model call, as JSON: of streamed text only what the whole responses do not have."""

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._streamed: dict[bool, str] = {}

    def add(self, response: LlmResponse) -> None:
        """Add a response; it is serialized at once, since callbacks may change it in place."""
        if response.partial:
            for thought, text in _texts(response).items():
                self._streamed[thought] = self._streamed.get(thought, "") + text
            return
        if self._streamed:
            same = self._streamed == _texts(response)
            self._items.append(_STREAMED if same else _dump(self._partial()))
            self._streamed = {}
        self._items.append(_dump(response))

    def complete(self) -> list[Any]:
        if self._streamed:
            self._items.append(_dump(self._partial()))
        return self._items

    def _partial(self) -> LlmResponse:
        return _partial(self._streamed)


def _replayed(items: Sequence[Any]) -> Iterator[LlmResponse]:
    for number, item in enumerate(items):
        if item == _STREAMED:
            yield _partial(_texts(LlmResponse.model_validate(items[number + 1])))
        else:
            yield LlmResponse.model_validate(item)


def _partial(texts: dict[bool, str]) -> LlmResponse:
    parts = [types.Part(text=text, thought=thought or None) for thought, text in texts.items()]
    return LlmResponse(content=types.Content(role="model", parts=parts), partial=True)


def _texts(response: LlmResponse) -> dict[bool, str]:
    """Return thoughts (True) and text (False) of a response."""
    found: dict[bool, str] = {}
    for part in response.content.parts or [] if response.content else []:
        if part.text:
            found[bool(part.thought)] = found.get(bool(part.thought), "") + part.text
    return found


def _dump(response: LlmResponse) -> Any:
    return response.model_dump(mode="json", exclude_none=True)


def _calls_tools(response: LlmResponse) -> bool:
    parts = response.content.parts or [] if response.content else []
    return not response.partial and any(part.function_call for part in parts)


def _question(agent: str, request: LlmRequest) -> Any:
    """Return the request of this turn without ids of tool calls, which differ in a repeated turn."""
    start = 0
    for number, content in enumerate(request.contents):
        if content.role == "user" and not any(part.function_response for part in content.parts or []):
            start = number
    contents = [content.model_dump(mode="json", exclude_none=True) for content in request.contents[start:]]
    for dumped in contents:
        for part in dumped.get("parts", ()):
            for name in ("function_call", "function_response"):
                part.get(name, {}).pop("id", None)
            part.pop("thought_signature", None)
            if data := part.get("inline_data", {}).get("data"):
                part["inline_data"]["data"] = sha256(str(data).encode()).hexdigest()  # files are not recorded again
    return {"agent": agent, "contents": contents}
