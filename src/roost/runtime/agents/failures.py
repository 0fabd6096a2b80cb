"""Closings of envelopes that were not attempted, and notifications of failures."""

from __future__ import annotations

from dataclasses import replace

from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.events import FAILED
from roost.core.envelopes.lanes import meeting_of
from roost.core.envelopes.sender import SenderContext
from roost.core.failures.faults import Fault
from roost.core.meetings.effects import EndTurn
from roost.core.runs import Closing, Verdict
from roost.errors import BrainFailed
from roost.runtime.agents.work import WorkOwner

EXPIRED = "expired"
WITHDRAWN = "withdrawn"


def expired(envelope: Envelope, epoch: int, now: float) -> Closing:
    """Return the closing of an envelope that expired before its next attempt."""
    counted = replace(envelope, attempts=envelope.attempts - 1)
    reason = "it was not begun before it expired"
    if counted.attempts:
        times = "once" if counted.attempts == 1 else f"{counted.attempts} times"
        reason = f"it was tried {times}, and not again before it expired"
    return Closing("", counted, epoch, Verdict.DEAD, "", now, now, reason=reason, fault=EXPIRED)


def withdrawn(envelope: Envelope, epoch: int, now: float) -> Closing:
    """Return the closing of a question whose answer is no longer awaited."""
    return Closing(
        "", envelope, epoch, Verdict.CANCELLED, "", now, now, reason="the question was withdrawn", fault=WITHDRAWN
    )


def over_budget(envelope: Envelope, epoch: int, now: float, refusal: BrainFailed) -> Closing:
    """Return the closing of an envelope whose origin has used up its budget."""
    reason = f"{refusal}; {refusal.advice}"
    return Closing("", envelope, epoch, Verdict.DEAD, "", now, now, reason=reason, fault=Fault.BUDGET)


def attempts_exhausted(envelope: Envelope, epoch: int, now: float) -> Closing:
    """Return the closing of an envelope whose last attempt ended in a crash."""
    reason = f"it was tried {envelope.most_attempts} times, and each time the program or its thread ended meanwhile"
    counted = replace(envelope, attempts=envelope.most_attempts)
    return Closing("", counted, epoch, Verdict.DEAD, "", now, now, reason=reason, fault=Fault.LOST_WORKER)


def failure_notices(agent: WorkOwner, closing: Closing) -> tuple[Effect, ...]:
    """Return the notifications of a failure to the owner's other agents; none for a failed notification.

    Participants of its meeting are notified too.
    """
    e = closing.envelope
    if closing.fault == EXPIRED or e.lane == f"event:{FAILED}":
        return ()
    notices: tuple[Effect, ...] = ()
    if e.kind is Kind.MEETING:
        failed, name = f"it failed: {closing.reason}", agent.context.host.new_id("entry")
        notices = (EndTurn(name, agent.full_address, meeting_of(e.lane), None, (), failed),)
    if closing.fault == Fault.BUDGET and not agent.context.budgets.is_first(e.origin):
        return notices  # thousands may fail at once: the first one is enough
    data = {
        "agent": agent.agent_id,
        "reason": closing.reason,
        "fault": closing.fault,
        "envelope_id": e.envelope_id,
        "kind": e.kind,
    }
    sender = SenderContext(agent.owner, agent.full_address, e.hops + 1, e.origin)
    event = agent.services.composer.event(sender, FAILED, data, optional=True)
    return *notices, event
