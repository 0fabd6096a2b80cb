"""Host of activations: what an activation may ask of the dispatcher that made it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from roost.core.envelopes.outcomes import WorkClosing, WorkSettled
from roost.runtime.agents.loop_pool import LoopPool
from roost.runtime.agents.settler import Settler
from roost.runtime.ports.notifier import Notifier
from roost.runtime.talks.live_talks import LiveTalks
from roost.runtime.talks.worker import TalkLanes
from roost.runtime.turns.services import TurnServices

if TYPE_CHECKING:
    from roost.runtime.agents.activation import Activation


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
        """Number of envelopes that each awake agent may have in memory."""

    @property
    def is_crowded(self) -> bool:
        """Return True if agents wait for a loop, or many are about to."""

    def awake(self, address: str) -> Activation | None: ...

    def quiet_in(self, address: str, meeting_id: str) -> float:
        """Return the seconds until a turn in a meeting may begin."""

    def forget_task(self, task_id: str) -> None:
        """Have callers that wait for a task look it up: there is more to know of it than what was sent."""

    def release_talk(self, keeper: TalkLanes, talk_id: str) -> bool: ...

    def detach(self, activation: Activation) -> None:
        """Return its loop to the pool until its closings are written."""

    def requeue(self, activation: Activation) -> None:
        """Get a loop again for a detached agent."""

    def leave(self, activation: Activation, results: list[tuple[WorkClosing, WorkSettled]]) -> bool:
        """Retire a detached agent if these results were its last; False: it needs a loop."""

    def release(self, activation: Activation) -> bool:
        """Retire an agent that has nothing to do, and take its loop; False: something has just come for it."""

    def lose(self, activation: Activation) -> bool:
        """Have its work run on another loop; False: it has left this one."""
