"""Activity of an awake agent: its lifecycle state as it follows from its turns."""

from __future__ import annotations

from roost.core.agents.agent import State
from roost.runtime.agents.awake_agent import AwakeAgent


class Activity:
    """`all_wait` may be read from any thread; everything else happens on the agent's loop."""

    __slots__ = ("_agent", "_talks_waiting", "waiting")

    def __init__(self, agent: AwakeAgent) -> None:
        self._agent = agent
        self.waiting = 0
        """Number of tasks whose turn waits for an answer; other lanes use their places."""
        self._talks_waiting = 0
        """Number of turns of talks that wait for an answer."""

    def turn_waits(self, waiting: bool, cause: str, *, parks: bool, talk: bool = False) -> None:
        """Count a turn that begins or ends to wait; the agent waits if all its turns do.

        A turn that `parks` ends and does not continue. The turn of a `talk` is not in a lane.
        """
        change = 1 if waiting else -1
        if talk:
            self._talks_waiting += change
        else:
            self.waiting += change
        agent, running = self._agent, self._running
        agent.exclusive.changed()
        if agent.state_log.state is State.ACTIVE and not running:
            agent.state_log.show(State.WAITING, cause)
        elif agent.state_log.state is State.WAITING and running > 0 and not parks:
            agent.state_log.show(State.ACTIVE, "continues")
        agent.run_ready()

    def talk_starts(self, user_id: str) -> None:
        if self._agent.state_log.state is not State.ACTIVE:
            self._agent.state_log.show(State.ACTIVE, f"talk from user:{user_id}")

    def talk_ended(self) -> None:
        self.settle()
        self._agent.run_ready()

    def settle(self, cause: str = "nothing left to do") -> None:
        """Become idle if there is nothing left to do, and wait if all turns that are left wait."""
        agent, state = self._agent, self._agent.state_log.state
        if agent.lane_queue.has_ready() or state is State.IDLE or agent.is_dismissed:
            return
        if not agent.has_work:
            agent.state_log.move(State.IDLE, cause)
        elif state is State.ACTIVE and self._are_waiting and not self._running:
            agent.state_log.show(State.WAITING, "waits for an answer")

    @property
    def all_wait(self) -> bool:
        """Return True if there are turns, and all of them wait for an answer."""
        return self._are_waiting and self._running <= 0

    @property
    def _are_waiting(self) -> bool:
        return self.waiting + self._talks_waiting > 0

    @property
    def _running(self) -> int:
        """Number of turns that run and do not wait."""
        agent = self._agent
        return agent.lane_queue.busy + agent.talks.running - self.waiting - self._talks_waiting
