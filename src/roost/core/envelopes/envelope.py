"""Envelopes: units of work in an agent's inbox."""

from __future__ import annotations

from enum import StrEnum

from roost.core.values.priority import Priority
from roost.core.values.records import record


class Kind(StrEnum):
    TALK = "talk"
    TASK = "task"
    MAIL = "mail"
    EVENT = "event"
    MEETING = "meeting"
    ANSWER = "answer"
    """Answer that arrived after its turn had stopped waiting."""


@record(frozen=True, slots=True)
class Envelope:
    """Unit of work in an inbox. Envelopes of the same `lane` are handled one at a time, in order.

    `body` is the prompt of a task, the id of a mail or an event, or a late answer as JSON.
    """

    envelope_id: str
    address: str
    kind: Kind
    lane: str
    priority: Priority
    sender: str
    body: str
    created: float
    rank: float
    due: float = 0.0
    attempts: int = 1
    """Number of the next or current attempt. The store counts failed ones."""
    most_attempts: int = 3
    retry_delay: float = 1.0
    expires: float | None = None
    hops: int = 0
    recorded: bool = False
    """True if it is a task whose result is kept."""
    ask: str | None = None
    """Request that waits for the answer."""
    root: str = ""
    """Id of its origin; empty if it is the origin itself."""
    journaled: bool = False
    """True if an earlier attempt may have recorded steps."""
    suspect: int = 0
    """A `Suspicion`."""

    @property
    def origin(self) -> str:
        return self.root or self.envelope_id

    @property
    def past(self) -> str:
        """Return the lane that holds its history. Ticks of a schedule share a lane, but no history."""
        return self.envelope_id if self.recorded else self.lane
