"""Supervisor: starts workers, detects dead and blocked ones, and moves their talks.

Restarts are limited: workers that crash too often stay down, and health reports it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

from roost.core.failures.faults import Fault
from roost.errors import Unavailable
from roost.ports import Loop
from roost.runtime.agents.loop_pool import MOMENT
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.retention import Retention
from roost.runtime.talks.placement import LostLane, Placement
from roost.runtime.talks.worker import Worker
from roost.runtime.watch import AgentWatch
from roost.stores.sql.agents import agents
from roost.stores.sql.inbox import recovery
from roost.stores.sql.talks import runs

log = logging.getLogger("roost.supervisor")

WATCH = 0.25
SWEEP = 10.0


class Supervisor:
    """Runs on a loop of its own, which runs no brains and so never blocks."""

    def __init__(
        self, context: RuntimeContext, placement: Placement, dispatcher: Dispatcher, retention: Retention
    ) -> None:
        self._context = context
        self._placement = placement
        self._dispatcher = dispatcher
        self._watched = AgentWatch(context, dispatcher)
        self._retention = retention
        self._crashes: deque[float] = deque()
        self._worn_out = False
        self._count = 0
        self._closing = False
        self._finishing = False
        """True if workers may end, and no new ones are started."""
        self._latest = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ending: asyncio.Event | None = None
        self._bell: asyncio.Event | None = None
        self.restarts = 0
        self._given_up = 0
        """How many blocked loops there were at the last look."""
        self.down: str | None = None
        """Why workers are missing."""
        for _ in range(context.limits.talk_workers):
            self._start_worker()
        self._loop = context.host.start_loop("roost-supervisor", self._main, lambda *_: None)

    def finish(self) -> None:
        """Have all workers drain; `close` waits for them."""
        limits = self._context.limits
        self._latest = self._context.host.clock.monotonic() + limits.drain + limits.stop_patience + 3.0
        self._finishing = self._retention.closing = True
        for worker in list(self._placement.workers):
            worker.close()

    async def close(self) -> None:
        """Ends in bounded time."""
        for loop in [*(worker.loop for worker in self._placement.workers), self._loop]:
            if loop is self._loop:
                loop.call(self._end)
            if await loop.over.within(max(0.5, self._latest - self._context.host.clock.monotonic())):
                loop.join()

    # --- watching --------------------------------------------------------------------------------

    async def _main(self, loop: Loop) -> None:
        self._ending, self._bell = asyncio.Event(), asyncio.Event()
        self._dispatcher.loops.crowded = lambda: loop.call(self._hurry)
        clock = self._context.host.clock
        await self._recover()
        swept = watched = 0.0
        while not self._closing:
            try:
                if not swept or clock.monotonic() - swept > SWEEP:
                    swept = clock.monotonic()
                    await self._context.budgets.load()
                    await self._sweep()
                    await self._sweep_agents()
                    self._dispatcher.live_talks.trim()
                if clock.monotonic() - watched > WATCH / 2:  # not at each moment: it looks at all who are awake
                    watched = clock.monotonic()
                    self._watch()
                    self._watched.look()
                    self._keep_time()
                    if self._context.ram.update():
                        self._dispatcher.retire_resting()
                    self._dispatcher.insist()
                self._dispatcher.grow()
            except Exception:  # without it nothing is watched, moved or restarted any more
                log.exception("supervisor loop failed; continuing")
            await self._pause(MOMENT if self._dispatcher.is_crowded else WATCH)
        await self._ending.wait()

    async def _recover(self) -> None:
        """Find out what the death of the process before may have cut off; nothing is begun before that."""
        process = self._context.host.new_id("process")
        while not self._closing:
            try:
                now = self._context.host.clock.now()
                suspects = await self._context.store.write(recovery.recover, now, process)
            except Unavailable as error:
                log.warning("the store cannot recover yet, trying again: %s", error)
                await self._pause(1.0)
                continue
            except Exception:  # to work without suspects is better than not to work
                log.exception("the store could not recover from the death of the process before")
                suspects = 0
            if suspects:
                log.warning("the process before has died: %d turns may have been under way", suspects)
            break
        self._context.recovered.set(None)
        self._dispatcher.begin_looking()

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
        for worker in list(self._placement.workers) if not self._finishing else ():
            if worker.loop.silence() > self._context.limits.silent_loop:
                self._condemn(worker)
        before, self._given_up = self._given_up, self._context.abandoned.loops
        if before > self._given_up:
            self._fill()

    def _keep_time(self) -> None:
        """What is too old is removed beside everything else."""
        if self._retention.is_due and self._retention.trusts_clock():
            task = asyncio.get_running_loop().create_task(self._retention.sweep(), name="retention")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _sweep(self) -> None:
        """Find in the store what nobody has: after a start all of it, later what a lost call has left behind."""
        after = ""
        while not self._closing:
            try:
                found = await self._context.store.read(runs.unfinished, after, 500)
            except Unavailable as error:
                log.warning("cannot look for unfinished work: %s", error)
                return
            for talk_id, user_id, agent in found:
                if not self._placement.holds(talk_id):
                    self._dispatcher.notifier.deliver_talk(talk_id, user_id, None, agent)
            if len(found) < 500:
                return
            after = found[-1][0]

    async def _sweep_agents(self) -> None:
        after = ""
        while not self._closing:
            try:
                found = await self._context.store.read(agents.unfinished, after, 500)
            except Unavailable as error:
                log.warning("cannot look for agents with work: %s", error)
                return
            for address in found:
                awake = self._dispatcher.awake(address)
                if awake is None or awake.rests:  # who rests has missed something, or could not be looked at
                    self._dispatcher.notifier.look(address)
            if len(found) < 500:
                return
            after = found[-1]

    # --- losing a worker -------------------------------------------------------------------------

    def _start_worker(self) -> None:
        self._count += 1
        self._placement.start_worker(f"roost-worker-{self._count}", self._worker_ended)

    def _worker_ended(self, worker: Worker, error: BaseException | None) -> None:
        """Called on the dying thread, before what is left there is cancelled."""
        if not self._finishing and not worker.retired:
            log.error("a worker has crashed", exc_info=error, extra={"worker": worker.name})
            self._crashes.append(self._context.host.clock.monotonic())
            culprit = worker.loop.busy_with()
            self._loop.call(self._replace, self._placement.lose(worker), culprit, Fault.INTERNAL)

    def _condemn(self, worker: Worker) -> None:
        busy_with = worker.loop.busy_with()
        log.error("a worker's loop does not turn and is given up", extra={"worker": worker.name, "task": busy_with})
        # No crash: the run that blocked it is known and fails, and the number of blocked loops is limited.
        lost = self._placement.lose(worker)
        self._context.abandoned.add(worker.loop)
        self._replace(lost, busy_with, Fault.BLOCKED)

    def _replace(self, lost: list[LostLane], culprit: str | None, fault: Fault) -> None:
        self._fill()
        self._placement.move_all(lost, (culprit or "").partition(" ")[0], fault)

    def _fill(self) -> None:
        """Start the workers that are missing, as far as they may be."""
        limits, now = self._context.limits, self._context.host.clock.monotonic()
        while self._crashes and now - self._crashes[0] > limits.crashes_within:
            self._crashes.popleft()
        while not self._finishing and len(self._placement.workers) < limits.talk_workers:
            if why := self._why_not():
                self._stay_down(why)
                return
            self.restarts += 1
            self._start_worker()
            self._context.monitor.restarted(f"roost-worker-{self._count}")
            self.down = None

    def _why_not(self) -> str | None:
        self._worn_out = self._worn_out or len(self._crashes) > self._context.limits.crashes
        if self._worn_out:
            return "crashed too often and stay down"
        if self._context.abandoned.is_full:
            return "are blocked by brains that do not return"
        return None

    def _stay_down(self, why: str) -> None:
        have, expected = len(self._placement.workers), self._context.limits.talk_workers
        told = "answers may be slow until" if have else "messages are kept and will be answered when"
        ends = "Roost is restarted" if self._worn_out else "they return, or Roost is restarted"
        self.down = f"{expected - have} of {expected} workers {why}: {told} {ends}; the log says more"
        log.critical(self.down)
