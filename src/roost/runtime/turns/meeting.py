"""Output of a brain in a meeting: its words, and its actions in between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any, Protocol

from roost.core.envelopes.envelope import Kind
from roost.core.meetings.log.bodies import Body, Ended, Granted, Left, Passed, Said
from roost.core.meetings.view.floor import HELD
from roost.errors import Forbidden
from roost.ports import Actions, Meeting, Profile, Turn, TurnRuntime

YIELDING = (Said, Passed, Granted, Left, Ended)
"""Entries after which the author no longer has the floor."""


class Flush(Protocol):
    """Passes on text that was held back."""

    def __call__(self, *, end: bool) -> None: ...


class MeetingOutput:
    """Entries that one turn writes. `said`: all output of the brain so far."""

    def __init__(self, meeting: Meeting, said: list[str], actions: Callable[[], Actions], flush: Flush) -> None:
        self.meeting = meeting
        self._said = said
        self._actions = actions
        self._flush = flush
        self._spoken = 0
        """Number of pieces in `said` that were written before the end of the turn."""
        meeting.write = self._act

    async def _act(self, meeting: Meeting, body: Body) -> None:
        """Write an entry, after the words said before it.

        Where one participant has the floor, words pass it on. There the words are kept for the end of the turn, unless
        the entry itself ends it.
        """
        self._flush(end=True)
        actions, words, spoken = self._actions(), self._unsaid.strip(), len(self._said)
        if words and (meeting.view.rule not in HELD or isinstance(body, YIELDING)):
            with suppress(Forbidden):
                await actions.write_entry(meeting, Said(words))
                self._spoken = spoken
        await actions.write_entry(meeting, body)

    @property
    def _unsaid(self) -> str:
        return "".join(self._said[self._spoken :])

    def last(self, now: int) -> list[Body]:
        """Return the entries that follow from the last words, when the turn is over."""
        return self.meeting.last_words(self._unsaid, now, spoke=self._spoken > 0)

    @cached_property
    def position(self) -> dict[str, Any]:
        """Return the position of the meeting when the turn began."""
        return self.meeting.position()


def in_meeting(
    meeting: Meeting,
    profile: Profile,
    user_id: str,
    run_id: str,
    state: dict[str, Any],
    runtime: TurnRuntime | None,
    agent_id: str,
    attempt: int,
) -> Turn:
    """Return a turn that takes part in a meeting. With several senders, each message in its text has its sender."""
    new = meeting.messages()
    senders = tuple(dict.fromkeys(message.sender for message in new))
    text = "\n".join(
        message.content if len(senders) == 1 else f"{message.sender}: {message.content}" for message in new
    )
    return Turn(
        Kind.MEETING,
        text,
        new,
        meeting.history(),
        profile,
        user_id,
        "",
        run_id,
        state,
        runtime,
        agent_id=agent_id,
        senders=senders,
        subject=meeting.topic,
        attempt=attempt,
        meeting=meeting,
    )
