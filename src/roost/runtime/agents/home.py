"""Home of a lane: what the parts of an awake agent may ask of its activation."""

from __future__ import annotations

from typing import Protocol

from roost.core.agents.agent import State
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.outcomes import WorkClosing
from roost.runtime.agents.lane_queue import Lane, LaneQueue
from roost.runtime.agents.state_log import StateLog
from roost.runtime.agents.work import WorkOwner


class Home(WorkOwner, Protocol):
    """An activation, on its loop."""

    lane_queue: LaneQueue
    state_log: StateLog

    @property
    def is_ending(self) -> bool:
        """Return True if it starts no more turns."""

    def go_on(self) -> None:
        """Start as many lanes as there may be."""

    def close(self, closing: WorkClosing, lane: Lane) -> None:
        """Settle the first envelope of a lane."""

    def forget(self, lane: Lane, envelope: Envelope) -> None:
        """Drop the first envelope of a lane: it is gone from the store."""

    def show(self, state: State, cause: str) -> None:
        """Move to a state, which is recorded with the work or in a moment."""

    def quiet_in(self, meeting_id: str) -> float:
        """Return the seconds until its turn in a meeting may begin."""
