"""The brain `llm`: any model of a provider that pydantic-ai knows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import models
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.settings import ModelSettings

from roost.brains.attending import attending
from roost.brains.chat.answering import Answering, Piece
from roost.brains.chat.dialogue import Answer, Dialogue
from roost.brains.llm.lines import Lines
from roost.brains.llm.messages import answer_of, messages_of, offered
from roost.brains.llm.providers import prepare, settings_of, window_of
from roost.brains.llm.troubles import TROUBLES, sorted_out
from roost.core.faults import Fault
from roost.core.notes import Channel
from roost.core.usage import Usage
from roost.errors import BrainFailed
from roost.ports import Chunk, Profile, Tool, Turn

_RESPONSE = TypeAdapter(ModelResponse)


class Llm:
    """The brain, for all profiles of this kind."""

    def __init__(self) -> None:
        self._lines = Lines()

    def prepare(self, profile: Profile) -> None:
        """Load all that it takes to ask the model of this profile; it takes long."""
        prepare(profile)

    async def __call__(self, turn: Turn) -> AsyncGenerator[Piece]:
        turn = attending(turn)
        async with AsyncExitStack() as stack:
            model = Provided(turn, self._lines, stack)
            async with aclosing(Answering(turn, model).answer()) as pieces:
                async for piece in pieces:
                    yield piece


class Provided:
    """A provider's model, as one run asks it."""

    takes_tools = True
    sums_up = True

    def __init__(self, turn: Turn, lines: Lines, stack: AsyncExitStack) -> None:
        self._turn = turn
        self._profile = turn.profile
        self._lines = lines
        self._stack = stack
        self._model: models.Model | None = None
        self.name = turn.profile.model or ""
        self.window = window_of(turn.profile)

    async def ask(
        self, dialogue: Dialogue, tools: Sequence[Tool], most: int | None, *, must_call: bool
    ) -> AsyncGenerator[Piece | Answer]:  # fmt: skip
        settings = settings_of(self._profile, most)
        if must_call:
            settings["tool_choice"] = "required"
        try:
            async with aclosing(self._listen(dialogue, tools, settings)) as pieces:
                async for piece in pieces:
                    yield piece
        except TROUBLES as error:
            raise sorted_out(error, self._profile) from None  # what it says may hold what nobody should read

    def recorded(self, answer: Answer) -> Any:
        return _RESPONSE.dump_python(answer.own, mode="json")

    def recalled(self, recorded: Any) -> Iterator[Piece | Answer]:
        response = _RESPONSE.validate_python(recorded)
        for part in response.parts:
            if piece := _said(part):
                yield piece
        self._turn.spend(self._usage(response))
        yield answer_of(response)

    async def _listen(
        self, dialogue: Dialogue, tools: Sequence[Tool], settings: ModelSettings
    ) -> AsyncGenerator[Piece | Answer]:  # fmt: skip
        async with model_request_stream(
            await self._opened(), messages_of(dialogue), model_settings=settings,
            model_request_parameters=offered(tools),
        ) as stream:  # fmt: skip
            try:
                async for event in stream:
                    if isinstance(event, PartDeltaEvent | PartStartEvent) and (piece := _said(event)):
                        yield piece
            except (AttributeError, LookupError, TypeError) as error:  # what the library did not expect
                raise ConnectionError(f"the answer cannot be read: {type(error).__name__}: {error}") from None
            finally:
                response = stream.get()
                self._turn.spend(self._usage(response))
        _check(response)
        yield answer_of(response)

    async def _opened(self) -> models.Model:
        """When it is first asked; a run that is all on record needs nobody."""
        if self._model is None:
            self._model = await self._stack.enter_async_context(self._lines.opened(self._profile))
        return self._model

    def _usage(self, response: ModelResponse) -> Usage:
        used = response.usage
        return Usage(used.input_tokens, used.output_tokens, self._cost(response), self.name)

    def _cost(self, response: ModelResponse) -> float | None:
        """Of models at a URL of one's own nobody knows what they cost."""
        if self._profile.base_url or not response.usage.has_values():
            return None
        try:
            return float(response.cost().total_price)
        except (LookupError, ValueError, AssertionError):
            return None


def _check(response: ModelResponse) -> None:
    """Raises if what came is no whole answer, though the provider took it for one."""
    if response.finish_reason == "content_filter":
        raise BrainFailed("the provider's filter ended the answer", kind=Fault.REFUSED)
    if response.finish_reason is None or response.state == "incomplete":
        raise ConnectionError("the answer broke off")
    if all(isinstance(part, ThinkingPart) for part in response.parts):
        raise ConnectionError("the answer is empty")


def _said(event: object) -> Piece | None:
    """What is to be said of what came."""
    match event:
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text)):
            return Chunk(text, Channel.THINKING) if text else None
        case PartStartEvent(part=part):
            return _said(part)
        case TextPart(content=text):
            return text
        case ThinkingPart(content=text):
            return Chunk(text, Channel.THINKING) if text else None
    return None
