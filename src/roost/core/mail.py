"""Mail: letters between people and agents, in threads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.core.priority import Priority


class MailStatus(StrEnum):
    """As the recipient has it."""

    UNREAD = "unread"
    READ = "read"
    REPLIED = "replied"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Mail:
    """One letter. `processed`: when the agent it went to had dealt with it."""

    mail_id: str
    thread_id: str
    sender: str
    recipient: str
    subject: str
    body: str
    priority: Priority
    status: MailStatus
    created: datetime
    reply_to: str | None = None
    expires: datetime | None = None
    read_at: datetime | None = None
    processed: datetime | None = None
