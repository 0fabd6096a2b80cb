"""The supervisor: starts workers, sees when one dies or hangs, and has its talks run elsewhere.

Restarts have a limit: a worker that keeps dying stays down, and everyone is told so.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

from roost.core.faults import Fault
from roost.errors import Unavailable
from roost.ports import Loop
from roost.runtime.hall import Hall
from roost.runtime.inbox import Inbox, LostLane
from roost.runtime.loops import MOMENT
from roost.runtime.retention import Retention
from roost.runtime.shop import Shop
from roost.runtime.watch import Watch
from roost.runtime.worker import Worker

log = logging.getLogger("roost.supervisor")

WATCH = 0.25
SWEEP = 10.0


class Supervisor:
    """Runs on a loop of its own, which runs no brains and so never blocks."""

    def __init__(self, shop: Shop, inbox: Inbox, hall: Hall, retention: Retention) -> None:
        self._shop = shop
        self._inbox = inbox
        self._hall = hall
        self._watched = Watch(shop, hall)
        self._retention = retention
        self._crashes: deque[float] = deque()
        self._worn_out = False
        self._count = 0
        self._closing = False
        self._finishing = False
        """Whether workers may end, and no new ones are started."""
        self._latest = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ending: asyncio.Event | None = None
        self._bell: asyncio.Event | None = None
        self.restarts = 0
        self._blocked: list[Loop] = []
        """Given up, and not over yet: each still has its thread."""
        self.down: str | None = None
        """Why workers are missing."""
        for _ in range(shop.limits.talk_workers):
            self._start_worker()
        self._loop = shop.host.start_loop("roost-supervisor", self._main, lambda *_: None)

    def finish(self) -> None:
        """Have all workers drain; `close` waits for them."""
        limits = self._shop.limits
        self._latest = self._shop.host.clock.monotonic() + limits.drain + limits.stop_patience + 3.0
        self._finishing = self._retention.closing = True
        for worker in list(self._inbox.workers):
            worker.close()

    async def close(self) -> None:
        """Ends in bounded time."""
        for loop in [*(worker.loop for worker in self._inbox.workers), self._loop]:
            if loop is self._loop:
                loop.call(self._end)
            if await loop.over.within(max(0.5, self._latest - self._shop.host.clock.monotonic())):
                loop.join()

    # --- watching --------------------------------------------------------------------------------

    async def _main(self, loop: Loop) -> None:
        self._ending, self._bell = asyncio.Event(), asyncio.Event()
        self._hall.loops.crowded = lambda: loop.call(self._hurry)
        clock = self._shop.host.clock
        swept = watched = 0.0
        while not self._closing:
            try:
                if not swept or clock.monotonic() - swept > SWEEP:
                    swept = clock.monotonic()
                    await self._sweep()
                    await self._sweep_agents()
                    self._shop.talks.trim()
                if clock.monotonic() - watched > WATCH / 2:  # not at each moment: it looks at all who are awake
                    watched = clock.monotonic()
                    self._watch()
                    self._watched.look()
                    self._keep_time()
                    if self._shop.memory.look():
                        self._hall.retire_resting()
                    self._hall.insist()
                self._hall.grow()
            except Exception:  # without it nothing is watched, moved or restarted any more
                log.exception("the supervisor has stumbled and goes on")
            await self._pause(MOMENT if self._hall.is_crowded else WATCH)
        await self._ending.wait()

    async def _pause(self, seconds: float) -> None:
        assert self._bell is not None
        timer = asyncio.get_running_loop().call_later(seconds, self._bell.set)
        try:
            await self._bell.wait()
        finally:
            timer.cancel()
        self._bell.clear()

    def _end(self) -> None:
        self._closing = True
        if self._ending is not None:
            self._ending.set()
        self._hurry()

    def _hurry(self) -> None:
        if self._bell is not None:
            self._bell.set()

    def _watch(self) -> None:
        for worker in list(self._inbox.workers) if not self._finishing else ():
            if worker.loop.silence() > self._shop.limits.silent_loop:
                self._condemn(worker)
        before = len(self._blocked)
        self._blocked = [loop for loop in self._blocked if not loop.over.done]
        if before > len(self._blocked):
            self._fill()

    def _keep_time(self) -> None:
        """What is too old is removed beside everything else."""
        if self._retention.is_due:
            task = asyncio.get_running_loop().create_task(self._retention.sweep(), name="retention")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _sweep(self) -> None:
        """Find in the store what nobody has: after a start all of it, later what a lost call has left behind."""
        after = ""
        while not self._closing:
            try:
                found = await self._shop.store.read(self._shop.statements.runs.unfinished, after, 500)
            except Unavailable as error:
                log.warning("cannot look for unfinished work: %s", error)
                return
            for talk_id, user_id, agent in found:
                if not self._inbox.holds(talk_id):
                    self._inbox.deliver(talk_id, user_id, None, agent)
            if len(found) < 500:
                return
            after = found[-1][0]

    async def _sweep_agents(self) -> None:
        after = ""
        while not self._closing:
            try:
                found = await self._shop.store.read(self._shop.statements.agents.unfinished, after, 500)
            except Unavailable as error:
                log.warning("cannot look for agents with work: %s", error)
                return
            for address in found:
                awake = self._hall.awake(address)
                if awake is None or awake.rests:  # who rests has missed something, or could not be looked at
                    self._hall.look(address)
            if len(found) < 500:
                return
            after = found[-1]

    # --- losing a worker -------------------------------------------------------------------------

    def _start_worker(self) -> None:
        self._count += 1
        worker = Worker(
            self._shop, f"roost-worker-{self._count}", release=self._inbox.release, ended=self._worker_ended
        )  # fmt: skip
        self._inbox.workers.append(worker)

    def _worker_ended(self, worker: Worker, error: BaseException | None) -> None:
        """Called on the dying thread, before what is left there is cancelled."""
        if not self._finishing and not worker.retired:
            log.error("a worker has crashed", exc_info=error, extra={"worker": worker.name})
            self._crashes.append(self._shop.host.clock.monotonic())
            culprit = worker.loop.busy_with()
            self._loop.call(self._move_all, self._inbox.lose(worker), culprit, Fault.INTERNAL)

    def _condemn(self, worker: Worker) -> None:
        busy_with = worker.loop.busy_with()
        log.error("a worker's loop does not turn and is given up", extra={"worker": worker.name, "task": busy_with})
        # No crash: whoever blocked it is known and fails, and what is blocked is bounded by itself.
        self._blocked.append(worker.loop)
        self._move_all(self._inbox.lose(worker), busy_with, Fault.BLOCKED)
        worker.loop.abandon()

    def _move_all(self, lost: list[LostLane], culprit: str | None, fault: Fault) -> None:
        """Whoever is known to be to blame fails so, and all others are run again."""
        self._fill()
        for lane in lost:
            to_blame = fault if culprit is not None and culprit.endswith(lane.talk_id) else None
            task = asyncio.get_running_loop().create_task(self._move(lane, to_blame), name=f"move {lane.talk_id}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _move(self, lane: LostLane, to_blame: Fault | None) -> None:
        """Close what a lost lane was writing, with all that was said, and have the rest run elsewhere."""
        run, live = lane.run, self._shop.talks.known(lane.talk_id)
        if run is not None and live is not None:
            closing = run.lost(to_blame)
            try:
                settled = await self._shop.store.write(
                    self._shop.statements.runs.settle, closing, key=lane.talk_id, then=live.settled
                )
                self._shop.monitor.talk_settled(lane.user_id, closing, settled)
            except Unavailable as error:
                log.warning("a lost run is closed later: %s", error, extra={"session": lane.talk_id})
            run.quiesced.set(run.stopped())
        self._inbox.deliver(lane.talk_id, lane.user_id, None)

    def _fill(self) -> None:
        """Start the workers that are missing, as far as they may be."""
        limits, now = self._shop.limits, self._shop.host.clock.monotonic()
        while self._crashes and now - self._crashes[0] > limits.crashes_within:
            self._crashes.popleft()
        while not self._finishing and len(self._inbox.workers) < limits.talk_workers:
            if why := self._why_not():
                self._stay_down(why)
                return
            self.restarts += 1
            self._start_worker()
            self._shop.monitor.restarted(f"roost-worker-{self._count}")
            self.down = None

    def _why_not(self) -> str | None:
        self._worn_out = self._worn_out or len(self._crashes) > self._shop.limits.crashes
        if self._worn_out:
            return "crashed too often and stay down"
        if len(self._blocked) > self._shop.limits.blocked_loops:
            return "are blocked by brains that do not return"
        return None

    def _stay_down(self, why: str) -> None:
        have, expected = len(self._inbox.workers), self._shop.limits.talk_workers
        told = "answers may be slow until" if have else "messages are kept and will be answered when"
        ends = "Roost is restarted" if self._worn_out else "they return, or Roost is restarted"
        self.down = f"{expected - have} of {expected} workers {why}: {told} {ends}; the log says more"
        log.critical(self.down)
