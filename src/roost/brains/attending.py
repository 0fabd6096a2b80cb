"""A turn in a meeting as a model is shown it: in one message, with all it needs to know to take part."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from roost.core.messages import Message, Sender, Status
from roost.ports import Turn

_WHENEVER = datetime(2000, 1, 1, tzinfo=UTC)


def attending(turn: Turn) -> Turn:
    """The same turn, if it is in no meeting. What was said there before is part of the message."""
    if turn.kind != "meeting":
        return turn
    prompt = turn.meeting.prompt
    told = Message(1, Sender.USER, prompt, Status.COMPLETE, _WHENEVER)
    return replace(turn, text=prompt, messages=(told,), history=())
