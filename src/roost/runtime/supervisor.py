"""Supervisor: recovers the store, starts workers, detects dead and blocked ones, and does all periodic work.

Restarts are limited: workers that crash too often stay down, and health reports it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Any

from roost.core.failures.faults import Fault
from roost.errors import Unavailable
from roost.ports import Loop
from roost.runtime.agent_watch import AgentWatch
from roost.runtime.agents.loop_pool import MOMENT
from roost.runtime.cluster.membership import Membership
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.figures import FigureKeeper
from roost.runtime.handlers.accounts.deletion import Deletions
from roost.runtime.handlers.accounts.suspension import Suspensions
from roost.runtime.missed_changes import MissedChanges
from roost.runtime.retention import Retention
from roost.runtime.search_index import SearchIndex
from roost.runtime.talks.placement import LostLane, Placement
from roost.runtime.talks.worker import Worker
from roost.stores.sql.agents import agents
from roost.stores.sql.inbox import recovery
from roost.stores.sql.talks import runs

log = logging.getLogger("roost.supervisor")

WATCH = 0.25
SWEEP = 10.0
AGAIN = 0.5
"""Seconds after which a node also takes free work for which another one was chosen: nodes may choose differently."""
SWEEP_OF_NODE = 3.0
"""Seconds between two sweeps of a node of a cluster that gets notices from others."""
CHECK = 1.0
"""Seconds between two comparisons of what a node of a cluster holds with the store, while it gets notices."""
WITHOUT_NOTICES = WATCH / 2
"""The same for a node that gets no notices: each time that the supervisor looks."""


class Supervisor:
    """Runs on a loop of its own, which runs no brains and so never blocks."""

    def __init__(
        self,
        context: RuntimeContext,
        placement: Placement,
        dispatcher: Dispatcher,
        retention: Retention,
        figures: FigureKeeper,
        search_index: SearchIndex,
        deletions: Deletions,
        suspensions: Suspensions,
        membership: Membership | None = None,
    ) -> None:
        self._membership = membership
        self._context = context
        self._placement = placement
        self._dispatcher = dispatcher
        self._agent_watch = AgentWatch(context, dispatcher)
        self._missed_changes = MissedChanges(context, dispatcher)
        self._retention = retention
        self._figures = figures
        self._search_index = search_index
        self._deletions = deletions
        self._suspensions = suspensions
        self._crashes: deque[float] = deque()
        self._crashed_too_often = False
        self._count = 0
        self._closing = False
        self._finishing = False
        """True if workers drain, and no new ones are started."""
        self._latest = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ending: asyncio.Event | None = None
        self._bell: asyncio.Event | None = None
        self.restarts = 0
        self._work_is_free = False
        self._given_up = 0
        """Number of abandoned loops at the last check."""
        self.down: str | None = None
        """Reason why workers are missing."""
        for _ in range(context.limits.talk_workers):
            self._start_worker()
        self._loop = context.host.start_loop("roost-supervisor", self._main, lambda *_: None)

    def finish(self) -> None:
        """Have all workers drain; `close` waits for them."""
        limits = self._context.limits
        self._latest = self._context.host.clock.monotonic() + limits.drain + limits.stop_patience + 3.0
        self._finishing = self._retention.closing = self._search_index.closing = self._deletions.closing = True
        self._placement.closing = True
        for worker in list(self._placement.workers):
            worker.close()

    async def close(self) -> None:
        """Wait for workers and the supervisor's own loop, for a bounded time."""
        for loop in [*(worker.loop for worker in self._placement.workers), self._loop]:
            if loop is self._loop:
                loop.call(self._end)
            if await loop.over.within(max(0.5, self._latest - self._context.host.clock.monotonic())):
                loop.join()

    # --- watching --------------------------------------------------------------------------------

    async def _main(self, loop: Loop) -> None:
        self._ending, self._bell = asyncio.Event(), asyncio.Event()
        self._dispatcher.loops.listen(lambda: loop.call(self._hurry))
        clock = self._context.host.clock
        await self._recover()
        swept = watched = checked = 0.0
        while not self._closing:
            try:
                if self._work_is_free:
                    self._work_is_free = False
                    await self._sweep(chosen=True)
                    swept = min(swept, clock.monotonic() - self._sweep_interval + AGAIN)
                if not swept or clock.monotonic() - swept > self._sweep_interval:
                    swept = clock.monotonic()
                    await self._context.budgets.load()
                    await self._sweep()
                    self._dispatcher.live_talks.trim()
                if self._membership is not None and clock.monotonic() - checked > self._check_interval:
                    checked = clock.monotonic()
                    await self._check_held()
                if clock.monotonic() - watched > WATCH / 2:  # not every moment: it checks all awake agents
                    watched = clock.monotonic()
                    self._watch_all()
                self._dispatcher.grow()
            except Exception:  # nothing else watches, moves and restarts
                log.exception("supervisor loop failed; continuing")
            await self._pause(MOMENT if self._dispatcher.is_crowded else WATCH)
        await self._ending.wait()

    def _watch_all(self) -> None:
        """Check workers, awake agents and the RAM, and start the periodic work that is due."""
        self._watch()
        self._agent_watch.check()
        if self._figures.is_due:
            self._start_task(self._figures.keep(), "figures")
        if self._context.does_chores():
            self._sweep_expired()
            self._sweep_search_index()
            self._sweep_deletions()
        if self._context.ram.update():
            self._dispatcher.retire_idle()
        self._dispatcher.abandon_unstopped()
        self._dispatcher.settler.resume_overdue()

    async def _sweep(self, *, chosen: bool = False) -> None:
        """Look in the store for work that no notification has announced."""
        await self._sweep_talks(chosen=chosen)
        await self._sweep_agents(chosen=chosen)

    async def _recover(self) -> None:
        """Mark what may have been running when the previous process died; no turn starts before that."""
        process = "cluster" if self._context.node else self._context.host.new_id("process")
        while not self._closing:
            try:
                now = self._context.host.clock.now()
                suspects = await self._context.store.write(recovery.recover, now, process)
            except Unavailable as error:
                log.warning("store unavailable, trying again to recover: %s", error)
                await self._pause(1.0)
                continue
            except Exception:  # running without suspects is better than not running
                log.exception("recovery after the death of the previous process failed; continuing without suspects")
                suspects = 0
            if suspects:
                log.warning("previous process died; %d turns may have been running", suspects)
            break
        self._context.recovered.set(None)
        self._dispatcher.start_claims()

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

    def sweep_soon(self) -> None:
        """Look for work that became free; from any thread."""
        self._work_is_free = True
        self._loop.call(self._hurry)

    @property
    def _sweep_interval(self) -> float:
        if self._membership is None:
            return SWEEP
        return min(SWEEP, SWEEP_OF_NODE) if self._context.gets_notices() else WITHOUT_NOTICES

    @property
    def _check_interval(self) -> float:
        return CHECK if self._context.gets_notices() else WITHOUT_NOTICES

    def _takes(self, talk_id: str, profile: str, *, chosen: bool) -> bool:
        """Return whether this node takes a talk that belongs to none; one with an unknown profile waits."""
        if self._membership is None:
            return True
        is_chosen = not chosen or self._membership.place(talk_id, profile) == self._context.node
        return is_chosen and self._dispatcher.knows(profile)

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

    def _sweep_expired(self) -> None:
        """Delete expired rows in a task of its own."""
        if self._retention.is_due and self._retention.trusts_clock():
            self._start_task(self._retention.sweep(), "retention")

    def _sweep_search_index(self) -> None:
        if self._search_index.is_due:
            self._start_task(self._search_index.sweep(), "search index")

    def _sweep_deletions(self) -> None:
        if self._deletions.is_due:
            self._start_task(self._deletions.sweep(), "deletions")

    def _start_task(self, work: Coroutine[Any, Any, object], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check_held(self) -> None:
        """Find changes by other nodes whose notice was lost."""
        try:
            await self._missed_changes.check()
            await self._suspensions.check()
        except Unavailable as error:
            log.warning("store unavailable, changes by other nodes are found later: %s", error)

    async def _sweep_talks(self, *, chosen: bool = False) -> None:
        """Deliver talks that no worker has: all of them after a start, later those with a lost notification.

        `chosen`: of the talks that belong to no node only those for which this one is chosen.
        """
        after = ""
        while not self._closing:
            try:
                found = await self._context.store.read(runs.unfinished, after, 500)
            except Unavailable as error:
                log.warning("store unavailable, unfinished talks are found later: %s", error)
                return
            for talk_id, user_id, agent, node, profile in found:
                is_own = agent or node or self._takes(talk_id, profile, chosen=chosen)
                if is_own and not self._placement.holds(talk_id):
                    self._dispatcher.notifier.deliver_talk(talk_id, user_id, None, agent)
            if len(found) < 500:
                return
            after = found[-1][0]

    async def _sweep_agents(self, *, chosen: bool = False) -> None:
        """Look for the work of agents; `chosen`: the nodes that are chosen for free agents do."""
        look = self._dispatcher.notifier.look if chosen or self._membership is None else self._dispatcher.look
        after = ""
        while not self._closing:
            try:
                found = await self._context.store.read(agents.unfinished, after, 500)
            except Unavailable as error:
                log.warning("store unavailable, agents with work are found later: %s", error)
                return
            for address in found:
                awake = self._dispatcher.awake(address)
                if awake is None or awake.is_idle:  # an idle agent has missed a notification, or its claim failed
                    look(address)
                elif self._membership is not None:  # the notice of another node may have been lost
                    awake.call(awake.look_again)
            if len(found) < 500:
                return
            after = found[-1]

    # --- losing a worker -------------------------------------------------------------------------

    def _start_worker(self) -> None:
        self._count += 1
        self._placement.start_worker(f"roost-worker-{self._count}", self._worker_ended)

    def _worker_ended(self, worker: Worker, error: BaseException | None) -> None:
        """Called on the dying thread, before its tasks are cancelled."""
        if not self._finishing and not worker.retired:
            log.error("worker crashed", exc_info=error, extra={"worker": worker.name})
            self._crashes.append(self._context.host.clock.monotonic())
            culprit = worker.loop.busy_with()
            self._loop.call(self._replace, self._placement.lose(worker), culprit, Fault.INTERNAL)

    def _condemn(self, worker: Worker) -> None:
        busy_with = worker.loop.busy_with()
        log.error("worker's loop is blocked; moving its talks", extra={"worker": worker.name, "task": busy_with})
        # No crash: the run that blocked it is known and fails, and the number of blocked loops is limited.
        lost = self._placement.lose(worker)
        self._context.abandoned.add(worker.loop)
        self._replace(lost, busy_with, Fault.BLOCKED)

    def _replace(self, lost: list[LostLane], culprit: str | None, fault: Fault) -> None:
        self._fill()
        self._placement.move_all(lost, (culprit or "").partition(" ")[0], fault)

    def _fill(self) -> None:
        """Start missing workers, within the limits."""
        limits, now = self._context.limits, self._context.host.clock.monotonic()
        while self._crashes and now - self._crashes[0] > limits.crashes_within:
            self._crashes.popleft()
        while not self._finishing and len(self._placement.workers) < limits.talk_workers:
            if why := self._obstacle():
                self._stay_down(why)
                return
            self.restarts += 1
            self._start_worker()
            self._context.facts.restarted(f"roost-worker-{self._count}")
            self.down = None

    def _obstacle(self) -> str | None:
        self._crashed_too_often = self._crashed_too_often or len(self._crashes) > self._context.limits.crashes
        if self._crashed_too_often:
            return "crashed too often and stay down"
        if self._context.abandoned.is_full:
            return "are blocked by brains that do not return"
        return None

    def _stay_down(self, why: str) -> None:
        have, expected = len(self._placement.workers), self._context.limits.talk_workers
        effect = "answers may be slow until" if have else "messages are kept and will be answered when"
        ends = "Roost is restarted" if self._crashed_too_often else "they return, or Roost is restarted"
        self.down = f"{expected - have} of {expected} workers {why}: {effect} {ends}; the log says more"
        log.critical(self.down)
