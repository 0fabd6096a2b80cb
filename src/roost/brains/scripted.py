"""Brains that follow a script: for tests, and to see how things work without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from roost.brains.attending import is_asked
from roost.core.messages import Sender
from roost.errors import Invalid
from roost.ports import AsyncBrain, Turn


async def echo(turn: Turn) -> AsyncIterator[str]:
    """Says what was said, word by word, and exactly so."""
    if not is_asked(turn):
        return
    words = turn.text.split(" ")
    for word in words[:-1]:
        yield word + " "
    yield words[-1]


def scripted(replies: Sequence[str]) -> AsyncBrain:
    """Gives one reply a turn, in order, and starts again after the last.

    Which one it is follows from how many answers the talk has, so a restart changes nothing.
    """
    if isinstance(replies, str) or not replies:
        raise Invalid("a scripted brain needs a list with at least one reply")

    async def brain(turn: Turn) -> AsyncIterator[str]:
        me = turn.meeting.me if turn.kind == "meeting" else Sender.AGENT
        given = sum(message.sender == me for message in turn.history)
        if is_asked(turn, len(replies)):
            yield replies[given % len(replies)]

    return brain
