"""Guide as a brain: says its script word by word."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from roost.brains.guide.script import REMEMBERED, script
from roost.brains.meeting_prompt import is_asked
from roost.core.talks.messages import Message, Sender
from roost.ports import AsyncBrain, Turn

PACE = 0.03
"""Seconds between words."""


def guided(*, pace: float = PACE) -> AsyncBrain:
    """Return the guide with `pace` seconds between words."""

    async def brain(turn: Turn) -> AsyncIterator[str]:
        gap = ""
        heard = _heard(turn, turn.history[-REMEMBERED:])
        for reply in script(heard, _heard(turn, turn.messages)) if is_asked(turn) else ():
            for word in re.findall(r"\s*\S+", gap + reply.text):
                yield word
                await asyncio.sleep(pace * reply.slowness)
            if reply.fails:
                raise RuntimeError("the guide was asked to fail")
            gap = "\n\n"

    return brain


def _heard(turn: Turn, messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages with all other participants of a meeting as users."""
    if turn.kind != "meeting":
        return messages
    me = turn.meeting.me
    return [replace(one, sender=Sender.AGENT if one.sender == me else Sender.USER) for one in messages]


guide = guided()
