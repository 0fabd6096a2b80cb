"""Active agents: read-only view of the agents that are awake in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from roost.core.agents.agent import AgentConfig, State


class ActiveAgent(Protocol):
    """An agent that is awake, as other packages see it. Any thread may call."""

    config: AgentConfig
    noted: frozenset[str]
    """Envelopes whose turns have ended and remember something, which may not be written yet."""

    @property
    def depth(self) -> int:
        """Number of envelopes that it has to handle or to settle."""

    def unwritten(self) -> frozenset[str]:
        """Return the noted envelopes that are not written yet."""

    def call(self, act: Callable[[], None]) -> None:
        """Run it on the agent's loop, in order."""

    def look_again(self) -> None:
        """Ask the store for more; on the loop."""

    def hurry(self, meeting_id: str) -> None:
        """Begin the turn in this meeting without waiting for a quiet moment; on the loop."""


class ActiveAgents(Protocol):
    """Any thread may call."""

    def is_awake(self, address: str) -> bool: ...

    def awake(self, address: str) -> ActiveAgent | None: ...

    def state_of(self, address: str, resting: State) -> State:
        """Return the state of an agent that is in state `resting` when it is not awake."""
