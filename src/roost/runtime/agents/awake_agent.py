"""Interface of an activation for its parts: lanes, turns and timers."""

from __future__ import annotations

from typing import Protocol

from roost.runtime.agents.closings import ClosingOwner, Closings
from roost.runtime.agents.lanes.exclusive import ExclusiveTurns
from roost.runtime.talks.worker import AgentTalks


class AwakeAgent(ClosingOwner, Protocol):
    """Activation, as its parts see it; on its loop."""

    closings: Closings
    exclusive: ExclusiveTurns
    talks: AgentTalks

    @property
    def is_dismissed(self) -> bool:
        """Return True if its agent was stopped or deleted; another activation may have its address by now."""

    @property
    def is_quiet(self) -> bool:
        """Return True if nothing runs, and nothing is being written."""

    @property
    def has_work(self) -> bool:
        """Return True if lanes or talks are being handled."""

    def move_to_other_loop(self) -> None:
        """Move its work to another loop."""

    def record(self) -> None:
        """Write the changes of its lifecycle state."""

    def retire_if_idle(self) -> None:
        """Return the loop and retire, unless there is something to do."""
