"""Tasks: what an agent is asked to do, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.core.priority import Priority


class TaskStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    """For a person's word."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


OVER = frozenset({TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.EXPIRED})


@dataclass(frozen=True, slots=True)
class Task:
    """`result` is what the agent said; `error` one sentence for people."""

    task_id: str
    agent_id: str
    user_id: str
    sender: str
    prompt: str
    priority: Priority
    status: TaskStatus
    attempts: int
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None
    expires: datetime | None = None
    result: str | None = None
    error: str | None = None
    schedule_id: str | None = None

    @property
    def is_over(self) -> bool:
        return self.status in OVER
