"""Idle timer: records after a pause that an agent is idle, and retires it after its idle timeout."""

from __future__ import annotations

import asyncio

from roost.runtime.agents.awake_agent import AwakeAgent
from roost.runtime.agents.state_log import BRIEF

TICK = 0.001
"""Seconds that no timer is exact to."""


class IdleTimer:
    """Timer of one activation, on its loop."""

    __slots__ = ("_agent", "_handle", "_idle_since", "_is_recorded")

    def __init__(self, agent: AwakeAgent) -> None:
        self._agent = agent
        self._handle: asyncio.TimerHandle | None = None
        self._idle_since = 0.0
        self._is_recorded = False
        """True if it is recorded that the agent is idle, and only the idle timeout is left."""

    def start(self) -> None:
        """Count from now. A running pause is not started again: it looks at the time itself."""
        loop = asyncio.get_running_loop()
        self._idle_since = loop.time()
        if self._is_recorded:  # the agent has worked since
            self.cancel()
        if self._handle is None:
            self._handle = loop.call_later(self._pause(), self._fired)

    def cancel(self) -> None:
        self._is_recorded = False
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fired(self) -> None:
        agent = self._agent
        self._handle, self._is_recorded = None, False
        if not agent.is_quiet or agent.lane_queue.has_ready():
            return
        loop = asyncio.get_running_loop()
        idle = loop.time() - self._idle_since
        if idle < self._shortest_pause() - TICK:
            self._handle = loop.call_later(self._pause(), self._fired)
            return
        agent.record()
        left = agent.config.idle_timeout - idle
        if left < TICK or (agent.lane_queue.lanes and agent.lane_queue.all_parked):
            agent.retire_if_idle()
        else:  # with jitter: many agents may have become idle at the same moment
            self._is_recorded = True
            self._handle = loop.call_later(left * (1.0 + 0.1 * agent.context.host.jitter()), self._fired)

    def _pause(self) -> float:
        return self._shortest_pause() * (1.0 + self._agent.context.host.jitter())

    def _shortest_pause(self) -> float:
        """Return a pause that grows with the number of awake agents: thousands at once would contend for the GIL."""
        return min(BRIEF * max(1.0, self._agent.dispatcher.count / 100), self._agent.config.idle_timeout)
