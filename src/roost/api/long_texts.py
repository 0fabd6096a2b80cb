"""Long texts in several events: a client needs no large buffer, and a slow one can resume in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from roost.core.talks import side_channels
from roost.core.talks.messages import Change, Cursor, CursorText, Status, TalkLog
from roost.protocol.talks import event_json

MOST = 64 * 1024
"""Characters of text in one event."""


def events(change: Change, before: str | None) -> Iterator[tuple[str, str]]:
    """Yield a change as one event, or as several if its text is long; `before` is the cursor before this change.

    An event is a cursor and JSON. All but the last one say that the message is being written. A cursor has a place in
    one text only: if it has one in another text, the change is not split.
    """
    message, text, reset = change.message, change.text, change.reset
    offset = len(message.content) - len(text)
    noted = side_channels.length(message.notes) - side_channels.length(change.notes)
    read = 0
    if len(text) > MOST and (start := _start(change, before)).seq in (0, message.seq):
        head = replace(message, status=Status.STREAMING, error=None)
        for end in range(MOST, len(text), MOST):
            place = replace(start, seq=head.seq, offset=offset + end, noted=noted)
            yield place.encode(_log(change)), event_json(head, text[read:end], offset + read, reset, (), noted)
            read, reset = end, False
    yield change.cursor, event_json(message, text[read:], offset + read, reset, change.notes, noted)


def _start(change: Change, before: str | None) -> Cursor:
    """Return the cursor before a change; of the first message of a talk that is read without a cursor, its place."""
    if before is not None:
        return Cursor.decode(before, _log(change))
    reached = Cursor.decode(change.cursor, _log(change))
    return Cursor(0, position=change.message.seq - 1, target=max(reached.target or reached.revision, 1))


def _log(change: Change) -> TalkLog:
    assert isinstance(change.cursor, CursorText)
    return change.cursor.log
