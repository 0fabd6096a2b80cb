"""Streams of talks, profiles, health and links on the wire; requests and replies of methods are in `namespaces`."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from roost.core.monitoring.health import Health
from roost.core.talks import side_channels as notes
from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Change, Message, Sender, Status
from roost.core.talks.side_channels import Note
from roost.ports import Profile
from roost.protocol.values import Wire, made, wired


class NoteReply(Wire):
    """Side output of an agent: its thoughts, tool calls and comments."""

    channel: str
    text: str

    def note(self) -> Note:
        return Note(self.channel, self.text)


class MessageHead(Wire):
    """Message without its text."""

    seq: int
    sender: Sender
    status: Status
    created: datetime
    error: str | None = None
    run_id: str | None = None
    attachments: wired(tuple[Attachment, ...]) = ()  # type: ignore[valid-type]  # a model that is built


class ChangeEvent(Wire):
    """Event of a stream: `text` continues the message after `offset` characters, the notes continue after `noted` ones.

    With `reset` it replaces the message. Only the new part is sent: repeating the whole content would cost the square
    of its length.
    """

    message: MessageHead
    text: str
    offset: int
    cursor: str
    reset: bool = False
    notes: tuple[NoteReply, ...] = ()
    noted: int = 0

    @classmethod
    def of(cls, change: Change) -> Self:
        head = MessageHead.model_validate(change.message, from_attributes=True)
        offset = len(change.message.content) - len(change.text)
        noted = notes.length(change.message.notes) - notes.length(change.notes)
        said = tuple(NoteReply(channel=note.channel, text=note.text) for note in change.notes)
        return cls(
            message=head,
            text=change.text,
            offset=offset,
            cursor=change.cursor,
            reset=change.reset,
            notes=said,
            noted=noted,
        )

    def change(self, before: Message | None) -> Change:
        """Return the change for a reader that knows `before` of this message."""
        new = tuple(reply.note() for reply in self.notes)
        content, said = self.text, new
        if before is not None and not self.reset:
            content, said = before.content + self.text, notes.joined([*before.notes, *new])
        head = dict(self.message) | {"attachments": made(self.message.attachments, "")}
        message = Message(content=content, notes=said, **head)
        return Change(message, self.text, self.cursor, self.reset, new)


class ProfileReply(Wire):
    """Profile as users see it; the location of its code is not public."""

    name: str
    description: str
    model: str | None = None
    temperature: float | None = None
    label: str = ""

    @classmethod
    def of(cls, profile: Profile) -> Self:
        return cls.model_validate(profile, from_attributes=True)

    def profile(self) -> Profile:
        return Profile(self.name, "", self.description, self.model, self.temperature, label=self.label)


class ProfileList(Wire):
    profiles: list[ProfileReply]


class HealthReply(Wire):
    name: str = "roost"
    version: str
    workers: int
    expected: int
    restarts: int
    problem: str | None
    abandoned: int = 0
    awake: int = 0
    waiting_for_place: int = 0

    def health(self) -> Health:
        return Health(
            self.workers,
            self.expected,
            self.restarts,
            self.problem,
            self.abandoned,
            self.awake,
            self.waiting_for_place,
        )


class LinkReply(Wire):
    """Link that signs one browser in as the local user, once."""

    path: str
    seconds: int
