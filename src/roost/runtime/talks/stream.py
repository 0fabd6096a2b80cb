"""Stream of a talk: splits pages into pieces of text, each with the cursor at which a reader continues after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from roost.core.talks import side_channels
from roost.core.talks.messages import Change, Cursor, Message, Page, Status, TalkLog
from roost.core.talks.side_channels import Notes

KEPT = 256
"""Messages that are compared with new pages: with twice as many, the oldest are removed."""


class TalkStream:
    """Position of one reader, and the messages it has seen. A cursor may be in the middle of a text."""

    def __init__(self, log: TalkLog, after: str | None) -> None:
        self._log = log
        self._cursor = Cursor.decode(after, log) if after is not None else Cursor(0)
        self._partial = (self._cursor.seq, self._cursor.offset, self._cursor.noted)
        """Number of the message that was read in part, and how much of its text and of its notes was read."""
        self._seen: dict[int, Message] = {}

    def of(self, page: Page) -> Iterator[Change]:
        """Yield the changes that a page adds; none for an unchanged message."""
        start, reached = self._cursor, Cursor.decode(page.cursor, self._log)
        self._cursor = reached
        new = [message for message in page.messages if self._seen.get(message.seq) != message]
        for number, message in enumerate(new, start=1):
            text, noted, reset = self._added(message)
            self._remember(message)
            whole = number == len(new) and not reached.target
            cursor = self._with_position(reached if whole else self._between(start, reached, message.seq))
            encoded = page.cursor if cursor is reached else cursor.encode(self._log)
            yield Change(message, text, encoded, reset, noted)

    def _added(self, message: Message) -> tuple[str, Notes, bool]:
        known, (seq, read, noted) = self._seen.get(message.seq), self._partial
        if known is not None:
            read, noted = len(known.content), side_channels.length(known.notes)
        elif message.seq != seq:
            read = noted = 0
            if message.status is Status.WITHDRAWN:  # it may have been read before, by a reader that has returned
                return "", (), True
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

    def _with_position(self, cursor: Cursor) -> Cursor:
        """Return the cursor with the position in the message that was read in part."""
        if (cursor.seq, cursor.offset, cursor.noted) == self._partial:
            return cursor
        seq, offset, noted = self._partial
        return replace(cursor, seq=seq, offset=offset, noted=noted)

    def _between(self, start: Cursor, reached: Cursor, seq: int) -> Cursor:
        """Return the cursor after one message of a page, before the next ones."""
        return replace(start, position=seq, target=max(reached.target or reached.revision, 1))

    def _remember(self, message: Message) -> None:
        self._seen[message.seq] = message
        if message.status is Status.STREAMING:
            self._partial = (message.seq, len(message.content), side_channels.length(message.notes))
        elif self._partial[0] == message.seq:
            self._partial = (0, 0, 0)
        if len(self._seen) > 2 * KEPT:
            for seq in sorted(self._seen)[:KEPT]:
                del self._seen[seq]
