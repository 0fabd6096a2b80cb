"""The supervisor: starts workers, sees when one dies or hangs, and has its talks run elsewhere.

Restarts have a limit: a worker that keeps dying stays down, and everyone is told so.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from roost.core.faults import Fault
from roost.errors import Unavailable
from roost.ports import Loop
from roost.runtime.inbox import Inbox, LostLane
from roost.runtime.shop import Shop
from roost.runtime.worker import Worker

log = logging.getLogger("roost.supervisor")

WATCH = 0.25
SWEEP = 10.0


class Supervisor:
    """Runs on a loop of its own, which runs no brains and so never blocks."""

    def __init__(self, shop: Shop, inbox: Inbox) -> None:
        self._shop = shop
        self._inbox = inbox
        self._crashes: deque[float] = deque()
        self._count = 0
        self._closing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: asyncio.Event | None = None
        self.restarts = 0
        self.down: str | None = None
        """Why no worker is started any more."""
        for _ in range(shop.limits.talk_workers):
            self._start_worker()
        self._loop = shop.host.start_loop("roost-supervisor", self._main, lambda *_: None)

    async def close(self) -> None:
        """Drain all workers; ends in bounded time."""
        self._closing = True
        workers = list(self._inbox.workers)
        for worker in workers:
            worker.close()
        limits, clock = self._shop.limits, self._shop.host.clock
        latest = clock.monotonic() + limits.drain + limits.stop_patience + 3.0
        for loop in [*(worker.loop for worker in workers), self._loop]:
            if loop is self._loop:
                loop.call(self._end)
            if await loop.over.within(max(0.5, latest - clock.monotonic())):
                loop.join()

    # --- watching --------------------------------------------------------------------------------

    async def _main(self, loop: Loop) -> None:
        self._ending = asyncio.Event()
        clock = self._shop.host.clock
        swept = 0.0
        while not self._closing:
            try:
                if not swept or clock.monotonic() - swept > SWEEP:
                    swept = clock.monotonic()
                    await self._sweep()
                    self._shop.talks.trim()
                self._watch()
            except Exception:  # without it nothing is watched, moved or restarted any more
                log.exception("the supervisor has stumbled and goes on")
            await self._pause(WATCH)
        await self._ending.wait()

    async def _pause(self, seconds: float) -> None:
        assert self._ending is not None
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            return

    def _end(self) -> None:
        self._closing = True
        if self._ending is not None:
            self._ending.set()

    def _watch(self) -> None:
        for worker in list(self._inbox.workers):
            if worker.loop.silence() > self._shop.limits.silent_loop:
                self._condemn(worker)

    async def _sweep(self) -> None:
        """Find in the store what nobody has: after a start all of it, later what a lost call has left behind."""
        after = ""
        while not self._closing:
            try:
                found = await self._shop.store.read(self._shop.statements.runs.unfinished, after, 500)
            except Unavailable as error:
                log.warning("cannot look for unfinished work: %s", error)
                return
            for talk_id, user_id in found:
                if not self._inbox.holds(talk_id):
                    self._inbox.deliver(talk_id, user_id, None)
            if len(found) < 500:
                return
            after = found[-1][0]

    # --- losing a worker -------------------------------------------------------------------------

    def _start_worker(self) -> None:
        self._count += 1
        worker = Worker(
            self._shop, f"roost-worker-{self._count}", release=self._inbox.release, ended=self._worker_ended
        )  # fmt: skip
        self._inbox.workers.append(worker)

    def _worker_ended(self, worker: Worker, error: BaseException | None) -> None:
        """Called on the dying thread, before what is left there is cancelled."""
        if not self._closing and not worker.retired:
            log.error("a worker has crashed", exc_info=error, extra={"worker": worker.name})
            self._loop.call(self._move_all, self._inbox.lose(worker), None)

    def _condemn(self, worker: Worker) -> None:
        busy_with = worker.loop.busy_with()
        log.error("a worker's loop does not turn and is given up", extra={"worker": worker.name, "task": busy_with})
        self._move_all(self._inbox.lose(worker), busy_with)
        worker.loop.abandon()

    def _move_all(self, lost: list[LostLane], culprit: str | None) -> None:
        self._replace()
        for lane in lost:
            to_blame = culprit is not None and culprit.endswith(lane.talk_id)
            task = asyncio.get_running_loop().create_task(self._move(lane, to_blame), name=f"move {lane.talk_id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _move(self, lane: LostLane, to_blame: bool) -> None:
        """Close what a lost lane was writing, with all that was said, and have the rest run elsewhere."""
        run, live = lane.run, self._shop.talks.known(lane.talk_id)
        if run is not None and live is not None:
            closing = run.lost(Fault.BLOCKED if to_blame else None)
            try:
                await self._shop.store.write(
                    self._shop.statements.runs.settle, closing, key=lane.talk_id, then=live.settled
                )
            except Unavailable as error:
                log.warning("a lost run is closed later: %s", error, extra={"session": lane.talk_id})
            run.quiesced.set(run.stopped())
        self._inbox.deliver(lane.talk_id, lane.user_id, None)

    def _replace(self) -> None:
        if self._closing:
            return
        limits, now = self._shop.limits, self._shop.host.clock.monotonic()
        self._crashes.append(now)
        while self._crashes and now - self._crashes[0] > limits.crashes_within:
            self._crashes.popleft()
        if len(self._crashes) <= limits.crashes:
            self.restarts += 1
            self._start_worker()
        else:
            left = len(self._inbox.workers)
            self.down = (
                f"{limits.talk_workers - left} of {limits.talk_workers} workers crashed too often and stay down: "
                + ("answers may be slow until" if left else "messages are kept and will be answered when")
                + " Roost is restarted; the log says why they crashed"
            )
            log.critical(self.down)
