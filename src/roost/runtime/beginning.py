"""Beginning: whether the first in a lane can be done now, and what has to be known of it before."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from roost.core.agents import State
from roost.core.envelopes import Envelope, Kind
from roost.core.steps import Recorded
from roost.errors import Unavailable
from roost.ports import Profile
from roost.runtime import attending
from roost.runtime.closings import expired, worn_out
from roost.runtime.work import Work

if TYPE_CHECKING:
    from roost.runtime.activation import Activation
    from roost.runtime.desk import Lane

log = logging.getLogger("roost.agent")


async def begin(home: Activation, lane: Lane) -> Work | None:
    """The work on the first in the lane; None if there is none to be done now."""
    profile, breakers = home.profile(), home.shop.breakers
    if not _has_next(home, lane):
        return None
    if not breakers.allows(profile) and not await _provider(home, lane, profile):
        return None
    work = await _begun(home, lane, profile)
    if work is None:
        breakers.unused(profile)
    return work


def _has_next(home: Activation, lane: Lane) -> bool:
    """Whether the first in the lane can be begun. What has expired is given up; all may be cancelled by now."""
    if home.ending or not lane.waiting:
        lane.busy = False
        if not home.ending:
            home.desk.offer(lane)
        return False
    envelope, now = lane.waiting[0], home.shop.host.clock.now()
    if envelope.kind is Kind.MEETING and attending.hold(home, lane):
        return False
    if envelope.expires is not None and envelope.expires <= now:
        home.close(expired(envelope, home.epoch, now), lane)
        return False
    return True


async def _provider(home: Activation, lane: Lane, profile: Profile) -> bool:
    """Wait while the provider that the brain asks is not asked by anyone; False: nothing here can be begun now."""
    breakers = home.shop.breakers
    while not breakers.allows(profile):
        await asyncio.sleep(min(0.25, breakers.wait(profile)))  # others open and close it
        if not _has_next(home, lane):
            return False
    return True


async def _begun(home: Activation, lane: Lane, profile: Profile) -> Work | None:
    envelope = lane.waiting[0]
    recorded: tuple[Recorded, ...] = ()
    now = home.shop.host.clock.now()
    if not envelope.claimed or envelope.kind in (Kind.MAIL, Kind.MEETING):
        claimed = await _claim(home, envelope)
        if home.ending:  # it was not tried: whoever lets go of it says so
            lane.busy = False
            if claimed is not None and lane.waiting and lane.waiting[0] is envelope:
                lane.waiting[0] = claimed[0]
            return None
        if claimed is None or not lane.waiting or lane.waiting[0] is not envelope:  # or it is cancelled since
            home.forget(lane, envelope)
            return None
        envelope, recorded = claimed
    if envelope.attempts > envelope.most_attempts:  # its tries were cut off: it may have cut them off
        home.letters.pop(envelope.envelope_id, None)
        home.close(worn_out(envelope, home.epoch, now), lane)
        return None
    if envelope.kind is Kind.MEETING and (over := attending.idle_turn(home, envelope, recorded, now)) is not None:
        home.close(over, lane)
        return None
    lane.work = work = Work(home, envelope, recorded, profile)
    if home.course.state is not State.ACTIVE:
        home.course.move(State.ACTIVE, f"{envelope.kind} from {envelope.sender}")
    home.shop.monitor.began(envelope, work.run_id)
    return work


async def _claim(home: Activation, envelope: Envelope) -> tuple[Envelope, tuple[Recorded, ...]] | None:
    """As it is once its try is counted, and the steps that are on record; None: it is gone."""
    shop = home.shop
    while not home.ending:
        try:
            if envelope.kind is Kind.MAIL and not await _read_letter(home, envelope):
                return None
            if envelope.kind is Kind.MEETING:
                home.letters[envelope.envelope_id] = await attending.attended(home, envelope)
            if envelope.claimed:
                return envelope, ()
            claimed = await shop.store.write(shop.statements.inbox.claim, envelope, home.epoch)
            return (replace(envelope, attempts=claimed[0], claimed=True), claimed[1]) if claimed else None
        except Unavailable as error:
            log.warning("the store is unavailable, trying again: %s", error, extra={"agent": home.address})
            await asyncio.sleep(0.2 + 0.8 * shop.host.jitter())
    return None


async def _read_letter(home: Activation, envelope: Envelope) -> bool:
    begin, now = home.shop.statements.mail.begin, home.shop.host.clock.now()
    letter = await home.shop.store.write(begin, envelope.body, home.address, home.epoch, now)
    if letter is not None:
        home.letters[envelope.envelope_id] = letter
    return letter is not None
