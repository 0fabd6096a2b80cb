"""History of a talk for the ADK, merged from the talk and the recorded events of its turns.

The talk is authoritative: text that users do not see (a withdrawn answer, the first half of a repeated run) is left
out, and text that they see is included, also of other brains. Turns recorded by this brain have all events of the ADK
(tool calls, results, speakers), others only their text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from google.adk.events import Event
from google.genai import types
from pydantic import TypeAdapter

from roost.brains.adk.attachments import references
from roost.core.brain_data.brain_context import ContextEntry
from roost.core.talks.messages import Message, Sender, Status

ABORTED = "INVOCATION_ABORTED"
"""Error code of the ADK for a run that was ended from outside."""
UNKNOWN = "The call was interrupted: whether it had an effect is not known."
_MARKS = {
    Status.INTERRUPTED: "[this answer was interrupted here]",
    Status.FAILED: "[this answer failed here]",
}
_EVENTS = TypeAdapter(list[Event])


@dataclass(frozen=True, slots=True)
class AdkHistory:
    """Events before a turn, and the messages of the turn that they already contain."""

    events: list[Event]
    taken: frozenset[int] = frozenset()


def past(
    history: Sequence[Message], new: Sequence[Message], entries: Sequence[ContextEntry], recent: int, author: str
) -> AdkHistory:
    """Return the history: the newest messages of a talk, or the recorded events of another lane."""
    if not history and not any(entry.seqs for entry in entries):
        return AdkHistory([event for entry in entries for event in events_of(entry.content)])
    weaving = _Weaving([*_newest(history, recent), *new], {message.seq for message in new}, entries, author)
    return AdkHistory(list(weaving.events()), frozenset(weaving.taken & weaving.unanswered))


class _Weaving:
    """Merge of the shown messages, some of them `afresh`, with the recorded entries that still count."""

    def __init__(
        self, shown: Sequence[Message], unanswered: set[int], entries: Sequence[ContextEntry], author: str
    ) -> None:
        self._shown = sorted(shown, key=lambda message: message.seq)
        self._author = author
        self.unanswered = unanswered
        self._asked = {message.seq for message in shown if message.sender == Sender.USER}
        self._answers: dict[str, list[Message]] = {}
        for message in self._shown:
            if message.sender == Sender.AGENT and message.run_id:
                self._answers.setdefault(message.run_id, []).append(message)
        counted = [entry for entry in entries if self._counts(entry)]
        if unanswered <= _taken(counted):  # all were processed before, and need a new answer
            counted = [entry for entry in counted if not unanswered & set(entry.seqs)]
        self._counted = {entry.run_id: entry for entry in counted}
        self.taken = _taken(counted)

    def events(self) -> Iterator[Event]:
        first = {entry.seqs[0]: entry for entry in self._counted.values()}
        for message in self._shown:
            if (entry := first.get(message.seq)) is not None:
                answers = self._answers.get(entry.run_id, ())
                yield from _heard(events_of(entry.content), answers)
                yield from _rest(entry, answers, self._author)
            elif self._stands_alone(message):
                yield _said(message, "user" if message.sender == Sender.USER else self._author)

    def _counts(self, entry: ContextEntry) -> bool:
        """Return whether users still see the messages of an entry and its answer, if there was one."""
        seen = bool(entry.seqs) and self._asked.issuperset(entry.seqs)
        return seen and (entry.run_id in self._answers or not any(texts(events_of(entry.content))))

    def _stands_alone(self, message: Message) -> bool:
        """Return whether a message is in no entry, so that its text is shown."""
        if message.sender == Sender.USER:
            return message.seq not in self.taken and message.seq not in self.unanswered
        return bool(message.content) and message.run_id not in self._counted and not self._is_half(message)

    def _is_half(self, message: Message) -> bool:
        """Return whether a message is the first half of a repeated run."""
        if message.status is not Status.INTERRUPTED:
            return False
        later = (entry.seqs[0] for entry in self._counted.values() if entry.run_id > (message.run_id or ""))
        return any(seq < message.seq for seq in (*self.unanswered, *later))


def _taken(entries: Iterable[ContextEntry]) -> set[int]:
    return {seq for entry in entries for seq in entry.seqs}


def start_of(history: Sequence[Message], recent: int) -> int:
    """Return the number of the last message that is not shown; it moves in steps, so that prompt caches stay useful.

    Between half of `recent` and all of it are shown.
    """
    block = max(1, recent // 2)
    return (history[-1].seq // block - 1) * block if history else 0


def _newest(history: Sequence[Message], recent: int) -> list[Message]:
    start, found = start_of(history, recent), []
    for message in reversed(history):
        if message.seq <= start:
            break
        found.append(message)
    return found[::-1]


@lru_cache(maxsize=1024)
def events_of(content: str) -> tuple[Event, ...]:
    """Return the recorded events of a turn; interrupted calls get a result that says so."""
    events = _EVENTS.validate_json(content)
    return (*events, *_closings(events))


def _closings(events: Sequence[Event]) -> Iterable[Event]:
    answered = {response.id for event in events for response in event.get_function_responses()}
    for event in events:
        waiting = event.long_running_tool_ids or set()  # answered later
        calls = [c for c in event.get_function_calls() if c.id not in answered and c.id not in waiting]
        if calls:
            parts = [
                types.Part(function_response=types.FunctionResponse(id=c.id, name=c.name, response={"error": UNKNOWN}))
                for c in calls
            ]
            yield Event(
                invocation_id=event.invocation_id,
                author=event.author,
                branch=event.branch,
                isolation_scope=event.isolation_scope,
                content=types.Content(role="user", parts=parts),
                error_code=ABORTED,
                error_message=UNKNOWN,
                timestamp=event.timestamp,
            )


def _heard(events: Iterable[Event], answers: Sequence[Message]) -> Iterator[Event]:
    """Drop events of an interrupted answer that were never output, because they waited for another agent."""
    seen = "\n".join(message.content for message in answers)
    is_whole = not answers or answers[-1].status is Status.COMPLETE
    for event in events:
        text = text_of(event).strip() if event.author != "user" else ""
        if is_whole or text in seen or event.get_function_calls():
            yield event


def _rest(entry: ContextEntry, answers: Sequence[Message], author: str) -> list[Event]:
    """Return the output of an interrupted answer that is in no event: the ADK keeps only complete ones."""
    if not answers or answers[-1].status is Status.COMPLETE:
        return []
    left = "\n".join(m.content for m in answers)
    noted = events_of(entry.content)
    for text in texts(noted):  # of concurrent agents, in order of their ends
        before, found, after = left.partition(text.strip("\n"))
        left = f"{before}{after}" if found else left
    speakers = [event.author for event in noted if event.author != "user"]
    return [_said(answers[-1], speakers[-1] if speakers else author, left.strip("\n"))]


def texts(events: Iterable[Event]) -> Iterable[str]:
    """Yield the text of each event."""
    for event in events:
        if event.author != "user" and (text := text_of(event)):
            yield text


def text_of(event: Event) -> str:
    parts = event.content.parts or [] if event.content else []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _said(message: Message, author: str, text: str | None = None) -> Event:
    mark = _MARKS.get(message.status)
    said = message.content if text is None else text
    parts = [types.Part(text=piece) for piece in (said, mark) if piece] + references(message)
    return Event(
        invocation_id=message.run_id or f"message-{message.seq}",
        author=author,
        timestamp=message.created.timestamp(),
        content=types.Content(role="user" if author == "user" else "model", parts=parts),
        interrupted=True if message.status is Status.INTERRUPTED else None,
    )
