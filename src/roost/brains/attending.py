"""A turn in a meeting as a model is shown it: in one message, with all it needs to know to take part."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from roost.core.meetings.attention import Why, is_person
from roost.core.messages import Message, Sender, Status
from roost.ports import Turn

_WHENEVER = datetime(2000, 1, 1, tzinfo=UTC)


def is_asked(turn: Turn, times: int = 1) -> bool:
    """Whether one who follows a script speaks: to people, when it is meant, and so often of itself.

    Two of them who answered each other would never come to an end.
    """
    if turn.kind != "meeting":
        return True
    meeting = turn.meeting
    if meeting.why in (Why.MOVE, Why.MENTIONED) or any(is_person(word.author) for word in meeting.new):
        return True
    return meeting.why is not Why.WORDS and sum(word.author == meeting.me for word in meeting.view.words) < times


def attending(turn: Turn) -> Turn:
    """The same turn, if it is in no meeting. What was said there before is part of the message."""
    if turn.kind != "meeting":
        return turn
    prompt = turn.meeting.prompt
    told = Message(1, Sender.USER, prompt, Status.COMPLETE, _WHENEVER)
    return replace(turn, text=prompt, messages=(told,), history=())
