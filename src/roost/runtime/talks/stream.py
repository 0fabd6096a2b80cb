"""A stream of a talk: pages become pieces of text, each with a cursor from which exactly the rest follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from roost.core.talks import side_channels
from roost.core.talks.messages import Change, Cursor, Message, Page, Status, TalkLog
from roost.core.talks.side_channels import Notes

KEPT = 256


class TalkStream:
    """What one reader has seen. A cursor in the middle of a text counts as having read so far."""

    def __init__(self, log: TalkLog, after: str | None) -> None:
        self._log = log
        self._at = Cursor.decode(after, log) if after is not None else Cursor(0)
        self._part = (self._at.seq, self._at.offset, self._at.noted)
        """The message that was read in part, and how much of it and of its notes."""
        self._seen: dict[int, Message] = {}

    def of(self, page: Page) -> Iterator[Change]:
        """Return what a page adds; nothing for a message that is as it was."""
        start, reached = self._at, Cursor.decode(page.cursor, self._log)
        self._at = reached
        new = [message for message in page.messages if self._seen.get(message.seq) != message]
        for number, message in enumerate(new, start=1):
            text, noted, reset = self._grown(message)
            self._remember(message)
            whole = number == len(new) and not reached.target
            cursor = reached if whole else self._between(start, reached, message.seq)
            yield Change(message, text, self._read(cursor).encode(self._log), reset, noted)

    def _grown(self, message: Message) -> tuple[str, Notes, bool]:
        known, (seq, read, noted) = self._seen.get(message.seq), self._part
        if known is not None:
            read, noted = len(known.content), side_channels.length(known.notes)
        elif message.seq != seq:
            read = noted = 0
        fits = read <= len(message.content) and noted <= side_channels.length(message.notes)
        if known is not None and fits:
            fits = (
                message.content.startswith(known.content) and side_channels.until(message.notes, noted) == known.notes
            )
        return (
            (message.content[read:], side_channels.after(message.notes, noted), False)
            if fits
            else (message.content, message.notes, True)
        )

    def _read(self, cursor: Cursor) -> Cursor:
        """The same, with what was read of a message in part."""
        if (cursor.seq, cursor.offset, cursor.noted) == self._part:
            return cursor
        seq, offset, noted = self._part
        return replace(cursor, seq=seq, offset=offset, noted=noted)

    def _between(self, start: Cursor, reached: Cursor, seq: int) -> Cursor:
        """Where a reader stands after one message of a page, before the others."""
        return replace(start, position=seq, target=max(reached.target or reached.revision, 1))

    def _remember(self, message: Message) -> None:
        self._seen[message.seq] = message
        if message.status is Status.STREAMING:
            self._part = (message.seq, len(message.content), side_channels.length(message.notes))
        elif self._part[0] == message.seq:
            self._part = (0, 0, 0)
        if len(self._seen) > 2 * KEPT:
            for seq in sorted(self._seen)[:KEPT]:
                del self._seen[seq]
