"""Messages of a talk, and how they are read: pages, cursors, changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from roost.core import checks
from roost.core.notes import Notes
from roost.errors import Invalid

PAGE = 200
"""How many messages, or talks, are given when nobody says how many."""
MOST = 1_000


class Status(StrEnum):
    """Where a message stands; all but `streaming` are final."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


class Sender(StrEnum):
    USER = "user"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a talk's log. `seq` counts from 1 without gaps; `error` is one sentence for people.

    The sender is `user` or `agent`; of what an agent is given otherwise, it is an address. `notes` are what the
    agent said beside its answer: what it thought, what it did.
    """

    seq: int
    sender: str
    content: str
    status: Status
    created: datetime
    error: str | None = None
    run_id: str | None = None
    notes: Notes = ()


@dataclass(frozen=True, slots=True)
class Page:
    """Messages in order, and the cursor with which to ask for what comes after them."""

    messages: tuple[Message, ...]
    cursor: str
    running: bool
    more_before: bool = False
    more_after: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One step of a stream: `text` is what `message` has grown by since the last step, and `notes` what its notes have.

    With `reset` both start anew: forget what was read of this message before.
    """

    message: Message
    text: str
    cursor: str
    reset: bool = False
    notes: Notes = ()


class CursorText(str):
    """A cursor as callers hold it: a plain text, which remembers what it means while it stays in this process."""

    __slots__ = ("cursor", "talk_id")
    cursor: Cursor
    talk_id: str


@dataclass(frozen=True, slots=True)
class Cursor:
    """What was seen: all changes up to `revision`, `offset` characters of the message `seq`, `noted` of its notes.

    While a long list of changes is read in several pages, `position` is the last message read
    and `target` the revision that is reached at its end.
    """

    revision: int
    seq: int = 0
    offset: int = 0
    position: int = 0
    target: int = 0
    noted: int = 0

    def encode(self, talk_id: str) -> str:
        text = f"{talk_id[-4:]}.{self.revision}.{self.seq}.{self.offset}"
        text = f"{text}.{self.position}.{self.target}" if self.target else text
        encoded = CursorText(f"{text}.{self.noted}" if self.noted else text)
        encoded.cursor, encoded.talk_id = self, talk_id
        return encoded

    @classmethod
    def decode(cls, text: object, talk_id: str) -> Cursor:
        if type(text) is CursorText and text.talk_id == talk_id:
            return text.cursor
        refusal = Invalid(f"the cursor {checks.shown(text)} is not one of this talk: use `page.cursor` as it was given")
        if not isinstance(text, str):
            raise refusal
        mark, *numbers = text.split(".")
        if mark != talk_id[-4:] or len(numbers) not in (3, 4, 5, 6):
            raise refusal
        if not all(n.isascii() and n.isdigit() and len(n) < 16 for n in numbers):
            raise refusal
        read = [int(number) for number in numbers]
        noted = read.pop() if len(read) in (4, 6) else 0
        return replace(cls(*read), noted=noted)


def at(seconds: float) -> datetime:
    """Stored seconds as an aware time."""
    return datetime.fromtimestamp(seconds, UTC)
