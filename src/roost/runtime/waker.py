"""The waker: fires timers when they are due, and looks at sleepers that wait for a lower load.

It knows when the next timer is due and sleeps until then; whoever sets an earlier one rings. The store is
asked now and then all the same, so that a ring that was lost costs time and no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from roost.core.facts import Name
from roost.core.schedules import Fired
from roost.errors import Unavailable
from roost.ports import Loop
from roost.runtime.closings import expired
from roost.runtime.hall import Hall
from roost.runtime.shop import Shop

log = logging.getLogger("roost.waker")

GLANCE = 1.0
"""Seconds between two looks at the clock, which may have been set."""
SLOW_LOOK = 5.0
"""Seconds between two looks into the store without a reason."""


class Waker:
    """Has a loop of its own, which runs no brains. `ring` may be called from any thread."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        self._next: float | None = None
        self._bell: asyncio.Event | None = None
        self._closing = False
        self._new_task = partial(shop.host.new_id, "task")
        hall.waker = self
        self._loop = shop.host.start_loop("roost-waker", self._main, lambda *_: None)

    def ring(self, due: float) -> None:
        """A timer was set."""
        if self._expect(due):
            self._loop.call(self._wake)

    def _expect(self, due: float | None) -> bool:
        """Whether that is earlier than what was expected so far."""
        following = self._next
        if due is None or (following is not None and following <= due):
            return False
        self._next = due
        return True

    async def close(self) -> None:
        self._closing = True
        self._loop.call(self._wake)
        if await self._loop.over.within(5.0):
            self._loop.join()

    def _wake(self) -> None:
        if self._bell is not None:
            self._bell.set()

    async def _main(self, loop: Loop) -> None:
        self._bell = asyncio.Event()
        clock = self._shop.host.clock
        looked = 0.0
        while not self._closing:
            try:
                if clock.monotonic() - looked > SLOW_LOOK or looked == 0.0:
                    looked = clock.monotonic()
                    await self._look_at_load()
                    self._expect(await self._shop.store.read(self._shop.statements.timers.next_due))
                if self._next is not None and self._next <= clock.now():
                    await self._fire()
            except Unavailable as error:
                log.warning("timers are fired later: %s", error)
            except Exception:  # without it nothing is ever fired again
                log.exception("the waker has stumbled and goes on")
            await self._pause()

    async def _pause(self) -> None:
        assert self._bell is not None
        left = GLANCE if self._next is None else min(GLANCE, max(0.001, self._next - self._shop.host.clock.now()))
        timer = asyncio.get_running_loop().call_later(left, self._bell.set)
        try:
            await self._bell.wait()
        finally:
            timer.cancel()
        self._bell.clear()

    async def _fire(self) -> None:
        """All that is due is fired, and given up, before anyone is woken by it: else they would make the rest late."""
        done: list[tuple[float | None, Fired]] = []
        try:
            while not done or (done[-1][1].more and not self._closing):
                now, expected = self._shop.host.clock.now(), self._next
                late = None if not expected or expected > now else now - expected
                self._next = None  # whoever rings meanwhile is heard
                fired = await self._shop.store.write(
                    self._shop.statements.timers.fire, now, self._new_task, self._hall.has_begun
                )
                self._expect(fired.next)
                done.append((late, fired))
            await self._expire([address for _, fired in done for address in fired.expiring])
        finally:
            for late, fired in done:
                self._fired(late, fired)

    def _fired(self, late: float | None, fired: Fired) -> None:
        self._shop.monitor.ticked(fired.posted, late if fired.looked or fired.posted else None)
        for address, task_id in fired.cancelled:
            self._shop.monitor.tell(Name.TASK_CANCELLED, address, {"task_id": task_id}, root=task_id)
            awake = self._hall.awake(address)
            if awake is not None:
                awake.call(lambda awake=awake, task_id=task_id: awake.cancel(task_id))  # type: ignore[misc]
            self._hall.ends.tell(task_id)
        self._hall.deliver(fired.posted)
        if fired.meetings:
            self._hall.listener.tick(fired.meetings)
        for address in fired.looked:
            self._hall.look(address)

    async def _expire(self, addresses: Sequence[str]) -> None:
        """What nobody came to in time is given up; those who work see to it themselves."""
        if addresses:
            now, inbox = self._shop.host.clock.now(), self._shop.statements.inbox
            found = await self._shop.store.read(inbox.expired, addresses, now, self._hall.knows)
            closings = tuple(expired(envelope, epoch, now) for envelope, epoch in found)
            if closings:
                await self._shop.store.write(inbox.settle, closings, then=partial(self._hall.settled, closings))

    async def _look_at_load(self) -> None:
        self._hall.load = self._shop.host.load()
        for address in await self._shop.store.read(self._shop.statements.agents.wanting_load, 10_000):
            self._hall.look(address)
