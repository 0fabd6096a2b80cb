"""Scripted brains, for tests and for use without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from roost.brains.meeting_prompt import is_asked
from roost.core.talks.messages import Sender
from roost.errors import Invalid
from roost.ports import AsyncBrain, LongHistory, Turn


async def echo(turn: Turn) -> AsyncIterator[str]:
    """Repeat the message, word by word."""
    if not is_asked(turn):
        return
    words = turn.text.split(" ")
    for word in words[:-1]:
        yield word + " "
    yield words[-1]


def scripted(replies: Sequence[str]) -> AsyncBrain:
    """Return a brain that gives one reply per turn, in order, and starts again after the last.

    The number of answers in the talk decides which one, so a restart changes nothing.
    """
    if isinstance(replies, str) or not replies:
        raise Invalid("a scripted brain needs a list with at least one reply")

    async def brain(turn: Turn) -> AsyncIterator[str]:
        me = turn.meeting.me if turn.kind == "meeting" else Sender.AGENT
        history = turn.history
        if isinstance(history, LongHistory):
            given = history.count_of(me)
        else:
            given = sum(message.sender == me for message in history)
        if is_asked(turn, len(replies)):
            yield replies[given % len(replies)]

    return brain
