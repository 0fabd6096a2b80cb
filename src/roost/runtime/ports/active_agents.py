"""Active agents: read-only view of the agents that are awake in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from roost.core.agents.agent import AgentConfig, State


class ActiveAgent(Protocol):
    """Awake agent, as other packages see it. Any thread may call."""

    config: AgentConfig
    noted: frozenset[str]
    """Envelopes whose turns have changed memories, which may not be written yet."""

    @property
    def depth(self) -> int:
        """Return the number of envelopes that it has to handle or to settle; one that arrives again counts twice."""

    @property
    def is_full(self) -> bool:
        """Return True if it has as many envelopes to handle or to settle as it may have."""

    def unwritten(self) -> frozenset[str]:
        """Return the envelopes in `noted` that are not written yet."""

    def call(self, act: Callable[[], None]) -> None:
        """Run a function on the agent's loop, in order."""

    def look_again(self) -> None:
        """Claim further envelopes from the store; on the loop."""

    def hurry(self, meeting_id: str) -> None:
        """Start the turn in this meeting without waiting for a quiet moment; on the loop."""


class ActiveAgents(Protocol):
    """Read-only registry of awake agents. Any thread may call."""

    def is_awake(self, address: str) -> bool: ...

    def awake(self, address: str) -> ActiveAgent | None: ...

    def state_of(self, address: str, resting: State) -> State:
        """Return the state of an agent; `resting` is its state when it is not awake."""
