"""Messages of a talk, with the pages, cursors and changes by which they are read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

from roost.core.talks.attachments import Attachment
from roost.core.talks.side_channels import Notes
from roost.core.values import checks
from roost.core.values.records import record
from roost.errors import Invalid, StaleCursor

PAGE = 200
"""Default number of messages or talks in a page."""
MOST = 1_000


class Status(StrEnum):
    """Status of a message; all but `streaming` are final."""

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
    """Message of a talk. `seq` counts from 1 without gaps; `error` is one sentence for users.

    The sender is `user` or `agent`; outside talks it is an address. `notes` hold the output of the agent's side
    channels: its thoughts and tool calls.
    """

    seq: int
    sender: str
    content: str
    status: Status
    created: datetime
    error: str | None = None
    run_id: str | None = None
    notes: Notes = ()
    attachments: tuple[Attachment, ...] = ()
    """Files of a person's message; `get_attachment` returns their bytes."""


@dataclass(frozen=True, slots=True)
class Page:
    """Messages in order, and the cursor for the next page."""

    messages: tuple[Message, ...]
    cursor: str
    running: bool
    more_before: bool = False
    more_after: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """Step of a stream: `text` and `notes` are the parts of `message` that are new since the last step.

    With `reset` both start again: discard what was read of this message before.
    """

    message: Message
    text: str
    cursor: str
    reset: bool = False
    notes: Notes = ()


class CursorText(str):
    """Cursor as callers hold it: a text that keeps its decoded form while it stays in this process."""

    __slots__ = ("cursor", "log")
    cursor: Cursor
    log: TalkLog


@record(frozen=True, slots=True)
class TalkLog:
    """Log that a cursor belongs to: a talk in one generation of the store (see `Store.generation`)."""

    talk_id: str
    generation: str = ""
    mark: str = field(init=False, repr=False, compare=False)
    """Prefix of its cursors: a part of the talk id if the store was never restored."""

    def __post_init__(self) -> None:
        mark = f"{self.talk_id[-4:]}-{self.generation}" if self.generation else self.talk_id[-4:]
        object.__setattr__(self, "mark", mark)  # once: a cursor is encoded for each chunk


@record(frozen=True, slots=True)
class Cursor:
    """Position of a reader: all changes up to `revision`, `offset` characters of message `seq`, `noted` of its notes.

    While a long list of changes is read in pages, `position` is the last message read and `target` the revision at the
    end of the list.
    """

    revision: int
    seq: int = 0
    offset: int = 0
    position: int = 0
    target: int = 0
    noted: int = 0

    def encode(self, log: TalkLog) -> str:
        text = f"{log.mark}.{self.revision}.{self.seq}.{self.offset}"
        text = f"{text}.{self.position}.{self.target}" if self.target else text
        encoded = CursorText(f"{text}.{self.noted}" if self.noted else text)
        encoded.cursor, encoded.log = self, log
        return encoded

    @classmethod
    def decode(cls, text: object, log: TalkLog) -> Cursor:
        """Decode a cursor. Raises Invalid if it is not of this talk, StaleCursor if it is of another generation."""
        if type(text) is CursorText and (text.log is log or text.log == log):
            return text.cursor
        refusal = Invalid(f"the cursor {checks.shown(text)} is not one of this talk: use `page.cursor` as it was given")
        if not isinstance(text, str):
            raise refusal
        mark, *numbers = text.split(".")
        if mark.partition("-")[0] != log.talk_id[-4:] or len(numbers) not in (3, 4, 5, 6):
            raise refusal
        if not all(n.isascii() and n.isdigit() and len(n) < 16 for n in numbers):
            raise refusal
        if mark != log.mark:
            raise stale(text)
        read = [int(number) for number in numbers]
        noted = read.pop() if len(read) in (4, 6) else 0
        return replace(cls(*read), noted=noted)


def stale(cursor: str) -> StaleCursor:
    return StaleCursor(
        f"the cursor {checks.shown(cursor)} is of another state of the store, which was restored from a backup or"
        " replaced by an older copy: read the talk again, without `after`"
    )


def at(seconds: float) -> datetime:
    """Return stored seconds as an aware datetime."""
    return datetime.fromtimestamp(seconds, UTC)
