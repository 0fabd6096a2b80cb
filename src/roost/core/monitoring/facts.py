"""Facts: monitoring records in the past tense, published after the commit they report."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.core.values import checks
from roost.errors import Invalid

_CURSOR = re.compile(r"([0-9a-z]{1,40})\.([0-9]{1,18})")


class Name(StrEnum):
    """Name of a fact."""

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
    WEBHOOK_PAUSED = "WebhookPaused"
    FACTS_MISSED = "FactsMissed"
    """Sent to a subscriber that is too slow, or continues from before a restart: facts in between are lost."""


FactRow = tuple[Name, float, str | None, str | None, Mapping[str, Any], str]
"""Fact as it is kept: name, time, user, about, data, root.

Without a user it is about an agent (`ann/d`), or an action of a user (`ann/`).
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """Fact. `about`: the agent (`owner/id`), the talk, or empty."""

    name: Name
    at: datetime
    user_id: str
    about: str | None
    data: Mapping[str, Any] = field(default_factory=dict)
    """Ids, kinds, numbers and reasons; never content of users and agents."""
    root: str = ""
    """Id of the message, task, mail or event that started the chain."""
    cursor: str = ""
    """Cursor to continue after this fact."""


@dataclass(frozen=True, slots=True)
class FactPage:
    """Facts in order. `gap`: some after the cursor are no longer kept. `more`: further facts are available."""

    facts: tuple[Fact, ...]
    cursor: str
    at: datetime
    gap: bool = False
    more: bool = False

    @property
    def is_over(self) -> bool:
        """Return whether the page has something to report, so that a wait ends."""
        return bool(self.facts) or self.gap

    def in_order(self, user_id: str) -> tuple[Fact, ...]:
        """Return the facts, with a `FactsMissed` in place of missing ones."""
        if not self.gap:
            return self.facts
        return (Fact(Name.FACTS_MISSED, self.at, user_id, None, cursor=self._before_first()), *self.facts)

    def _before_first(self) -> str:
        if not self.facts:
            return self.cursor
        start, number = decode(self.facts[0].cursor)
        return encode(start, number - 1)


def owner_of(row: FactRow) -> str:
    """Return the user that a fact belongs to; empty if there is none."""
    user_id, about = row[2], row[3]
    return user_id if user_id is not None else (about or "").rpartition("/")[0]


def agent_key(user_id: str, agent_id: object) -> str | None:
    """Return `about` of facts about an agent of the user; None for all agents."""
    checks.name(user_id, "the user id")
    return None if agent_id is None else f"{user_id}/{checks.name(agent_id, 'the agent id')}"


async def about_agents(facts: AsyncIterator[Fact], about: str | None) -> AsyncIterator[Fact]:
    """Yield the facts about one agent, or about all agents; and `FactsMissed`, which may stand for some of them."""
    async for fact in facts:
        is_wanted = "/" in (fact.about or "") if about is None else fact.about == about
        if is_wanted or fact.name is Name.FACTS_MISSED:
            yield fact


def encode(start: str, number: int) -> str:
    """Return an opaque cursor."""
    return f"{start}.{number}"


def decode(cursor: object) -> tuple[str, int]:
    """Return the program start that a cursor belongs to, and its number of facts."""
    found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if found is None:
        raise Invalid(f"the cursor {checks.shown(cursor)} is not from this program: use one from a page of facts")
    return found[1], int(found[2])
