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
from roost.runtime.agents.awake_agent import AwakeAgent
from roost.runtime.agents.failures import attempts_exhausted, expired, over_budget
from roost.runtime.agents.lanes.lane_queue import Lane
from roost.runtime.agents.work import Work
from roost.stores.sql import mail
from roost.stores.sql.inbox import in_progress, recovery

log = logging.getLogger("roost.agent")


async def begin(agent: AwakeAgent, lane: Lane) -> Work | None:
    """Return the work on the first envelope of the lane; None if it cannot start now."""
    profile, breakers = agent.profile(), agent.context.breakers
    if not _has_next(agent, lane):
        return None
    if lane.waiting[0].suspect >= Suspicion.QUARANTINED:
        return await _begin_isolated(agent, lane, profile)
    if not breakers.allows(profile) and not await _wait_for_provider(agent, lane, profile):
        return None
    work = await _start(agent, lane, profile)
    if work is None:
        breakers.release(profile)
    return work


async def _begin_isolated(agent: AwakeAgent, lane: Lane, profile: Profile) -> Work | None:
    """Start in quarantine until the work is closed. It waits outside of it while the circuit breaker is open."""
    envelope, breakers, work = lane.waiting[0], agent.context.breakers, None
    while await _enter_quarantine(agent, lane, envelope):
        try:
            if agent.slot.is_released:
                await agent.slot.regain()
            if breakers.allows(profile):
                if await _mark_isolated(agent, envelope) and _is_next(agent, lane, envelope):
                    work = await _start(agent, lane, profile)
                else:
                    _requeue(agent, lane)
                if work is None:
                    breakers.release(profile)
                return work
        finally:
            if work is None:
                agent.context.quarantine.leave(envelope.envelope_id)
        if not await _wait_for_provider(agent, lane, profile):
            return None
        breakers.release(profile)
    _requeue(agent, lane)
    return None


def _has_next(agent: AwakeAgent, lane: Lane) -> bool:
    """Return True if the first envelope can start; close it if it has expired or has no attempts left."""
    if agent.phases.is_ending or not lane.waiting:
        _requeue(agent, lane)
        return False
    envelope, now = lane.waiting[0], agent.context.host.clock.now()
    if envelope.kind is Kind.MEETING and meeting_turn.hold(agent, lane):
        return False
    if envelope.expires is not None and envelope.expires <= now and not lane.repeats:
        agent.closings.close(expired(envelope, agent.epoch, now), lane)
        return False
    if envelope.attempts > envelope.most_attempts:  # the process died with it in quarantine
        agent.closings.close(attempts_exhausted(envelope, agent.epoch, now), lane)
        return False
    return True


async def _enter_quarantine(agent: AwakeAgent, lane: Lane, envelope: Envelope) -> bool:
    """Wait for the quarantine; return False if the envelope cannot start any more. The agent may release its slot."""
    agent.activity.turn_waits(True, "waits for the quarantine", parks=False)
    try:
        return await agent.context.quarantine.enter(envelope.envelope_id, lambda: _is_first(agent, lane, envelope))
    finally:
        agent.activity.turn_waits(False, "", parks=False)


def _is_first(agent: AwakeAgent, lane: Lane, envelope: Envelope) -> bool:
    return not agent.phases.is_ending and bool(lane.waiting) and lane.waiting[0] is envelope


def _is_next(agent: AwakeAgent, lane: Lane, envelope: Envelope) -> bool:
    return _is_first(agent, lane, envelope) and _has_next(agent, lane)


def _requeue(agent: AwakeAgent, lane: Lane) -> None:
    lane.busy = False
    if not agent.phases.is_ending:
        agent.lane_queue.offer(lane)


async def _mark_isolated(agent: AwakeAgent, envelope: Envelope) -> bool:
    while not agent.phases.is_ending:
        try:
            return await agent.context.store.write(recovery.isolate, [envelope.envelope_id])
        except Unavailable as error:
            await _pause(agent, error)
    return False


async def _pause(agent: AwakeAgent, error: Unavailable) -> None:
    log.warning("store unavailable, trying again: %s", error, extra={"agent": agent.address})
    await asyncio.sleep(0.2 + 0.8 * agent.context.host.jitter())


async def _wait_for_provider(agent: AwakeAgent, lane: Lane, profile: Profile) -> bool:
    """Wait while the circuit breaker is open; return False if the envelope cannot start any more."""
    breakers = agent.context.breakers
    while not breakers.allows(profile):
        await asyncio.sleep(min(0.25, breakers.wait(profile)))  # other turns open and close it
        if not _has_next(agent, lane):
            return False
    return True


async def _start(agent: AwakeAgent, lane: Lane, profile: Profile) -> Work | None:
    envelope = lane.waiting[0]
    recorded: tuple[Recorded, ...] = ()
    now = agent.context.host.clock.now()
    if envelope.journaled or lane.repeats or envelope.kind in (Kind.MAIL, Kind.MEETING):
        prepared = await _load_input(agent, envelope, repeated=lane.repeats > 0)
        if agent.phases.is_ending:
            lane.busy = False
            return None
        if prepared is None or not lane.waiting or lane.waiting[0] is not envelope:  # or it was cancelled
            agent.closings.forget(lane, envelope)
            return None
        recorded = prepared
    if envelope.hops >= SECOND and (refusal := agent.context.budgets.run(envelope.origin)) is not None:
        agent.inputs.pop(envelope.envelope_id, None)
        agent.closings.close(over_budget(envelope, agent.epoch, now, refusal), lane)
        return None
    if envelope.kind is Kind.MEETING and (over := meeting_turn.idle_turn(agent, envelope, recorded, now)) is not None:
        agent.closings.close(over, lane)
        return None
    lane.work = work = Work(agent, envelope, recorded, profile)
    if agent.state_log.state is not State.ACTIVE:
        agent.state_log.show(State.ACTIVE, f"{envelope.kind} from {envelope.sender}")
    agent.context.facts.began(envelope, work.run_id)
    return work


async def _load_input(agent: AwakeAgent, envelope: Envelope, *, repeated: bool) -> tuple[Recorded, ...] | None:
    """Read the mail or meeting of the turn; return its recorded steps, or None if the envelope is gone."""
    context = agent.context
    while not agent.phases.is_ending:
        try:
            if envelope.kind is Kind.MAIL and not await _read_mail(agent, envelope):
                return None
            if envelope.kind is Kind.MEETING:
                agent.inputs[envelope.envelope_id] = await meeting_turn.load_meeting(agent, envelope)
            if not envelope.journaled and not repeated:
                return ()
            return await context.store.write(in_progress.recorded, envelope, agent.epoch)
        except Unavailable as error:
            await _pause(agent, error)
    return None


async def _read_mail(agent: AwakeAgent, envelope: Envelope) -> bool:
    begin, now = mail.begin, agent.context.host.clock.now()
    mail_read = await agent.context.store.write(begin, envelope.body, agent.address, agent.epoch, now)
    if mail_read is not None:
        agent.inputs[envelope.envelope_id] = mail_read
    return mail_read is not None
