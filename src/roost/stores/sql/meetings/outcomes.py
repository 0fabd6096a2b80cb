"""Results of writes to meetings."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.envelopes.envelope import Envelope
from roost.core.meetings.effects import MeetingChange
from roost.core.meetings.participants.participant_log import ParticipantLog


@dataclass(frozen=True, slots=True)
class Received:
    """Result of received posts and due timers: envelopes put into inboxes, and changes for participants.

    `unready`: agents that may not work now; the posts to them stay in their inboxes.
    """

    posted: tuple[Envelope, ...]
    changes: tuple[MeetingChange, ...]
    unready: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionResult:
    """Result of an action. `number`: of the entry, among those of its author; 0 if none was written."""

    seated: ParticipantLog
    posted: tuple[Envelope, ...]
    changes: tuple[MeetingChange, ...]
    number: int = 0
