"""Owner of a turn: the agent whose turn it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from roost.core.agents.agent import AgentConfig
from roost.core.envelopes.outcomes import StateChange
from roost.ports import Loop, Profile
from roost.runtime.turns.agent_state import AgentState


class OwnerSlot(Protocol):
    """Slot of an awake agent."""

    is_released: bool
    """True if other agents have it while all turns of the agent wait."""

    async def regain(self) -> None:
        """Wait for a slot again."""


class OwnerActivity(Protocol):
    """Lifecycle state of an awake agent, as it follows from its turns."""

    waiting: int
    """Number of tasks whose turn waits for an answer."""

    def turn_waits(self, waiting: bool, cause: str, *, parks: bool, talk: bool = False) -> None:
        """Count a turn that begins or ends to wait for an answer; one that `parks` ends and does not continue."""

    def talk_starts(self, user_id: str) -> None:
        """Become active: a run of a talk starts."""

    def talk_ended(self) -> None:
        """Become idle if there is nothing left to do: a lane of a talk has ended."""

    def settle(self) -> None:
        """Become idle if there is nothing left to do, and wait if all turns that are left wait."""


class TurnOwner(Protocol):
    """Awake agent, used on its loop; any thread may use `call`."""

    loop: Loop
    address: str
    full_address: str
    owner: str
    agent_id: str
    epoch: int
    config: AgentConfig
    turn_state: AgentState

    @property
    def slot(self) -> OwnerSlot: ...

    @property
    def activity(self) -> OwnerActivity: ...

    def call(self, act: Callable[[], None]) -> None:
        """Run a function on the loop, in order."""

    def profile(self) -> Profile: ...

    def orphan(self, task: asyncio.Task[Any]) -> None:
        """Register a task that ignores its cancellation: the loop is not reused while the task runs."""

    def asleep(self) -> StateChange:
        """Return the change of state to record with the turn that asked for sleep."""

    def fell_asleep(self, condition: str) -> None:
        """Start nothing new: the turn that asked for sleep is stored."""
