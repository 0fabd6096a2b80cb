"""Mail: letters between people and agents, in threads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.core.checks import NAME_LENGTH
from roost.core.priority import Priority


class MailStatus(StrEnum):
    """As the recipient has it."""

    UNREAD = "unread"
    READ = "read"
    REPLIED = "replied"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True)
class Mail:
    """One letter. `created`: when it was delivered. `processed`: when the agent it went to had dealt with it."""

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

    @property
    def is_answered_by_itself(self) -> bool:
        """Whether what an agent says about it goes back to its sender.

        An agent's reply is not: two agents would thank each other until their hops are used up. Whoever
        wants to go on writes.
        """
        return self.reply_to is None or not self.sender.startswith("agent:")


def answering(subject: str) -> str:
    """The subject of a reply: `Re:` once, however long the thread."""
    return subject if subject[:3].lower() == "re:" else f"Re: {subject}"[:NAME_LENGTH]
