"""The brain `llm`: any model that pydantic-ai knows, asked step by step until it has answered.

It is asked again when it has called tools, when the person has said something meanwhile (`steer`), and when it had
to stop in the middle. A provider that fails before anything was said is tried again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters

from roost.brains.llm import context
from roost.brains.llm.dialogue import Dialogue, summing
from roost.brains.llm.providers import opened, settings_of, window_of
from roost.brains.llm.troubles import LONGEST_WAIT, RETRIED, TROUBLES, sorted_out, wait_of
from roost.core.faults import Fault
from roost.core.notes import Channel
from roost.core.usage import Usage
from roost.errors import BrainFailed
from roost.ports import Chunk, Turn

Piece = str | Chunk
TRIES = 3
TELLING = 2.0
"""Seconds; who waits longer for the next try is told so."""
GO_ON = "Go on exactly where you stopped, and repeat nothing."
NOTHING_ELSE = ModelRequestParameters()


async def llm(turn: Turn) -> AsyncGenerator[Piece]:
    async with opened(turn.profile) as model, aclosing(Answering(turn, model).answer()) as pieces:
        async for piece in pieces:
            yield piece


class Answering:
    """One run: a model, what it is shown, and how it gets to its answer."""

    def __init__(self, turn: Turn, model: Model) -> None:
        self._turn = turn
        self._model = model
        self._window = window_of(turn.profile)
        self._view = context.view(turn.history)
        self._dialogue = Dialogue(turn.profile.instructions)
        self._response = ModelResponse([])
        self._gap = ""
        """What parts the words of one step from those of the step before."""

    async def answer(self) -> AsyncGenerator[Piece]:
        async for piece in self._prepare():
            yield piece
        for _ in range(self._turn.profile.steps):
            async with aclosing(self._step()) as pieces:
                async for piece in pieces:
                    yield piece
            if not self._goes_on():
                return
        raise BrainFailed(f"it was asked {self._turn.profile.steps} times", kind=Fault.STEPS)

    # --- what it is shown ------------------------------------------------------------------------

    async def _prepare(self) -> AsyncGenerator[Piece]:
        """Show it the talk; if that is too much for it, have it sum up the older part first."""
        turn = self._turn
        new = [context.prompt(turn, message) for message in turn.messages]
        used = sum(map(context.tokens, new)) + context.tokens(turn.profile.instructions or "")
        if self._view.tokens + used > self._window * context.FULL:
            async for piece in self._shorten():
                yield piece
        self._dialogue = Dialogue(turn.profile.instructions)
        self._dialogue.show(self._view)
        for text in new:
            self._dialogue.ask(text)

    async def _shorten(self) -> AsyncGenerator[Piece]:
        older, kept = context.parted(self._view, self._window)
        if not older:
            return
        summary, covered = self._view.summary, older[-1].seq
        for portion in context.portions(older, self._window):
            said = []
            async with aclosing(self._ask(summing(summary, portion, self._window), NOTHING_ELSE)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, str):
                        said.append(piece)
            summary = "".join(said).strip()
        self._view = context.View(summary, covered, kept, context.tokens(summary) + sum(map(context.tokens_of, kept)))
        yield Chunk(context.note(summary, covered), Channel.SUMMARY)

    # --- one step --------------------------------------------------------------------------------

    async def _step(self) -> AsyncGenerator[Piece]:
        """Ask, and say what comes; if it was too much after all, with less of what was before."""
        try:
            async with aclosing(self._ask(self._dialogue.messages, NOTHING_ELSE)) as pieces:
                async for piece in pieces:
                    if self._gap and isinstance(piece, str):
                        piece, self._gap = self._gap + piece, ""
                    yield piece
        except BrainFailed as error:
            if error.kind is not Fault.TOO_LONG or self._response.parts or not self._view.messages:
                raise
            self._window = min(self._window, int(self._view.tokens / context.FULL) + 1) // 2
            async for chunk in self._prepare():
                yield chunk
            async with aclosing(self._ask(self._dialogue.messages, NOTHING_ELSE)) as pieces:
                async for piece in pieces:
                    yield piece

    def _goes_on(self) -> bool:
        """Whether there is more to ask, which is then part of the dialogue."""
        response = self._response
        self._dialogue.messages.append(response)
        steered = self._turn.steered()
        for message in steered:
            self._dialogue.ask(message.content)
        self._gap = "" if steered or response.finish_reason == "length" else "\n\n"
        if not steered and response.finish_reason == "length":
            self._dialogue.ask(GO_ON)
            return True
        return bool(steered)

    # --- asking ----------------------------------------------------------------------------------

    async def _ask(self, messages: list[ModelMessage], how: ModelRequestParameters) -> AsyncGenerator[Piece]:
        """What the model says, piece by piece; tried again while nothing was said."""
        for tries in range(TRIES):
            said = False
            try:
                async with aclosing(self._listen(messages, how)) as pieces:
                    async for piece in pieces:
                        said = True
                        yield piece
                self._check()
            except TROUBLES as error:
                trouble, wait = sorted_out(error, self._turn.profile), wait_of(error)
                if said or trouble.kind not in RETRIED or tries + 1 == TRIES or wait > LONGEST_WAIT:
                    raise trouble from None  # what the provider said may hold what nobody should read
            else:
                return
            if wait > TELLING:
                yield Chunk(f"The provider asks to wait {wait:.0f} seconds. ", Channel.COMMENTARY)
            await self._turn.pause(tries, at_least=wait)

    async def _listen(self, messages: list[ModelMessage], how: ModelRequestParameters) -> AsyncGenerator[Piece]:
        settings = settings_of(self._turn.profile, self._turn.allowance())
        self._response = ModelResponse([])
        async with model_request_stream(
            self._model, messages, model_settings=settings, model_request_parameters=how
        ) as stream:
            try:
                async for event in stream:
                    if isinstance(event, PartDeltaEvent):
                        if isinstance(event.delta, TextPartDelta):
                            yield event.delta.content_delta
                        elif isinstance(event.delta, ThinkingPartDelta) and event.delta.content_delta:
                            yield Chunk(event.delta.content_delta, Channel.THINKING)
                    elif isinstance(event, PartStartEvent):
                        if isinstance(event.part, TextPart) and event.part.content:
                            yield event.part.content
                        elif isinstance(event.part, ThinkingPart) and event.part.content:
                            yield Chunk(event.part.content, Channel.THINKING)
            finally:
                self._response = stream.get()
                self._turn.spend(self._usage(self._response))

    def _check(self) -> None:
        """Raises if what came is no whole answer, though the provider took it for one."""
        reason, parts = self._response.finish_reason, self._response.parts
        if reason == "content_filter":
            raise BrainFailed("the provider's filter ended the answer", kind=Fault.REFUSED)
        if reason is None or self._response.state == "incomplete":
            raise ConnectionError("the answer broke off")
        if not any(not isinstance(part, ThinkingPart) for part in parts):
            raise ConnectionError("the answer is empty")

    def _usage(self, response: ModelResponse) -> Usage:
        used = response.usage
        return Usage(used.input_tokens, used.output_tokens, self._cost(response), self._turn.profile.model or "")

    def _cost(self, response: ModelResponse) -> float | None:
        """Of models at a URL of one's own nobody knows what they cost."""
        if self._turn.profile.base_url or not response.usage.has_values():
            return None
        try:
            return float(response.cost().total_price)
        except (LookupError, ValueError, AssertionError):
            return None
