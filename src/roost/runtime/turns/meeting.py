"""The voice of a brain in a meeting: what it says there, and what it does in between."""

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

LAST = (Said, Passed, Granted, Left, Ended)
"""Acts after which one who had the floor has it no more."""


class Flush(Protocol):
    """Says what is held back of a text."""

    def __call__(self, *, end: bool) -> None: ...


class MeetingVoice:
    """Entries that one turn writes. `said`: all that the brain has said so far."""

    def __init__(self, meeting: Meeting, said: list[str], actions: Callable[[], Actions], flush: Flush) -> None:
        self.meeting = meeting
        self._said = said
        self._actions = actions
        self._flush = flush
        self._spoken = 0
        """Number of these were said in the meeting before the end of the turn."""
        meeting.write = self._act

    async def _act(self, meeting: Meeting, body: Body) -> None:
        """Write an act, after what was said before it.

        Where one participant has the floor, words pass it on: there they are kept for the end of the turn, with those
        that follow, unless the act itself ends it.
        """
        self._flush(end=True)
        actions, words, spoken = self._actions(), self._rest.strip(), len(self._said)
        if words and (meeting.view.rule not in HELD or isinstance(body, LAST)):
            with suppress(Forbidden):
                await actions.write_entry(meeting, Said(words))
                self._spoken = spoken
        await actions.write_entry(meeting, body)

    @property
    def _rest(self) -> str:
        return "".join(self._said[self._spoken :])

    def last(self, now: int) -> list[Body]:
        """Return what comes of what it has said at last, when its turn is over."""
        return self.meeting.last_words(self._rest, now, spoke=self._spoken > 0)

    @cached_property
    def given(self) -> dict[str, Any]:
        """Return what tells how the meeting was when the turn began."""
        return self.meeting.position()


def in_meeting(
    meeting: Meeting,
    profile: Profile,
    user_id: str,
    run_id: str,
    state: dict[str, Any],
    hand: TurnRuntime | None,
    agent_id: str,
    attempt: int,
) -> Turn:
    """A turn that takes part in a meeting, as it sees it. If several have spoken, each message in its text is named."""
    new = meeting.messages()
    senders = tuple(dict.fromkeys(one.sender for one in new))
    text = "\n".join(one.content if len(senders) == 1 else f"{one.sender}: {one.content}" for one in new)
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
        hand,
        agent_id=agent_id,
        senders=senders,
        subject=meeting.topic,
        attempt=attempt,
        meeting=meeting,
    )
