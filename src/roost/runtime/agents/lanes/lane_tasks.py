"""Tasks that serve the lanes of an awake agent: each handles the most urgent lane, and then the next one."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from roost.core.talks.runs import StopReason
from roost.runtime.agents import start
from roost.runtime.agents.awake_agent import AwakeAgent
from roost.runtime.agents.lanes.exclusive import OFTEN
from roost.runtime.agents.lanes.lane_queue import Lane
from roost.runtime.agents.phase import LoopPhase
from roost.runtime.execution.cancellation import is_discarded

log = logging.getLogger("roost.agent")

Task = asyncio.Task[Any]
_NONE: frozenset[Task | None] = frozenset()  # shared: few agents ever abandon a task


class LaneTasks:
    """Used on the agent's loop; `is_clean` may be read from any thread."""

    __slots__ = ("_abandoned", "_agent", "_tasks", "count")

    def __init__(self, agent: AwakeAgent) -> None:
        self._agent = agent
        self.count = 0
        """Number of tasks, without abandoned ones."""
        self._tasks: set[Task | None] = set()
        self._abandoned: frozenset[Task | None] = _NONE
        """Tasks of brains that ignore their cancellation."""

    def start_ready(self) -> None:
        """Start tasks for ready lanes, so that up to `max_concurrent_tasks` do not wait for an answer."""
        agent = self._agent
        room = agent.config.max_concurrent_tasks - self.count + agent.activity.waiting
        for _ in range(min(room, agent.lane_queue.offered)):
            self.count += 1
            self._tasks.add(asyncio.get_running_loop().create_task(self._serve(), name=f"agent {agent.address}"))

    async def _serve(self) -> None:
        agent, me, cut_off = self._agent, asyncio.current_task(), None
        try:
            while self._may_serve(me) and (lane := agent.lane_queue.next()) is not None:
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
        if cut_off is not None and not agent.phases.is_ending and not agent.dispatcher.closing:
            log.error(
                "task of an agent was cut off; moving the agent", exc_info=cut_off, extra={"agent": agent.address}
            )
            agent.move_to_other_loop()
        else:
            agent.run_ready()

    def _may_serve(self, me: Task | None) -> bool:
        """Return False if the agent ends, or if others have taken the place of a task that waited."""
        agent = self._agent
        crowded = self.count - agent.activity.waiting > agent.config.max_concurrent_tasks
        return agent.phases.phase is LoopPhase.RUNNING and not crowded and me not in self._abandoned

    async def _handle(self, lane: Lane) -> None:
        agent = self._agent
        if agent.slot.is_released:
            await agent.slot.regain()
        work = await start.begin(agent, lane)
        if work is not None:
            await work.think()
            if agent.exclusive.lane is not None and work.has_changed_state:
                await agent.exclusive.give_way(lane)
            if lane.work is work and work.why is not StopReason.LOST:
                agent.closings.close(work.closing(), lane)
                work.release()

    async def _handle_exclusively(self, lane: Lane) -> None:
        async with self._agent.exclusive.during(lane):
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
