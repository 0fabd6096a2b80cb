"""A dialogue with a chat model, in no library's words: what was said to it, what it said, called and was given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from roost.brains.chat import context
from roost.brains.chat.context import View
from roost.core.messages import Message, Sender

SUMMED_UP = "[What was said before, in short]\n"
LEFT_OUT = "[left out to make room: {length:,} characters]"


@dataclass(frozen=True, slots=True)
class Said:
    """To the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    tool: str
    """By the name that it has for models."""
    arguments: Any
    """A JSON object, or what the model gave in place of one."""
    call_id: str


@dataclass(frozen=True, slots=True)
class Answer:
    """By the model."""

    text: str
    calls: tuple[Called, ...] = ()
    was_cut: bool = False
    """Whether it had to stop in the middle."""
    tokens: int = 0
    """Of it and of all before it, if that is known."""
    own: Any = None
    """The same in the words of the model's library."""


@dataclass(frozen=True, slots=True)
class Returned:
    call: Called
    text: str


Entry = Said | Answer | Returned


class Dialogue:
    """Grows by what is said and done."""

    def __init__(self, instructions: str | None = None) -> None:
        self.instructions = instructions
        self.entries: list[Entry] = []

    def show(self, view: View) -> None:
        """All that was said before, or the summary of its older part."""
        if view.summary:
            self.ask(SUMMED_UP + view.summary)
        for message in view.messages:
            if message.sender == Sender.AGENT:
                self._show_answer(message)
            else:
                self.ask(message.content)

    def ask(self, text: str) -> None:
        self.entries.append(Said(text))

    def _show_answer(self, message: Message) -> None:
        acts = context.acts(message)
        if acts:  # the ids that a model gave may come again
            calls = tuple(
                Called(wired(act.tool), _object(act.arguments), f"m{message.seq}_{at}") for at, act in enumerate(acts)
            )
            self.entries.append(Answer("", calls))
            self.entries += [Returned(call, act.result or "") for call, act in zip(calls, acts, strict=True)]
        if said := context.words(message):
            self.entries.append(Answer(said))

    def make_room(self, tokens: int) -> None:
        """Leave out what tools gave, the oldest first, until so many tokens are free; what came last stays."""
        last = max((at for at, entry in enumerate(self.entries) if not isinstance(entry, Returned)), default=0)
        for at, entry in enumerate(self.entries[:last]):
            if isinstance(entry, Returned) and len(entry.text) > 200 and tokens > 0:
                tokens -= context.tokens(entry.text)
                self.entries[at] = replace(entry, text=LEFT_OUT.format(length=len(entry.text)))


def summing(summary: str, messages: Iterable[Message], window: int) -> Dialogue:
    """The request to sum up what was said, on top of an earlier summary."""
    told = "\n\n".join(context.clipped(context.told(message), window) for message in messages)
    before = f"{SUMMED_UP}{summary}\n\n" if summary else ""
    dialogue = Dialogue()
    dialogue.ask(f"{before}{told}\n\n{context.ASK}")
    return dialogue


def told(entries: Iterable[Entry]) -> list[Any]:
    """What decides the answer, as JSON, and nothing that changes from try to try."""
    return [_told(entry) for entry in entries]


def size(entries: Iterable[Entry]) -> int:
    """About how many tokens they have."""
    return sum(context.tokens(str(one)) for one in told(entries))


def wired(name: str) -> str:
    """A tool's name as models take it: without dots."""
    return name.replace(".", "__")


def _object(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {"given": given}


def _told(entry: Entry) -> Any:
    match entry:
        case Said(text):
            return {"said": text}
        case Answer(text, calls):
            return {"answered": text, "calls": [[call.tool, call.arguments] for call in calls]}
        case Returned(call, text):
            return {"returned": text, "tool": call.tool}
