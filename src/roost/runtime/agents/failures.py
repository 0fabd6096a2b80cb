"""Closings of envelopes that were not tried, and notifications of failures."""

from __future__ import annotations

from dataclasses import replace

from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.events import FAILED
from roost.core.envelopes.lanes import meeting_of
from roost.core.failures.faults import Fault
from roost.core.meetings.effects import EndTurn
from roost.core.runs import Closing, Verdict
from roost.errors import BrainFailed
from roost.runtime.agents.work import WorkOwner

EXPIRED = "expired"
WITHDRAWN = "withdrawn"


def expired(envelope: Envelope, epoch: int, now: float) -> Closing:
    tried = replace(envelope, attempts=envelope.attempts - 1)
    reason = "it was not begun before it expired"
    if tried.attempts:
        often = "once" if tried.attempts == 1 else f"{tried.attempts} times"
        reason = f"it was tried {often}, and not again before it expired"
    return Closing("", tried, epoch, Verdict.DEAD, "", now, now, reason=reason, fault=EXPIRED)


def withdrawn(envelope: Envelope, epoch: int, now: float) -> Closing:
    """Of a question whose answer nobody waits for any more."""
    return Closing(
        "", envelope, epoch, Verdict.CANCELLED, "", now, now, reason="the question was withdrawn", fault=WITHDRAWN
    )


def overspent(envelope: Envelope, epoch: int, now: float, refusal: BrainFailed) -> Closing:
    """Of what may not be begun, since as much as may has come of its origin."""
    reason = f"{refusal}; {refusal.advice}"
    return Closing("", envelope, epoch, Verdict.DEAD, "", now, now, reason=reason, fault=Fault.BUDGET)


def worn_out(envelope: Envelope, epoch: int, now: float) -> Closing:
    reason = f"it was tried {envelope.most_attempts} times, and each time the program or its thread ended meanwhile"
    tried = replace(envelope, attempts=envelope.most_attempts)
    return Closing("", tried, epoch, Verdict.DEAD, "", now, now, reason=reason, fault=Fault.LOST_WORKER)


def news(home: WorkOwner, closing: Closing) -> tuple[Effect, ...]:
    """Return the notifications of a failure to the owner's other agents; none for a failed notification.

    Participants of its meeting are notified too.
    """
    e = closing.envelope
    if closing.fault == EXPIRED or e.lane == f"event:{FAILED}":
        return ()
    told: tuple[Effect, ...] = ()
    if e.kind is Kind.MEETING:
        failed, name = f"it failed: {closing.reason}", home.context.host.new_id("entry")
        told = (EndTurn(name, home.full_address, meeting_of(e.lane), None, (), failed),)
    if closing.fault == Fault.BUDGET and not home.context.budgets.is_first(e.origin):
        return told  # thousands may be cut off at once
    data = {
        "agent": home.agent_id,
        "reason": closing.reason,
        "fault": closing.fault,
        "envelope_id": e.envelope_id,
        "kind": e.kind,
    }
    event = home.services.composer.event(
        home.owner, home.full_address, FAILED, data, optional=True, hops=e.hops + 1, root=e.origin
    )
    return *told, event
