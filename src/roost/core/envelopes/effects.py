"""Effects: everything that a turn or a user sends."""

from __future__ import annotations

from typing import Any

from roost.core.brain_data.memories import Remember
from roost.core.envelopes.envelope import Envelope
from roost.core.meetings.effects import MeetingEffect
from roost.core.values.addresses import parse
from roost.core.values.priority import Priority
from roost.core.values.records import record


@record(frozen=True, slots=True)
class SendTask:
    """Task to post. Repeating it with the same `key` changes nothing. `schedule_id`: it is a tick of that schedule."""

    envelope: Envelope
    key: str | None = None
    schedule_id: str | None = None


@record(frozen=True, slots=True)
class SendMail:
    """Mail to a user (no envelope) or to an agent."""

    mail_id: str
    thread_id: str | None
    sender: str
    recipient: str
    subject: str
    body: str
    priority: Priority
    created: float
    expires: float | None
    reply_to: str | None
    key: str | None
    envelope: Envelope | None
    check_by: float | None = None
    """Latest time at which the agent checks its mail, if this mail does not wake it."""
    hops: int = 0
    root: str = ""

    @property
    def origin(self) -> str:
        return self.root or self.mail_id


@record(frozen=True, slots=True)
class Publish:
    """Event to publish. Without subscribers it becomes a dead letter, unless `optional`."""

    event_id: str
    user_id: str
    name: str
    data: Any
    priority: Priority
    publisher: str
    created: float
    hops: int = 0
    optional: bool = False
    root: str = ""


def urgent_mail(m: SendMail) -> Publish | None:
    """Return the event that announces urgent mail to the owner's agents; its id derives from the mail id."""
    if m.priority is not Priority.URGENT:
        return None
    data = {"mail_id": m.mail_id, "to": m.recipient, "from": m.sender, "subject": m.subject}
    return Publish(
        event_id=urgent_mail_id(m.mail_id),
        user_id=parse(m.recipient, "").user_id,
        name="urgent_mail",
        data=data,
        priority=m.priority,
        publisher=m.sender,
        created=m.created,
        hops=m.hops,
        optional=True,
        root=m.origin,
    )


def urgent_mail_id(mail_id: str) -> str:
    """Return the id of the event that announces an urgent mail."""
    return f"event_{mail_id.removeprefix('mail_')}"


@record(frozen=True, slots=True)
class Broadcast:
    """Message to many agents, each in its own envelope."""

    broadcast_id: str
    sender: str
    envelopes: tuple[Envelope, ...]
    crowded: tuple[Envelope, ...] = ()
    """Envelopes for full inboxes; they become dead letters."""


Effect = SendTask | SendMail | Publish | Remember | Broadcast | MeetingEffect


def messages(effect: Effect) -> tuple[Envelope, ...]:
    """Return the envelopes of a task or a broadcast."""
    if type(effect) is SendTask:
        return (effect.envelope,)
    return effect.envelopes if type(effect) is Broadcast else ()
