"""The brain `llm`: any model that pydantic-ai knows, asked step by step until it has answered.

It is asked again when it has called tools, when the person has said something meanwhile (`steer`), and when it had
to stop in the middle. A provider that fails before anything was said is tried again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import Any

from pydantic import TypeAdapter
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

from roost.brains.attending import attending
from roost.brains.llm import context
from roost.brains.llm.dialogue import Dialogue, summing, told
from roost.brains.llm.hands import Hands
from roost.brains.llm.lines import Lines
from roost.brains.llm.providers import prepare, settings_of, window_of
from roost.brains.llm.troubles import LONGEST_WAIT, RETRIED, TROUBLES, sorted_out, wait_of
from roost.core.faults import Fault
from roost.core.notes import Channel
from roost.core.usage import Usage
from roost.errors import BrainFailed
from roost.ports import Chunk, Profile, Turn

Piece = str | Chunk
TRIES = 3
TELLING = 2.0
"""Seconds; who waits longer for the next try is told so."""
GO_ON = "Go on exactly where you stopped, and repeat nothing."
NOTHING_ELSE = ModelRequestParameters()
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
        async with AsyncExitStack() as stack, aclosing(Answering(turn, self._lines, stack).answer()) as pieces:
            async for piece in pieces:
                yield piece


class Answering:
    """One run: a model, what it is shown, and how it gets to its answer."""

    def __init__(self, turn: Turn, lines: Lines, stack: AsyncExitStack) -> None:
        self._turn = turn
        self._lines = lines
        self._stack = stack
        self._model: Model | None = None
        self._window = window_of(turn.profile)
        self._view = context.view(turn.history)
        self._dialogue = Dialogue(turn.profile.instructions)
        self._prepared = 0
        """How much of the dialogue was there before this run."""
        self._response = ModelResponse([])
        self._hands = Hands(turn)
        self._spoken = False
        """Whether the message being written has words already."""
        self._gap = ""
        """What parts the words of one step from those of the step before."""

    async def answer(self) -> AsyncGenerator[Piece]:
        async for piece in self._prepare():
            yield piece
        for _ in range(self._turn.profile.steps):
            async with aclosing(self._step()) as pieces:
                async for piece in pieces:
                    yield piece
            async with aclosing(self._hands.act(self._response)) as notes:
                async for note in notes:
                    yield note
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
        self._prepared = len(self._dialogue.messages)

    async def _shorten(self) -> AsyncGenerator[Piece]:
        older, kept = context.parted(self._view, self._window)
        if not older:
            return
        summary, covered = self._view.summary, older[-1].seq
        for portion in context.portions(older, self._window):
            said = []
            request = summing(summary, portion, self._window)
            async with aclosing(self._ask(request, NOTHING_ELSE, {"sum up": told(request)})) as pieces:
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
            async with aclosing(self._ask_on()) as pieces:
                async for piece in pieces:
                    if isinstance(piece, str):
                        piece, self._gap, self._spoken = self._gap + piece, "", True
                    yield piece
        except BrainFailed as error:
            if error.kind is not Fault.TOO_LONG or self._response.parts or not self._view.messages:
                raise
            self._window = min(self._window, int(self._view.tokens / context.FULL) + 1) // 2
            async for chunk in self._prepare():
                yield chunk
            async with aclosing(self._ask_on()) as pieces:
                async for piece in pieces:
                    yield piece

    def _ask_on(self) -> AsyncGenerator[Piece]:
        """It is found again by what this run is about: what was before it may have grown by an answer cut off."""
        new = [message.content for message in self._turn.messages]
        since = told(self._dialogue.messages[self._prepared :])
        return self._ask(self._dialogue.messages, self._hands.offered, {"new": new, "since": since})

    def _goes_on(self) -> bool:
        """Whether there is more to ask, which is then part of the dialogue."""
        response = self._response
        self._dialogue.messages.append(response)
        if self._hands.results:
            self._dialogue.request(self._hands.results)
            used = response.usage.total_tokens + sum(context.tokens(str(part.content)) for part in self._hands.results)
            self._dialogue.make_room(used - int(self._window * context.FULL))
        steered = self._turn.steered()
        for message in steered:
            self._dialogue.ask(message.content)
        self._spoken = self._spoken and not steered
        self._gap = "\n\n" if self._spoken and response.finish_reason != "length" else ""
        if response.finish_reason == "length" and not steered and not self._hands.results:
            self._dialogue.ask(GO_ON)
            return True
        return bool(steered or self._hands.results)

    # --- asking ----------------------------------------------------------------------------------

    async def _ask(
        self, messages: list[ModelMessage], how: ModelRequestParameters, about: Any
    ) -> AsyncGenerator[Piece]:  # fmt: skip
        """What the model says, piece by piece; tried again while nothing was said."""
        for tries in range(TRIES):
            said = False
            try:
                async with aclosing(self._listen(messages, how, about)) as pieces:
                    async for piece in pieces:
                        said = True
                        yield piece
            except TROUBLES as error:
                trouble, wait = sorted_out(error, self._turn.profile), wait_of(error)
                if said or trouble.kind not in RETRIED or tries + 1 == TRIES or wait > LONGEST_WAIT:
                    raise trouble from None  # what the provider said may hold what nobody should read
            else:
                return
            if wait > TELLING:
                yield Chunk(f"The provider asks to wait {wait:.0f} seconds. ", Channel.COMMENTARY)
            await self._turn.pause(tries, at_least=wait)

    async def _listen(
        self, messages: list[ModelMessage], how: ModelRequestParameters, about: Any
    ) -> AsyncGenerator[Piece]:  # fmt: skip
        """As a step on record: what was answered before the program ended is not asked again."""
        settings = settings_of(self._turn.profile, self._turn.allowance())
        self._response = ModelResponse([])
        async with self._turn.model_call(self._turn.profile.model or "", about) as call:
            if call.recorded is not None:
                self._response = _RESPONSE.validate_python(call.recorded)
                for part in self._response.parts:
                    if piece := _said(part):
                        yield piece
                self._turn.spend(self._usage(self._response))
                return
            async with model_request_stream(
                await self._opened(), messages, model_settings=settings, model_request_parameters=how
            ) as stream:
                try:
                    async for event in stream:
                        if isinstance(event, PartDeltaEvent | PartStartEvent) and (piece := _said(event)):
                            yield piece
                except (AttributeError, LookupError, TypeError) as error:  # what the library did not expect
                    raise ConnectionError(f"the answer cannot be read: {type(error).__name__}: {error}") from None
                finally:
                    self._response = stream.get()
                    self._turn.spend(self._usage(self._response))
            self._check()
            call.response = _RESPONSE.dump_python(self._response, mode="json")

    async def _opened(self) -> Model:
        """When it is first asked; a run that is all on record needs nobody."""
        if self._model is None:
            self._model = await self._stack.enter_async_context(self._lines.opened(self._turn.profile))
        return self._model

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
