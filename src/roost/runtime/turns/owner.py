"""Owner of a turn: what a turn may ask of the agent whose turn it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from roost.core.agents.agent import AgentConfig
from roost.core.envelopes.outcomes import StateChange
from roost.ports import Loop, Profile
from roost.runtime.turns.agent_state import AgentState


class TurnOwner(Protocol):
    """An agent that is awake, on its loop; `call` may be called from any thread."""

    loop: Loop
    address: str
    full_address: str
    owner: str
    agent_id: str
    config: AgentConfig
    memory: AgentState
    aside: bool
    """True if it has left its place to other agents while all its turns wait."""

    def call(self, act: Callable[[], None]) -> None:
        """Run it on the loop, in order."""

    async def regain(self) -> None:
        """Wait for a place again after it stepped aside."""

    def profile(self) -> Profile: ...

    def waits(self, waiting: bool, cause: str, *, rests: bool, talk: bool = False) -> None:
        """Note that a turn begins or ends to wait for an answer."""

    def orphan(self, task: asyncio.Task[Any]) -> None:
        """Note a task of a brain that ignores its cancellation: its loop is not reused while the task runs."""

    def talking(self, user_id: str) -> None:
        """Note that a run of a talk begins."""

    def talked(self) -> None:
        """Note that a lane of a talk has ended."""

    def asleep(self) -> StateChange:
        """Return the change of state to record with the turn that asked for sleep."""

    def fell_asleep(self, condition: str) -> None:
        """Begin nothing new: the turn that asked for sleep is written."""
