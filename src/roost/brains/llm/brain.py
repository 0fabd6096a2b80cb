"""Brain `llm`: any model of a provider that pydantic-ai supports."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import models
from pydantic_ai.direct import model_request, model_request_stream
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

from roost.brains.chat.dialogue import Dialogue, ModelAnswer
from roost.brains.chat.tool_loop import Piece, ToolLoop
from roost.brains.llm.connection_cache import ConnectionCache
from roost.brains.llm.errors import TROUBLES, classified
from roost.brains.llm.messages import answer_of, messages_of, offered
from roost.brains.llm.non_streaming import WholeReply
from roost.brains.llm.providers import prepare, settings_of, window_of
from roost.brains.meeting_prompt import as_prompt
from roost.core.failures.faults import Fault
from roost.core.limits.usage import Usage
from roost.core.talks.side_channels import Channel
from roost.errors import BrainFailed
from roost.ports import Chunk, OfferedTool, Profile, Turn

_RESPONSE = TypeAdapter(ModelResponse)


class Llm:
    """Brain for all profiles of this kind."""

    def __init__(self) -> None:
        self._lines = ConnectionCache()

    def prepare(self, profile: Profile) -> None:
        """Load the libraries for the model of this profile, which takes long."""
        prepare(profile)

    async def __call__(self, turn: Turn) -> AsyncGenerator[Piece]:
        turn = as_prompt(turn)
        async with AsyncExitStack() as stack:
            model = ProviderModel(turn, self._lines, stack)
            async with aclosing(ToolLoop(turn, model, sees=turn.profile.vision).answer()) as pieces:
                async for piece in pieces:
                    yield piece


class ProviderModel:
    """Model of a provider as one run uses it."""

    takes_tools = True
    sums_up = True

    def __init__(self, turn: Turn, lines: ConnectionCache, stack: AsyncExitStack) -> None:
        self._turn = turn
        self._profile = turn.profile
        self._lines = lines
        self._stack = stack
        self._model: models.Model | None = None
        self.name = turn.profile.model or ""
        self.window = window_of(turn.profile)

    async def ask(
        self, dialogue: Dialogue, tools: Sequence[OfferedTool], most: int | None, *, must_call: bool
    ) -> AsyncGenerator[Piece | ModelAnswer]:
        settings = settings_of(self._profile, most)
        if must_call:
            settings["tool_choice"] = "required"
        try:
            async with aclosing(self._listen(dialogue, tools, settings)) as pieces:
                async for piece in pieces:
                    yield piece
        except TROUBLES as error:
            raise classified(error, self._profile) from None  # the original message may hold secrets

    def recorded(self, answer: ModelAnswer) -> Any:
        return _RESPONSE.dump_python(answer.own, mode="json")

    def recalled(self, recorded: Any) -> Iterator[Piece | ModelAnswer]:
        response = _RESPONSE.validate_python(recorded)
        for part in response.parts:
            if piece := _said(part):
                yield piece
        self._turn.spend(self._usage(response))
        yield answer_of(response)

    async def _listen(
        self, dialogue: Dialogue, tools: Sequence[OfferedTool], settings: ModelSettings
    ) -> AsyncGenerator[Piece | ModelAnswer]:
        """Request a stream; accept an answer in one piece as well."""
        with WholeReply() as reply:
            try:
                async with aclosing(self._stream(dialogue, tools, settings)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except TROUBLES:
                if reply.body is None:
                    raise
            reply.is_replayed = True
            response = await model_request(
                await self._opened(),
                messages_of(dialogue),
                model_settings=settings,
                model_request_parameters=offered(tools),
            )
        self._turn.spend(self._usage(response))
        for part in response.parts:
            if spoken := _said(part):
                yield spoken
        _check(response)
        yield answer_of(response)

    async def _stream(
        self, dialogue: Dialogue, tools: Sequence[OfferedTool], settings: ModelSettings
    ) -> AsyncGenerator[Piece | ModelAnswer]:
        async with model_request_stream(
            await self._opened(),
            messages_of(dialogue),
            model_settings=settings,
            model_request_parameters=offered(tools),
        ) as stream:
            try:
                async for event in stream:
                    if isinstance(event, PartDeltaEvent | PartStartEvent) and (piece := _said(event)):
                        yield piece
            except (AttributeError, LookupError, TypeError) as error:  # unexpected by the library
                raise ConnectionError(f"cannot parse the answer: {type(error).__name__}: {error}") from None
            finally:
                response = stream.get()
                self._turn.spend(self._usage(response))
        _check(response)
        yield answer_of(response)

    async def _opened(self) -> models.Model:
        """Connect at the first request; a run that is replayed from its record needs no connection."""
        if self._model is None:
            self._model = await self._stack.enter_async_context(self._lines.opened(self._profile))
        return self._model

    def _usage(self, response: ModelResponse) -> Usage:
        used = response.usage
        return Usage(used.input_tokens, used.output_tokens, self._cost(response), self.name)

    def _cost(self, response: ModelResponse) -> float | None:
        """Return the price of a response; None for models at a custom URL, whose price is unknown."""
        if self._profile.base_url or not response.usage.has_values():
            return None
        try:
            return float(response.cost().total_price)
        except (LookupError, ValueError, AssertionError):
            return None


def _check(response: ModelResponse) -> None:
    """Raise if the response is not a complete answer, although the provider reported success."""
    if response.finish_reason == "content_filter":
        raise BrainFailed("the provider's filter ended the answer", kind=Fault.REFUSED)
    if response.finish_reason is None or response.state == "incomplete":
        raise ConnectionError("the answer broke off")
    if all(isinstance(part, ThinkingPart) for part in response.parts):
        raise ConnectionError("the answer is empty")


def _said(event: object) -> Piece | None:
    """Return the piece to yield for an event, or None."""
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
