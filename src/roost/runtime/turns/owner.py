"""Owner of a turn: the agent whose turn it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from roost.core.agents.agent import AgentConfig
from roost.core.envelopes.outcomes import StateChange
from roost.ports import Loop, Profile
from roost.runtime.turns.agent_state import AgentState


class TurnOwner(Protocol):
    """Awake agent, used on its loop; any thread may use `call`."""

    loop: Loop
    address: str
    full_address: str
    owner: str
    agent_id: str
    config: AgentConfig
    turn_state: AgentState
    aside: bool
    """True if it has released its slot while all its turns wait."""

    def call(self, act: Callable[[], None]) -> None:
        """Run a function on the loop, in order."""

    async def regain(self) -> None:
        """Wait for a slot, after it was released."""

    def profile(self) -> Profile: ...

    def waits(self, waiting: bool, cause: str, *, rests: bool, talk: bool = False) -> None:
        """Record that a turn starts or ends waiting for an answer."""

    def orphan(self, task: asyncio.Task[Any]) -> None:
        """Register a task that ignores its cancellation: the loop is not reused while the task runs."""

    def talking(self, user_id: str) -> None:
        """Record that a run of a talk starts."""

    def talked(self) -> None:
        """Record that a lane of a talk has ended."""

    def asleep(self) -> StateChange:
        """Return the change of state to record with the turn that asked for sleep."""

    def fell_asleep(self, condition: str) -> None:
        """Start nothing new: the turn that asked for sleep is stored."""
