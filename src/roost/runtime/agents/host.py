"""Host of activations: what an activation and its parts may ask of the dispatcher."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from roost.core.runs import Closing, Settled
from roost.runtime.agents.loop_pool import LoopPool
from roost.runtime.agents.settler import Settler
from roost.runtime.ports.notifier import Notifier
from roost.runtime.talks.live_talks import LiveTalks
from roost.runtime.talks.worker import TalkLanes
from roost.runtime.turns.services import TurnServices

A = TypeVar("A")


class AgentHost(Protocol):
    """Any thread may call."""

    services: TurnServices
    live_talks: LiveTalks
    notifier: Notifier
    settler: Settler
    loops: LoopPool
    closing: bool

    @property
    def count(self) -> int:
        """Number of agents that are awake."""

    @property
    def share(self) -> int:
        """Number of envelopes that each awake agent may have in RAM."""

    @property
    def is_crowded(self) -> bool:
        """Return True if agents wait for a loop, or many are about to."""

    def quiet_in(self, address: str, meeting_id: str) -> float:
        """Return the seconds until a turn in a meeting may begin."""

    def forget_task(self, task_id: str) -> None:
        """Have callers that wait for a task read it from the store: its envelope does not tell all of it."""

    def release_talk(self, keeper: TalkLanes, talk_id: str) -> bool: ...


class ActivationHost(AgentHost, Protocol[A]):
    """Registry of the activations. Any thread may call."""

    phase_lock: AbstractContextManager[object]
    """Lock of all phase machines: moves are rare and take microseconds, and thousands of agents may be awake."""

    def awake(self, address: str) -> A | None: ...

    def detach(self, activation: A) -> None:
        """Return its loop to the pool until its closings are written."""

    def requeue(self, activation: A) -> None:
        """Get a loop again for a detached agent."""

    def leave(self, activation: A, results: list[tuple[Closing, Settled]]) -> bool:
        """Retire a detached agent if these results were its last; False: it needs a loop."""

    def release(self, activation: A) -> bool:
        """Retire an agent that has nothing to do, and take its loop; False: something has just arrived for it."""

    def lose(self, activation: A) -> bool:
        """Have its work run on another loop; False: it has left this one."""
