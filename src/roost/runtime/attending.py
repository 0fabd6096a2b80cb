"""Attending: what a turn in a meeting is given, and when it begins."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from roost.core.agents import Invitations
from roost.core.envelopes import Envelope, Verdict, WorkClosing
from roost.core.meetings.effects import meeting_of, turn_lane
from roost.core.steps import Recorded, StepKind
from roost.ports import Meeting

if TYPE_CHECKING:
    from roost.runtime.activation import Activation
    from roost.runtime.desk import Lane


async def attended(home: Activation, envelope: Envelope) -> Meeting | None:
    """The meeting that a turn is about, as the agent sees it; None: it takes part in no such one any more."""
    shop, meeting_id = home.shop, meeting_of(envelope.lane)
    seated = await shop.store.read(shop.statements.meetings.seated, home.full_address, meeting_id)
    return Meeting(seated, is_asked=home.config.invitations is Invitations.ASK) if seated is not None else None


def idle_turn(
    home: Activation, envelope: Envelope, recorded: tuple[Recorded, ...], now: float
) -> WorkClosing | None:  # fmt: skip
    """Of a turn in which there is nothing to react to any more, and nothing was done yet: what ends it."""
    meeting = home.letters[envelope.envelope_id]
    if meeting is not None and (meeting.why is not None or any(one.kind == StepKind.GIVEN for one in recorded)):
        return None
    del home.letters[envelope.envelope_id]
    sent = () if meeting is None else (meeting.end_of_turn(home.shop.host.new_id("entry")),)
    return WorkClosing("", envelope, home.epoch, Verdict.DONE, "", now, now, sent=sent)


# --- turns that wait for a quiet moment, since others are speaking -----------------------------------


def hold(home: Activation, lane: Lane) -> bool:
    """Whether the turn in this lane waits."""
    pause = home.hall.listener.quiet_in(home.address, meeting_of(lane.name))
    if not pause:
        return False
    lane.busy, lane.held = False, True
    lane.due = home.shop.host.clock.now() + pause
    asyncio.get_running_loop().call_later(pause, _unhold, home, lane)
    return True


def hurry(home: Activation, meeting_id: str) -> None:
    """Its turn in this meeting waits no longer."""
    if (lane := home.desk.lanes.get(turn_lane(meeting_id))) is not None:
        _unhold(home, lane)


def _unhold(home: Activation, lane: Lane) -> None:
    if lane.held:
        lane.held, lane.due = False, 0.0
        home.desk.offer(lane)
        home.go_on()
