"""Loop that asks a chat model until its answer is complete.

The model is asked again after tool calls, after new messages of the user (`steer`), and after an answer that hit the
token limit. A request that fails before any output is retried.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from roost.brains.chat import context
from roost.brains.chat.attachments import AttachmentReader
from roost.brains.chat.dialogue import Dialogue, ModelAnswer, ToolResult, as_values, size, summing
from roost.brains.chat.tool_calls import ToolCaller
from roost.core.failures.faults import Fault
from roost.core.talks.messages import Sender
from roost.core.talks.side_channels import Channel
from roost.errors import BrainFailed
from roost.ports import Chunk, OfferedTool, Turn

Piece = str | Chunk
TRIES = 3
TELLING = 2.0
"""Seconds; longer waits for the next attempt are shown to the user."""
LONGEST_WAIT = 20.0
"""Longest wait for a provider in seconds; if it asks for more, the run fails and names the time."""
RETRIED = frozenset({Fault.PROVIDER, Fault.RATE_LIMIT})
GO_ON = "Go on exactly where you stopped, and repeat nothing."


class RetryLater(BrainFailed):
    """Failure of a provider that asks to retry after `wait` seconds."""

    wait = 0.0


class ChatModel(Protocol):
    """Model as one run uses it."""

    name: str
    window: int
    """Context window in tokens."""
    takes_tools: bool
    sums_up: bool
    """True if it can write summaries."""

    def ask(
        self, dialogue: Dialogue, tools: Sequence[OfferedTool], most: int | None, *, must_call: bool
    ) -> AsyncGenerator[Piece | ModelAnswer]:
        """Yield the output in pieces, and at the end the whole answer of at most `most` tokens. Raises BrainFailed.

        `must_call`: it must call one of the tools.
        """
        ...

    def recorded(self, answer: ModelAnswer) -> Any:
        """Return an answer as JSON."""
        ...

    def recalled(self, recorded: Any) -> Iterator[Piece | ModelAnswer]:
        """Yield the same as `ask` did when the answer was recorded."""
        ...


class ToolLoop:
    """Loop of one run: a model, its context and its tools."""

    def __init__(self, turn: Turn, model: ChatModel, *, sees: bool = False) -> None:
        self._turn = turn
        self._model = model
        self._window = model.window
        self._view = context.view(turn.history, short=not model.sums_up, most=model.window * context.REACH)
        self._new = [(context.prompt(turn, message.content), message) for message in turn.messages]
        self._files = AttachmentReader(turn, model.window, sees=sees)
        tools = (turn.tools, turn.profile.client_tools) if model.takes_tools else ((), ())
        self._hands = ToolCaller(turn, *tools)
        self._dialogue = Dialogue()
        self._prepared = 0
        """Entries of the dialogue from before this run."""
        self._answer = ModelAnswer("")
        self._spoken = False
        """True if the message being written has text already."""
        self._gap = ""
        """Separator between the texts of two steps."""

    async def answer(self) -> AsyncGenerator[Piece]:
        if self._turn.kind == "talk" and self._turn.tools and not self._model.takes_tools and self._is_first:
            yield Chunk(f"{self._model.name} takes no tools: it answers without them. ", Channel.COMMENTARY)
        async with aclosing(self._prepare()) as pieces:
            async for piece in pieces:
                yield piece
        for _ in range(self._turn.profile.steps):
            async with aclosing(self._step()) as pieces:
                async for piece in pieces:
                    yield piece
            async with aclosing(self._hands.act(self._answer.calls)) as notes:
                async for note in notes:
                    yield note
            if self._hands.is_left_to_client or not await self._continues():
                return
        raise BrainFailed(
            f"the model was called {self._turn.profile.steps} times, which is the limit `steps`", kind=Fault.STEPS
        )

    @property
    def _is_first(self) -> bool:
        return all(message.sender != Sender.AGENT for message in reversed(self._turn.history))

    # --- what it is shown ------------------------------------------------------------------------

    async def _prepare(self) -> AsyncGenerator[Piece]:
        """Build the dialogue; if it exceeds the window, with a summary of the older part or without it."""
        since = self._dialogue.entries[self._prepared :]
        new = [text for text, _ in self._new]
        used = sum(map(context.tokens, [*new, self._turn.profile.instructions or ""])) + size(since)
        used += sum(context.tokens_of_file(one) for _, message in self._new for one in message.attachments)
        used += sum(tool.size for tool in self._hands.tools) // 3
        if self._view.tokens + used > self._window * context.FULL:
            async with aclosing(self._shorten()) as pieces:
                async for piece in pieces:
                    yield piece
        self._dialogue = Dialogue(self._turn.profile.instructions)
        await self._files.load([*self._view.messages, *(message for _, message in self._new)])
        self._dialogue.show(self._view, self._files)
        for text, message in self._new:
            self._dialogue.hear(text, self._files.of(message))
        self._prepared = len(self._dialogue.entries)
        self._dialogue.entries += since

    async def _shorten(self) -> AsyncGenerator[Piece]:
        older, kept = context.parted(self._view, self._window)
        if not older:
            return
        summary, covered = self._view.summary, older[-1].seq
        for portion in context.portions(older, self._window) if self._model.sums_up else ():
            request, said = summing(summary, portion, self._window), ""
            try:
                async with aclosing(self._ask(request, (), {"sum up": as_values(request.entries)})) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, str):
                            said += piece
                        elif piece.channel == Channel.WAITING:
                            yield piece
            except BrainFailed as error:
                if error.kind != Fault.TOO_LONG:
                    raise
            summary = said.strip() or summary
        used = context.tokens(summary) + sum(map(context.tokens_of, kept))
        self._view = context.HistoryView(summary, covered, kept, used)
        yield Chunk(context.note(summary, covered, self._window), Channel.SUMMARY)

    # --- one step --------------------------------------------------------------------------------

    async def _step(self) -> AsyncGenerator[Piece]:
        """Ask the model and yield its output; if the context was too long after all, retry with less history."""
        while True:
            heard = False
            try:
                async with aclosing(self._ask_on()) as pieces:
                    async for piece in pieces:
                        heard = heard or not _is_waiting(piece)
                        if isinstance(piece, str):
                            piece, self._gap, self._spoken = self._gap + piece, "", True
                        yield piece
                return
            except BrainFailed as error:
                if error.kind != Fault.TOO_LONG or heard or not self._view.messages:
                    raise
            self._window = min(self._window, int(self._view.tokens / context.FULL) + 1) // 2
            async with aclosing(self._prepare()) as pieces:
                async for piece in pieces:
                    yield piece

    def _ask_on(self) -> AsyncGenerator[Piece]:
        """Ask with the entries of this run as the record's key: an interrupted answer may have extended the history."""
        new = [message.content for message in self._turn.messages]
        since = as_values(self._dialogue.entries[self._prepared :])
        return self._ask(self._dialogue, self._hands.tools, {"new": new, "since": since})

    def _must_call(self, tools: Sequence[OfferedTool]) -> bool:
        """Return whether a call is required: only until the first one of the turn."""
        since = self._dialogue.entries[self._prepared :]
        required = self._turn.profile.tool_choice == "required"
        return bool(tools) and required and not any(isinstance(entry, ToolResult) for entry in since)

    async def _continues(self) -> bool:
        """Return whether to ask again; add the next entries to the dialogue."""
        answer, results = self._answer, self._hands.results
        self._dialogue.entries += [answer, *results]
        if results:
            used = answer.tokens + size(results)
            self._dialogue.make_room(used - int(self._window * context.FULL))
        steered = self._turn.steered()
        await self._files.load(steered)
        for message in steered:
            self._dialogue.ask(message.content, self._files.of(message))
        self._spoken = self._spoken and not steered
        self._gap = "\n\n" if self._spoken and not answer.was_cut else ""
        if answer.was_cut and not steered and not results:
            self._dialogue.ask(GO_ON)
            return True
        return bool(steered or results)

    # --- asking ----------------------------------------------------------------------------------

    async def _ask(self, dialogue: Dialogue, tools: Sequence[OfferedTool], about: Any) -> AsyncGenerator[Piece]:
        """Yield the output of the model; retry failures before the first output."""
        for tries in range(TRIES):
            said = False
            try:
                async with aclosing(self._listen(dialogue, tools, about)) as pieces:
                    async for piece in pieces:
                        said = said or not _is_waiting(piece)
                        yield piece
                return
            except BrainFailed as error:
                wait = error.wait if isinstance(error, RetryLater) else 0.0
                if said or error.kind not in RETRIED or tries + 1 == TRIES or wait > LONGEST_WAIT:
                    raise
            if wait > TELLING:
                yield Chunk(f"The provider asks to wait {wait:.0f} seconds. ", Channel.COMMENTARY)
            await self._turn.pause(tries, at_least=wait)

    async def _listen(self, dialogue: Dialogue, tools: Sequence[OfferedTool], about: Any) -> AsyncGenerator[Piece]:
        """Ask the model as a recorded step: an answer from before a restart is not requested again."""
        profile, allowed = self._turn.profile, self._turn.allowance()
        most = min((n for n in (profile.max_tokens, allowed) if n is not None), default=None)
        async with self._turn.model_call(self._model.name, about) as call:
            if call.recorded is not None:
                for heard in self._model.recalled(call.recorded):
                    if isinstance(heard, ModelAnswer):
                        self._answer = heard
                    else:
                        yield heard
                return
            async with aclosing(self._model.ask(dialogue, tools, most, must_call=self._must_call(tools))) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ModelAnswer):
                        self._answer = piece
                    else:
                        yield piece
            call.response = self._model.recorded(self._answer)


def _is_waiting(piece: Piece) -> bool:
    return isinstance(piece, Chunk) and piece.channel == Channel.WAITING
