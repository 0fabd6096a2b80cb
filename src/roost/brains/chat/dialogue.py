"""Dialogue with a chat model, independent of libraries: messages, answers, tool calls and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from roost.brains.chat import context
from roost.brains.chat.attachments import AttachmentReader, Image, Shown
from roost.brains.chat.context import HistoryView
from roost.core.talks.messages import Message, Sender
from roost.core.talks.side_channels import results

SUMMED_UP = "[What was said before, in short]\n"
LEFT_OUT = "[left out to make room: {length:,} characters]"


@dataclass(frozen=True, slots=True)
class Utterance:
    """Message to the model."""

    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    tool: str
    """Name of the tool for models."""
    arguments: Any
    """JSON object, or whatever the model wrote instead."""
    call_id: str


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """Answer of the model."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    was_cut: bool = False
    """True if it ended at the token limit."""
    tokens: int = 0
    """Tokens of the answer and everything before it, if known."""
    own: Any = None
    """The same answer as an object of the model's library."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    call: ToolCall
    text: str


Entry = Utterance | ModelAnswer | ToolResult


class Dialogue:
    """Entries of a dialogue, in order."""

    def __init__(self, instructions: str | None = None) -> None:
        self.instructions = instructions
        self.entries: list[Entry] = []
        self._open: dict[str, ToolCall] = {}
        """Calls with which the last answer has ended, and for which the client has the results."""
        self._said = ""
        """Text of that answer."""

    def show(self, view: HistoryView, files: AttachmentReader) -> None:
        """Add the history, or the summary of its older part; `files` has the attachments of its messages."""
        if view.summary:
            self.ask(SUMMED_UP + view.summary)
        for message in view.messages:
            if message.sender == Sender.AGENT:
                self._show_answer(message)
            else:
                self.hear(message.content, files.of(message))

    def hear(self, text: str, shown: Shown | None = None) -> None:
        """Add a message of the user, or the results of the calls with which the last answer has ended."""
        found = results(text) if self._open else {}
        if found and found.keys() == self._open.keys():
            self._close(found)
        else:
            self.ask(text, shown)

    def ask(self, text: str, shown: Shown | None = None) -> None:
        self._close({})
        self.entries.append(Utterance(text) if shown is None else Utterance(shown.after(text), shown.images))

    def _close(self, found: Mapping[str, str]) -> None:
        """Add the open calls with these results; models must not see a call without one."""
        calls, self._open = self._open, {}
        if calls:
            self.entries.append(ModelAnswer(self._said, tuple(calls.values())))
            self.entries += [ToolResult(call, found.get(name, context.CUT_OFF)) for name, call in calls.items()]

    def _show_answer(self, message: Message) -> None:
        self._close({})
        left = [act.call_id for act in context.open_calls(message)]
        acts = context.acts(message)
        calls = [  # a model may reuse its ids
            ToolCall(wired(act.tool), _object(act.arguments), f"m{message.seq}_{at}") for at, act in enumerate(acts)
        ]
        done = [(call, act) for call, act in zip(calls, acts, strict=True) if act.call_id not in left]
        if done:
            self.entries.append(ModelAnswer("", tuple(call for call, _ in done)))
            self.entries += [ToolResult(call, act.result or "") for call, act in done]
        self._said = context.words(message)
        self._open = {act.call_id: call for call, act in zip(calls, acts, strict=True) if act.call_id in left}
        if self._said and not self._open:
            self.entries.append(ModelAnswer(self._said))

    def make_room(self, tokens: int) -> None:
        """Omit tool results, oldest first, until `tokens` are free; the last ones stay."""
        last = max((at for at, entry in enumerate(self.entries) if not isinstance(entry, ToolResult)), default=0)
        for at, entry in enumerate(self.entries[:last]):
            if isinstance(entry, ToolResult) and len(entry.text) > 200 and tokens > 0:
                tokens -= context.tokens(entry.text)
                self.entries[at] = replace(entry, text=LEFT_OUT.format(length=len(entry.text)))


def summing(summary: str, messages: Iterable[Message], window: int) -> Dialogue:
    """Return the request for a summary of the messages, based on an earlier summary."""
    conversation = "\n\n".join(context.clipped(context.as_dialogue_line(message), window) for message in messages)
    before = f"{SUMMED_UP}{summary}\n\n" if summary else ""
    dialogue = Dialogue()
    dialogue.ask(f"{before}{conversation}\n\n{context.ASK}")
    return dialogue


def as_values(entries: Iterable[Entry]) -> list[Any]:
    """Return the entries that determine the answer as JSON, without anything that differs between attempts."""
    return [_as_value(entry) for entry in entries]


def size(entries: Iterable[Entry]) -> int:
    """Estimate the tokens of entries."""
    return sum(context.tokens(str(value)) for value in as_values(entries))


def wired(name: str) -> str:
    """Return the name of a tool for models, without dots."""
    return name.replace(".", "__")


def _object(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {"given": given}


def _as_value(entry: Entry) -> Any:
    match entry:
        case Utterance(text):
            return {"said": text}
        case ModelAnswer(text, calls):
            return {"answered": text, "calls": [[call.tool, call.arguments] for call in calls]}
        case ToolResult(call, text):
            return {"returned": text, "tool": call.tool}
