"""Facts: what has happened, in the past tense, told after the commit it reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.core import checks
from roost.errors import Invalid

_CURSOR = re.compile(r"([0-9a-z]{1,40})\.([0-9]{1,18})")


class Name(StrEnum):
    """What can be told."""

    AGENT_CREATED = "AgentCreated"
    AGENT_STARTED = "AgentStarted"
    AGENT_STOPPED = "AgentStopped"
    AGENT_PAUSED = "AgentPaused"
    AGENT_RESUMED = "AgentResumed"
    AGENT_DELETED = "AgentDeleted"
    AGENT_SLEPT = "AgentSlept"
    AGENT_WOKE = "AgentWoke"
    AGENT_FAILED = "AgentFailed"
    AGENT_STUCK = "AgentStuck"
    AGENT_UNSTUCK = "AgentUnstuck"
    TASK_SENT = "TaskSent"
    TASK_STARTED = "TaskStarted"
    TASK_DONE = "TaskDone"
    TASK_FAILED = "TaskFailed"
    TASK_RETRIED = "TaskRetried"
    TASK_CANCELLED = "TaskCancelled"
    TASK_EXPIRED = "TaskExpired"
    MAIL_SENT = "MailSent"
    MAIL_PROCESSED = "MailProcessed"
    BROADCAST_SENT = "BroadcastSent"
    EVENT_PUBLISHED = "EventPublished"
    SCHEDULE_TICKED = "ScheduleTicked"
    MEETING_CALLED = "MeetingCalled"
    MEETING_STARTED = "MeetingStarted"
    MEETING_FAILED = "MeetingFailed"
    MEETING_ENDED = "MeetingEnded"
    LETTER_DIED = "LetterDied"
    RUN_STARTED = "RunStarted"
    RUN_ENDED = "RunEnded"
    APPROVAL_ASKED = "ApprovalAsked"
    APPROVAL_DECIDED = "ApprovalDecided"
    WORKER_RESTARTED = "WorkerRestarted"
    PROVIDER_PAUSED = "ProviderPaused"
    PROVIDER_RESUMED = "ProviderResumed"
    FACTS_MISSED = "FactsMissed"
    """Told to whoever follows too slowly, or from before a restart: what lay in between is not kept."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that has happened. `about`: the agent (`owner/id`) or the talk, or nothing of anyone's."""

    name: Name
    at: datetime
    user_id: str
    about: str | None
    data: Mapping[str, Any] = field(default_factory=dict)
    """Ids, kinds, numbers and reasons; never what people and agents have said."""
    root: str = ""
    """The id of the message, task, mail or event with which it all began."""
    cursor: str = ""
    """Where to go on from after this one."""


@dataclass(frozen=True, slots=True)
class FactPage:
    """Facts in order. `gap`: some that came after the cursor are not kept any more. `more`: there are more already."""

    facts: tuple[Fact, ...]
    cursor: str
    at: datetime
    gap: bool = False
    more: bool = False

    @property
    def is_over(self) -> bool:
        """Whether there is anything to be told, and so whoever waited need not wait any longer."""
        return bool(self.facts) or self.gap

    def in_order(self, user_id: str) -> tuple[Fact, ...]:
        """With one that says so in the place of those that are missing."""
        missed = Fact(Name.FACTS_MISSED, self.at, user_id, None, cursor=self.cursor)
        return (missed, *self.facts) if self.gap else self.facts


def encode(start: str, number: int) -> str:
    """A cursor: opaque to whoever holds it."""
    return f"{start}.{number}"


def decode(cursor: object) -> tuple[str, int]:
    """Of which start of the program it is, and how many facts were told then."""
    found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if found is None:
        raise Invalid(f"the cursor {checks.shown(cursor)} is none of this program: take one from a page of facts")
    return found[1], int(found[2])
