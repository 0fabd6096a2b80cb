"""Timers: fire due timers, and claim sleeping agents that wait for a lower load.

The loop sleeps until the next timer is due; setting an earlier one wakes it. It also polls the store, so that a lost
notification costs time and no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from roost.core.schedules.rules import AHEAD
from roost.core.schedules.schedule import Fired
from roost.errors import Unavailable
from roost.ports import Loop
from roost.runtime.agents.failures import expired
from roost.runtime.context import RuntimeContext
from roost.stores.sql import settlement
from roost.stores.sql.agents import agents
from roost.stores.sql.schedules import clock_changes, schedules
from roost.stores.sql.tables import envelopes

if TYPE_CHECKING:
    from roost.runtime.dispatch.dispatcher import Dispatcher

log = logging.getLogger("roost.timers")

GLANCE = 1.0
"""Seconds between two checks of the clock, which may have been set."""
SLOW_LOOK = 5.0
"""Seconds between two polls of the store."""


class Timers:
    """Has a loop of its own, which runs no brains. `ring` may be called from any thread."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._next: float | None = None
        self._bell: asyncio.Event | None = None
        self._closing = False
        self._offset = self._clock_offset()
        """Wall-clock time minus monotonic time: it changes only when the clock is set."""
        self._checks_record = True
        """True until it is checked whether an earlier process had a wrong clock."""
        self._new_task = partial(context.host.new_id, "task")
        self._loop: Loop | None = None

    def start(self) -> None:
        self._loop = self._context.host.start_loop("roost-timers", self._main, lambda *_: None)

    @property
    def expected(self) -> float | None:
        """Return the time of the next timer, as far as it is known."""
        return self._next

    def ring(self, due: float) -> None:
        """Fire timers no later than at this time."""
        if self._expect(due) and self._loop is not None:
            self._loop.call(self._wake)

    def _expect(self, due: float | None) -> bool:
        """Expect a timer at this time; return True if no earlier one was expected."""
        following = self._next
        if due is None or (following is not None and following <= due):
            return False
        self._next = due
        return True

    async def close(self) -> None:
        self._closing = True
        if self._loop is not None:
            self._loop.call(self._wake)
            if await self._loop.over.within(5.0):
                self._loop.join()

    def _wake(self) -> None:
        if self._bell is not None:
            self._bell.set()

    async def _main(self, loop: Loop) -> None:
        self._bell = asyncio.Event()
        clock = self._context.host.clock
        looked = 0.0
        while not self._closing:
            try:
                await self._check_clock()
                if clock.monotonic() - looked > self._context.poll_interval(SLOW_LOOK) or looked == 0.0:
                    looked = clock.monotonic()
                    await self._look_at_load()
                    self._expect(await self._context.store.read(schedules.next_due))
                if self._next is not None and self._next <= clock.now():
                    await self._fire()
            except Unavailable as error:
                log.warning("store unavailable, timers are fired later: %s", error)
            except Exception:  # nothing else fires timers
                log.exception("timer loop failed; continuing")
            await self._pause()

    def _clock_offset(self) -> float:
        return self._context.host.clock.now() - self._context.host.clock.monotonic()

    async def _check_clock(self) -> None:
        """Compute next times again if a clock that was ahead computed them."""
        before, offset = self._offset, self._clock_offset()
        if offset > before + AHEAD:
            log.warning("clock was set forward by %.0f s; firing timers that have become due", offset - before)
        if not self._checks_record and offset > before - AHEAD:
            self._offset = offset
            return
        now = self._context.host.clock.now()
        if self._checks_record and not await self._context.store.read(clock_changes.was_ahead, now):
            self._checks_record = False
            return
        realigned = await self._context.store.write(clock_changes.realign, now)
        self._checks_record, self._offset = False, offset
        self._next = None
        self._expect(await self._context.store.read(schedules.next_due))
        if realigned:
            log.warning("clock was wrong; next times are computed again from now (%s)", realigned)

    async def _pause(self) -> None:
        assert self._bell is not None
        left = GLANCE if self._next is None else min(GLANCE, max(0.001, self._next - self._context.host.clock.now()))
        timer = asyncio.get_running_loop().call_later(left, self._bell.set)
        try:
            await self._bell.wait()
        finally:
            timer.cancel()
        self._bell.clear()

    async def _fire(self) -> None:
        """Fire all due timers and close all expired envelopes before agents wake: their work would delay the rest."""
        done: list[tuple[float | None, Fired]] = []
        try:
            while not done or (done[-1][1].more and not self._closing):
                now, expected = self._context.host.clock.now(), self._next
                late = None if not expected or expected > now else now - expected
                self._next = None  # timers that are set meanwhile count
                fired = await self._context.store.write(
                    schedules.fire,
                    now,
                    self._new_task,
                    self._dispatcher.has_begun,
                    facts=self._context.facts.ticked,
                )
                self._expect(fired.next)
                done.append((late, fired))
            await self._expire([address for _, fired in done for address in fired.expiring])
        finally:
            for late, fired in done:
                self._fired(late, fired)

    def _fired(self, late: float | None, fired: Fired) -> None:
        if late is not None and (fired.looked or fired.posted):
            self._context.facts.count_late(late, [*fired.looked, *(envelope.address for envelope in fired.posted)])
        for address, task_id in fired.cancelled:
            awake = self._dispatcher.awake(address)
            if awake is not None:
                awake.call(lambda awake=awake, task_id=task_id: awake.cancel(task_id))  # type: ignore[misc]
            self._dispatcher.notifier.changed(task_id)
        self._dispatcher.notifier.deliver(fired.posted)
        if fired.meetings:
            self._dispatcher.meeting_delivery.check(fired.meetings)
        for address in fired.looked:
            self._dispatcher.notifier.look(address)

    async def _expire(self, addresses: Sequence[str]) -> None:
        """Close expired envelopes of agents that are not awake; awake agents close their own."""
        if addresses:
            now = self._context.host.clock.now()
            found = await self._context.store.read(envelopes.expired, addresses, now, self._dispatcher.knows)
            closings = tuple(expired(envelope, epoch, now) for envelope, epoch in found)
            if closings:
                await self._context.store.write(
                    settlement.settle,
                    closings,
                    facts=partial(self._context.facts.settled, closings),
                    then=partial(self._dispatcher.settled, closings),
                )

    async def _look_at_load(self) -> None:
        self._dispatcher.measure_load()
        for address in await self._context.store.read(agents.wanting_load, 10_000):
            self._dispatcher.notifier.look(address)
