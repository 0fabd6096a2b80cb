"""Tasks of agents, and their results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.core.values.priority import Priority


class TaskStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    """Waiting for an approval."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


OVER = frozenset({TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.EXPIRED})


@dataclass(frozen=True, slots=True)
class Task:
    """Task of an agent. `result` is its answer; `error` is one sentence for users."""

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
