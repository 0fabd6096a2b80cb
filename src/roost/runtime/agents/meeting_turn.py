"""Turns in meetings: their input, and the time at which they start."""

from __future__ import annotations

import asyncio

from roost.core.agents.agent import Invitations
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.lanes import meeting_of, turn_lane
from roost.core.journal.steps import Recorded, StepKind
from roost.core.runs import Closing, Verdict
from roost.ports import Meeting
from roost.runtime.agents.awake_agent import AwakeAgent
from roost.runtime.agents.lanes.lane_queue import Lane
from roost.stores.sql.meetings import registry


async def load_meeting(agent: AwakeAgent, envelope: Envelope) -> Meeting | None:
    """Return the meeting that a turn is about, as the agent sees it; None if the agent has left it."""
    context, meeting_id = agent.context, meeting_of(envelope.lane)
    seated = await context.store.read(registry.load_log, agent.full_address, meeting_id)
    return Meeting(seated, is_asked=agent.config.invitations is Invitations.ASK) if seated is not None else None


def idle_turn(agent: AwakeAgent, envelope: Envelope, recorded: tuple[Recorded, ...], now: float) -> Closing | None:
    """Return the closing of a turn that has nothing left to react to and has done nothing yet; else None."""
    meeting = agent.inputs[envelope.envelope_id]
    if meeting is not None and (meeting.why is not None or any(step.kind == StepKind.GIVEN for step in recorded)):
        return None
    del agent.inputs[envelope.envelope_id]
    sent = () if meeting is None else (meeting.end_of_turn(agent.context.host.new_id("entry")),)
    return Closing("", envelope, agent.epoch, Verdict.DONE, "", now, now, sent=sent)


# --- turns that wait for a quiet moment while others are speaking ------------------------------------


def hold(agent: AwakeAgent, lane: Lane) -> bool:
    """Delay the turn in this lane until others are quiet; return False if it can start now."""
    delay = agent.dispatcher.quiet_in(agent.address, meeting_of(lane.name))
    if not delay:
        return False
    lane.busy, lane.held = False, True
    lane.due = agent.context.host.clock.now() + delay
    asyncio.get_running_loop().call_later(delay, _unhold, agent, lane)
    return True


def hurry(agent: AwakeAgent, meeting_id: str) -> None:
    """Start its turn in this meeting without waiting for a quiet moment."""
    if (lane := agent.lane_queue.lanes.get(turn_lane(meeting_id))) is not None:
        _unhold(agent, lane)


def _unhold(agent: AwakeAgent, lane: Lane) -> None:
    if lane.held:
        lane.held, lane.due = False, 0.0
        agent.lane_queue.offer(lane)
        agent.run_ready()
