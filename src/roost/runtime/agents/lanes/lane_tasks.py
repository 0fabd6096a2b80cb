"""Tasks that serve the lanes of an awake agent: each handles the most urgent lane, and then the next one."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from roost.core.talks.runs import StopReason
from roost.runtime.agents import start
from roost.runtime.agents.home import Home
from roost.runtime.agents.lanes.exclusive import OFTEN
from roost.runtime.agents.lanes.lane_queue import Lane
from roost.runtime.agents.phase import LoopPhase
from roost.runtime.execution.cancellation import is_discarded

log = logging.getLogger("roost.agent")

Task = asyncio.Task[Any]
_NONE: frozenset[Task | None] = frozenset()  # shared: few agents ever abandon a task


class LaneTasks:
    """Used on the agent's loop; `is_clean` may be read from any thread."""

    __slots__ = ("_abandoned", "_home", "_tasks", "count")

    def __init__(self, home: Home) -> None:
        self._home = home
        self.count = 0
        """Number of tasks, without abandoned ones."""
        self._tasks: set[Task | None] = set()
        self._abandoned: frozenset[Task | None] = _NONE
        """Tasks of brains that ignore their cancellation."""

    def start_ready(self) -> None:
        """Start tasks for ready lanes, so that up to `max_concurrent_tasks` do not wait for an answer."""
        home = self._home
        room = home.config.max_concurrent_tasks - self.count + home.activity.waiting
        for _ in range(min(room, home.lane_queue.offered)):
            self.count += 1
            self._tasks.add(asyncio.get_running_loop().create_task(self._serve(), name=f"agent {home.address}"))

    async def _serve(self) -> None:
        home, me, cut_off = self._home, asyncio.current_task(), None
        try:
            while self._may_serve(me) and (lane := home.lane_queue.next()) is not None:
                lane.busy = True
                await (self._handle(lane) if lane.repeats < OFTEN else self._handle_exclusively(lane))
        except BaseException as error:  # the agent continues with its other lanes
            if isinstance(error, GeneratorExit) and is_discarded(me):
                raise
            cut_off = error
        self._tasks.discard(me)
        if me in self._abandoned:
            self._forget(me)
            return
        self.count -= 1
        if cut_off is not None and not home.phases.is_ending and not home.dispatcher.closing:
            log.error("task of an agent was cut off; moving the agent", exc_info=cut_off, extra={"agent": home.address})
            home.move_to_other_loop()
        else:
            home.run_ready()

    def _may_serve(self, me: Task | None) -> bool:
        """Return False if the agent ends, or if others have taken the place of a task that waited."""
        home = self._home
        crowded = self.count - home.activity.waiting > home.config.max_concurrent_tasks
        return home.phases.phase is LoopPhase.RUNNING and not crowded and me not in self._abandoned

    async def _handle(self, lane: Lane) -> None:
        home = self._home
        if home.slot.is_released:
            await home.slot.regain()
        work = await start.begin(home, lane)
        if work is not None:
            await work.think()
            if home.exclusive.lane is not None and work.has_changed_state:
                await home.exclusive.give_way(lane)
            if lane.work is work and work.why is not StopReason.LOST:
                home.closings.close(work.closing(), lane)
                work.release()

    async def _handle_exclusively(self, lane: Lane) -> None:
        async with self._home.exclusive.during(lane):
            await self._handle(lane)

    def replace(self, task: Task) -> None:
        """Abandon a task, so that another one can take its place."""
        self._abandoned |= {task}
        self.count -= 1

    def abandon(self, task: Task) -> None:
        """Note a task of a brain that serves no lane and ignores its cancellation, until it ends."""
        self._abandoned |= {task}
        task.add_done_callback(self._forget)

    def _forget(self, task: Task | None) -> None:
        self._abandoned -= {task}

    @property
    def is_clean(self) -> bool:
        """Return True if no abandoned task is left, so that the loop can be reused."""
        return not self._abandoned
