"""The ADK's history of a talk, woven of the talk itself and of what was noted of its turns.

The talk is the truth: what people do not see (an answer that was withdrawn, the first half of a run that was repeated)
is not in here, and what they see is, also what another brain has said. Of turns that this brain has noted there is all
that the ADK knows of them (calls of tools, results, who spoke), of others their words alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from google.adk.events import Event
from google.genai import types
from pydantic import TypeAdapter

from roost.core.diary import Entry
from roost.core.messages import Message, Sender, Status

ABORTED = "INVOCATION_ABORTED"
"""By what the ADK knows that a run was ended from outside."""
UNKNOWN = "The call was interrupted: whether it had an effect is not known."
_MARKS = {
    Status.INTERRUPTED: "[this answer was interrupted here]",
    Status.FAILED: "[this answer failed here]",
}
_EVENTS = TypeAdapter(list[Event])


@dataclass(frozen=True, slots=True)
class Past:
    """What came before a turn, and which of its messages are part of that already."""

    events: list[Event]
    taken: frozenset[int] = frozenset()


def past(
    history: Sequence[Message], new: Sequence[Message], entries: Sequence[Entry], recent: int, author: str
) -> Past:
    """All that came before: of a talk its newest messages, of another lane of an agent what was noted."""
    if not history and not any(entry.seqs for entry in entries):
        return Past([event for entry in entries for event in events_of(entry.content)])
    weaving = _Weaving([*_newest(history, recent), *new], {message.seq for message in new}, entries, author)
    return Past(list(weaving.events()), frozenset(weaving.taken & weaving.afresh))


class _Weaving:
    """Of the messages that are shown, some of them `afresh`, and of those entries that count beside them."""

    def __init__(self, shown: Sequence[Message], afresh: set[int], entries: Sequence[Entry], author: str) -> None:
        self._shown = sorted(shown, key=lambda message: message.seq)
        self._author = author
        self.afresh = afresh
        self._asked = {message.seq for message in shown if message.sender == Sender.USER}
        self._answers: dict[str, list[Message]] = {}
        for message in self._shown:
            if message.sender == Sender.AGENT and message.run_id:
                self._answers.setdefault(message.run_id, []).append(message)
        counted = [entry for entry in entries if self._counts(entry)]
        if afresh <= _taken(counted):  # all of it was taken in before, and is to be answered anew
            counted = [entry for entry in counted if not afresh & set(entry.seqs)]
        self._counted = {entry.run_id: entry for entry in counted}
        self.taken = _taken(counted)

    def events(self) -> Iterator[Event]:
        first = {entry.seqs[0]: entry for entry in self._counted.values()}
        for message in self._shown:
            if (entry := first.get(message.seq)) is not None:
                yield from events_of(entry.content)
                yield from _rest(entry, self._answers.get(entry.run_id, ()), self._author)
            elif self._stands_alone(message):
                yield _said(message, "user" if message.sender == Sender.USER else self._author)

    def _counts(self, entry: Entry) -> bool:
        """Whether people still see what it is about: all that it took in, and what was said, if anything was."""
        seen = bool(entry.seqs) and self._asked.issuperset(entry.seqs)
        return seen and (entry.run_id in self._answers or not any(texts(events_of(entry.content))))

    def _stands_alone(self, message: Message) -> bool:
        """Whether it is in no entry, and its words are to be shown."""
        if message.sender == Sender.USER:
            return message.seq not in self.taken and message.seq not in self.afresh
        return bool(message.content) and message.run_id not in self._counted and not self._is_half(message)

    def _is_half(self, message: Message) -> bool:
        """Whether its run was repeated: what that has taken in was said before this."""
        if message.status is not Status.INTERRUPTED:
            return False
        later = (entry.seqs[0] for entry in self._counted.values() if entry.run_id > (message.run_id or ""))
        return any(seq < message.seq for seq in (*self.afresh, *later))


def _taken(entries: Iterable[Entry]) -> set[int]:
    return {seq for entry in entries for seq in entry.seqs}


def _newest(history: Sequence[Message], recent: int) -> list[Message]:
    """From half of `recent` to all of it. It seldom begins elsewhere, so that what models cache is of use."""
    if not history:
        return []
    block = max(1, recent // 2)
    start = (history[-1].seq // block - 1) * block
    found = []
    for message in reversed(history):
        if message.seq <= start:
            break
        found.append(message)
    return found[::-1]


@lru_cache(maxsize=1024)
def events_of(content: str) -> tuple[Event, ...]:
    """What was noted of a turn; calls that were cut off have a result that says so."""
    events = _EVENTS.validate_json(content)
    return (*events, *_closings(events))


def _closings(events: Sequence[Event]) -> Iterable[Event]:
    answered = {response.id for event in events for response in event.get_function_responses()}
    for event in events:
        waiting = event.long_running_tool_ids or set()  # these are answered later, by whoever can
        calls = [c for c in event.get_function_calls() if c.id not in answered and c.id not in waiting]
        if calls:
            parts = [
                types.Part(function_response=types.FunctionResponse(id=c.id, name=c.name, response={"error": UNKNOWN}))
                for c in calls
            ]
            yield Event(
                invocation_id=event.invocation_id, author=event.author, branch=event.branch,
                isolation_scope=event.isolation_scope, content=types.Content(role="user", parts=parts),
                error_code=ABORTED, error_message=UNKNOWN, timestamp=event.timestamp,
            )  # fmt: skip


def _rest(entry: Entry, answers: Sequence[Message], author: str) -> list[Event]:
    """What was said of an answer that was cut off, and is in no event: the ADK keeps whole ones only."""
    if not answers or answers[-1].status is Status.COMPLETE:
        return []
    left = "\n".join(m.content for m in answers)
    noted = events_of(entry.content)
    for text in texts(noted):
        left = left.lstrip("\n").removeprefix(text.strip("\n"))
    speakers = [event.author for event in noted if event.author != "user"]
    return [_said(answers[-1], speakers[-1] if speakers else author, left.strip("\n"))]


def texts(events: Iterable[Event]) -> Iterable[str]:
    """What was said to people, event by event."""
    for event in events:
        if event.author != "user" and (text := text_of(event)):
            yield text


def text_of(event: Event) -> str:
    parts = event.content.parts or [] if event.content else []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _said(message: Message, author: str, text: str | None = None) -> Event:
    mark = _MARKS.get(message.status)
    said = message.content if text is None else text
    parts = [types.Part(text=one) for one in (said, mark) if one]
    return Event(
        invocation_id=message.run_id or f"message-{message.seq}", author=author, timestamp=message.created.timestamp(),
        content=types.Content(role="user" if author == "user" else "model", parts=parts),
        interrupted=True if message.status is Status.INTERRUPTED else None,
    )  # fmt: skip
