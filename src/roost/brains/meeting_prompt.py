"""Prompt of a turn in a meeting: one message with everything a model needs to take part."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from roost.core.meetings.participants.attention import Why, is_person
from roost.core.talks.messages import Message, Sender, Status
from roost.ports import Turn

_WHENEVER = datetime(2000, 1, 1, tzinfo=UTC)


def is_asked(turn: Turn, times: int = 1) -> bool:
    """Return whether a scripted brain speaks: to users, when addressed, and at most `times` otherwise.

    Two scripted brains that answer each other would never end. A late answer needs no reply.
    """
    if turn.kind == "answer":
        return False
    if turn.kind != "meeting":
        return True
    meeting = turn.meeting
    if meeting.why in (Why.MOVE, Why.MENTIONED) or any(is_person(word.author) for word in meeting.new):
        return True
    if meeting.why is Why.REFUSED:
        return meeting.may_speak
    return meeting.why is not Why.WORDS and sum(word.author == meeting.me for word in meeting.view.words) < times


def as_prompt(turn: Turn) -> Turn:
    """Return the turn with the meeting as its message; a turn outside of meetings is unchanged."""
    if turn.kind != "meeting":
        return turn
    prompt = turn.meeting.prompt
    message = Message(1, Sender.USER, prompt, Status.COMPLETE, _WHENEVER)
    return replace(turn, text=prompt, messages=(message,), history=())
