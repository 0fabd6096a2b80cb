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


class EnvelopeStatus(StrEnum):
    """State of an envelope, which decides whether it may be handled. A parked one holds its lane."""

    READY = "ready"
    """From its due time on."""
    PARKED = "parked"
    """It waits for an approval."""
    DECIDED = "decided"
    """The approval was decided; nothing has claimed the envelope since."""
    RESUMED = "resumed"
    """A talk has claimed it after the decision: it runs alone, before later messages."""


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
    seq: int = 0
    """Number of the message of a talk that waits for an answer."""
    busy: str = ""
    """Busy policy of that message."""
    status: str = EnvelopeStatus.READY

    @property
    def is_resumed(self) -> bool:
        """Return whether its run was suspended: it runs again alone and unchanged, before later messages."""
        return self.status == EnvelopeStatus.RESUMED

    @property
    def origin(self) -> str:
        return self.root or self.envelope_id

    @property
    def past(self) -> str:
        """Return the lane that holds its history. Ticks of a schedule share a lane, but no history."""
        return self.envelope_id if self.recorded else self.lane


def message_envelope(
    envelope_id: str,
    talk_id: str,
    agent: str,
    seq: int,
    due: float,
    busy: str,
    *,
    attempts: int = 1,
    suspect: int = 0,
    status: str = EnvelopeStatus.READY,
) -> Envelope:
    """Return the envelope of a message in a talk, with an agent or, if `agent` is empty, with a profile."""
    return Envelope(
        envelope_id,
        agent,
        Kind.TALK,
        talk_id,
        Priority.NORMAL,
        "",
        "",
        due,
        due,
        due,
        attempts,
        suspect=suspect,
        seq=seq,
        busy=busy,
        status=status,
    )
