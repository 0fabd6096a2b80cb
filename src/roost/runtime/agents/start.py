"""Start of a turn: checks whether the first envelope of a lane can run now, and reads its input."""

from __future__ import annotations

import asyncio
import logging

from roost.core.agents.agent import State
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.failures.suspicion import Suspicion
from roost.core.journal.steps import Recorded
from roost.core.limits.budgets import SECOND
from roost.errors import Unavailable
from roost.ports import Profile
from roost.runtime.agents import meeting_turn
from roost.runtime.agents.failures import attempts_exhausted, expired, over_budget
from roost.runtime.agents.home import Home
from roost.runtime.agents.lanes.lane_queue import Lane
from roost.runtime.agents.work import Work
from roost.stores.sql import mail
from roost.stores.sql.inbox import in_progress, recovery

log = logging.getLogger("roost.agent")


async def begin(home: Home, lane: Lane) -> Work | None:
    """Return the work on the first envelope of the lane; None if it cannot start now."""
    profile, breakers = home.profile(), home.context.breakers
    if not _has_next(home, lane):
        return None
    if lane.waiting[0].suspect >= Suspicion.QUARANTINED:
        return await _begin_isolated(home, lane, profile)
    if not breakers.allows(profile) and not await _wait_for_provider(home, lane, profile):
        return None
    work = await _start(home, lane, profile)
    if work is None:
        breakers.release(profile)
    return work


async def _begin_isolated(home: Home, lane: Lane, profile: Profile) -> Work | None:
    """Start in quarantine until the work is closed. It waits outside of it while the circuit breaker is open."""
    envelope, breakers, work = lane.waiting[0], home.context.breakers, None
    while await _enter_quarantine(home, lane, envelope):
        try:
            if home.slot.is_released:
                await home.slot.regain()
            if breakers.allows(profile):
                if await _mark_isolated(home, envelope) and _is_next(home, lane, envelope):
                    work = await _start(home, lane, profile)
                else:
                    _requeue(home, lane)
                if work is None:
                    breakers.release(profile)
                return work
        finally:
            if work is None:
                home.context.quarantine.leave(envelope.envelope_id)
        if not await _wait_for_provider(home, lane, profile):
            return None
        breakers.release(profile)
    _requeue(home, lane)
    return None


def _has_next(home: Home, lane: Lane) -> bool:
    """Return True if the first envelope can start; close it if it has expired or has no attempts left."""
    if home.phases.is_ending or not lane.waiting:
        _requeue(home, lane)
        return False
    envelope, now = lane.waiting[0], home.context.host.clock.now()
    if envelope.kind is Kind.MEETING and meeting_turn.hold(home, lane):
        return False
    if envelope.expires is not None and envelope.expires <= now and not lane.repeats:
        home.closings.close(expired(envelope, home.epoch, now), lane)
        return False
    if envelope.attempts > envelope.most_attempts:  # the process died with it in quarantine
        home.closings.close(attempts_exhausted(envelope, home.epoch, now), lane)
        return False
    return True


async def _enter_quarantine(home: Home, lane: Lane, envelope: Envelope) -> bool:
    """Wait for the quarantine; return False if the envelope cannot start any more. The agent may release its slot."""
    home.activity.turn_waits(True, "waits for the quarantine", parks=False)
    try:
        return await home.context.quarantine.enter(envelope.envelope_id, lambda: _is_first(home, lane, envelope))
    finally:
        home.activity.turn_waits(False, "", parks=False)


def _is_first(home: Home, lane: Lane, envelope: Envelope) -> bool:
    return not home.phases.is_ending and bool(lane.waiting) and lane.waiting[0] is envelope


def _is_next(home: Home, lane: Lane, envelope: Envelope) -> bool:
    return _is_first(home, lane, envelope) and _has_next(home, lane)


def _requeue(home: Home, lane: Lane) -> None:
    lane.busy = False
    if not home.phases.is_ending:
        home.lane_queue.offer(lane)


async def _mark_isolated(home: Home, envelope: Envelope) -> bool:
    while not home.phases.is_ending:
        try:
            return await home.context.store.write(recovery.isolate, [envelope.envelope_id])
        except Unavailable as error:
            await _pause(home, error)
    return False


async def _pause(home: Home, error: Unavailable) -> None:
    log.warning("store unavailable, trying again: %s", error, extra={"agent": home.address})
    await asyncio.sleep(0.2 + 0.8 * home.context.host.jitter())


async def _wait_for_provider(home: Home, lane: Lane, profile: Profile) -> bool:
    """Wait while the circuit breaker is open; return False if the envelope cannot start any more."""
    breakers = home.context.breakers
    while not breakers.allows(profile):
        await asyncio.sleep(min(0.25, breakers.wait(profile)))  # other turns open and close it
        if not _has_next(home, lane):
            return False
    return True


async def _start(home: Home, lane: Lane, profile: Profile) -> Work | None:
    envelope = lane.waiting[0]
    recorded: tuple[Recorded, ...] = ()
    now = home.context.host.clock.now()
    if envelope.journaled or lane.repeats or envelope.kind in (Kind.MAIL, Kind.MEETING):
        prepared = await _load_input(home, envelope, repeated=lane.repeats > 0)
        if home.phases.is_ending:
            lane.busy = False
            return None
        if prepared is None or not lane.waiting or lane.waiting[0] is not envelope:  # or it was cancelled
            home.closings.forget(lane, envelope)
            return None
        recorded = prepared
    if envelope.hops >= SECOND and (refusal := home.context.budgets.run(envelope.origin)) is not None:
        home.inputs.pop(envelope.envelope_id, None)
        home.closings.close(over_budget(envelope, home.epoch, now, refusal), lane)
        return None
    if envelope.kind is Kind.MEETING and (over := meeting_turn.idle_turn(home, envelope, recorded, now)) is not None:
        home.closings.close(over, lane)
        return None
    lane.work = work = Work(home, envelope, recorded, profile)
    if home.state_log.state is not State.ACTIVE:
        home.state_log.show(State.ACTIVE, f"{envelope.kind} from {envelope.sender}")
    home.context.monitor.began(envelope, work.run_id)
    return work


async def _load_input(home: Home, envelope: Envelope, *, repeated: bool) -> tuple[Recorded, ...] | None:
    """Read the mail or meeting of the turn; return its recorded steps, or None if the envelope is gone."""
    context = home.context
    while not home.phases.is_ending:
        try:
            if envelope.kind is Kind.MAIL and not await _read_mail(home, envelope):
                return None
            if envelope.kind is Kind.MEETING:
                home.inputs[envelope.envelope_id] = await meeting_turn.load_meeting(home, envelope)
            if not envelope.journaled and not repeated:
                return ()
            return await context.store.write(in_progress.recorded, envelope, home.epoch)
        except Unavailable as error:
            await _pause(home, error)
    return None


async def _read_mail(home: Home, envelope: Envelope) -> bool:
    begin, now = mail.begin, home.context.host.clock.now()
    mail_read = await home.context.store.write(begin, envelope.body, home.address, home.epoch, now)
    if mail_read is not None:
        home.inputs[envelope.envelope_id] = mail_read
    return mail_read is not None
