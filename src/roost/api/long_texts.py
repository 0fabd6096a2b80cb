"""Long texts in several events: a client needs no large buffer, and a slow one can resume in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from roost.core.talks.messages import Change, Cursor, CursorText, Status, TalkLog
from roost.protocol.talks import ChangeEvent

MOST = 64 * 1024
"""Characters of text in one event."""


def events(change: Change, before: str | None) -> Iterator[ChangeEvent]:
    """Yield a change as one event, or as several if its text is long; `before` is the cursor before this change.

    All but the last one say that the message is being written. A cursor has a place in one text only: if it has one in
    another text, the change is not split.
    """
    whole = ChangeEvent.of(change)
    read, text, reset = 0, whole.text, whole.reset
    if len(text) > MOST and (start := _start(change, before)).seq in (0, change.message.seq):
        head = whole.message.model_copy(update={"status": Status.STREAMING, "error": None})
        for end in range(MOST, len(text), MOST):
            place = replace(start, seq=head.seq, offset=whole.offset + end, noted=whole.noted)
            yield ChangeEvent(
                message=head,
                text=text[read:end],
                offset=whole.offset + read,
                cursor=place.encode(_log(change)),
                reset=reset,
                noted=whole.noted,
            )
            read, reset = end, False
    yield whole.model_copy(update={"text": text[read:], "offset": whole.offset + read, "reset": reset})


def _start(change: Change, before: str | None) -> Cursor:
    """Return the cursor before a change; of the first message of a talk that is read without a cursor, its place."""
    if before is not None:
        return Cursor.decode(before, _log(change))
    reached = Cursor.decode(change.cursor, _log(change))
    return Cursor(0, position=change.message.seq - 1, target=max(reached.target or reached.revision, 1))


def _log(change: Change) -> TalkLog:
    assert isinstance(change.cursor, CursorText)
    return change.cursor.log
