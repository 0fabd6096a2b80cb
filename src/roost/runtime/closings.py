"""How an envelope ends that was not tried, and whom its end is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from roost.core.envelopes import Effect, Envelope, Kind, Verdict, WorkClosing
from roost.core.events import FAILED
from roost.core.faults import Fault
from roost.core.meetings.effects import EndTurn, meeting_of

if TYPE_CHECKING:
    from roost.runtime.activation import Activation

EXPIRED = "expired"


def expired(envelope: Envelope, epoch: int, now: float) -> WorkClosing:
    tried = replace(envelope, attempts=max(0, envelope.attempts - int(envelope.claimed)))
    reason = "it was not begun before it expired"
    if tried.attempts:
        often = "once" if tried.attempts == 1 else f"{tried.attempts} times"
        reason = f"it was tried {often}, and not again before it expired"
    return WorkClosing("", tried, epoch, Verdict.DEAD, "", now, now, reason=reason, fault=EXPIRED)


def worn_out(envelope: Envelope, epoch: int, now: float) -> WorkClosing:
    reason = f"it was tried {envelope.most_attempts} times, and each time the program or its thread ended meanwhile"
    tried = replace(envelope, attempts=envelope.most_attempts)
    return WorkClosing("", tried, epoch, Verdict.DEAD, "", now, now, reason=reason, fault=Fault.LOST_WORKER)


def news(home: Activation, closing: WorkClosing) -> tuple[Effect, ...]:
    """The owner's other agents are told that it failed; not of failing at such news, which might go on for ever.

    So are those who are in a meeting with it.
    """
    e = closing.envelope
    if closing.fault == EXPIRED or e.lane == f"event:{FAILED}":
        return ()
    told: tuple[Effect, ...] = ()
    if e.kind is Kind.MEETING:
        failed, name = f"it failed: {closing.reason}", home.shop.host.new_id("entry")
        told = (EndTurn(name, home.full_address, meeting_of(e.lane), None, (), failed),)
    data = {
        "agent": home.agent_id, "reason": closing.reason, "fault": closing.fault, "envelope_id": e.envelope_id,
        "kind": e.kind,
    }  # fmt: skip
    event = home.office.event(
        home.owner, home.full_address, FAILED, data, optional=True, hops=e.hops + 1, root=e.origin
    )  # fmt: skip
    return *told, event
