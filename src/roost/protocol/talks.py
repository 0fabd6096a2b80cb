"""Streams of talks, profiles, health and links on the wire; requests and replies of methods are in `namespaces`."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Self

from roost.core.monitoring.health import Health
from roost.core.talks import side_channels as notes
from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Change, Message, Sender, Status
from roost.core.talks.side_channels import Note, Notes
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

    def change(self, before: Message | None) -> Change:
        """Return the change for a reader that knows `before` of this message."""
        new = tuple(reply.note() for reply in self.notes)
        content, said = self.text, new
        if before is not None and not self.reset:
            content, said = before.content + self.text, notes.joined([*before.notes, *new])
        head = dict(self.message) | {"attachments": made(self.message.attachments, "")}
        message = Message(content=content, notes=said, **head)
        return Change(message, self.text, self.cursor, self.reset, new)


def event_json(message: Message, text: str, offset: int, reset: bool, said: Notes, noted: int) -> str:
    """Return a `ChangeEvent` as JSON, without its cursor.

    A stream sends one for each chunk. Formatting it here takes 2 µs; making and dumping the model took 25.
    """
    head = _head_json(
        message.seq, message.sender, message.status, message.created, message.error, message.run_id, message.attachments
    )
    told = ",".join(f'{{"channel":{quoted(note.channel)},"text":{quoted(note.text)}}}' for note in said)
    return (
        f'{{"message":{head},"text":{quoted(text)},"offset":{offset},"reset":{"true" if reset else "false"},'
        f'"notes":[{told}],"noted":{noted}}}'
    )


@lru_cache(maxsize=1024)
def _head_json(
    seq: int,
    sender: str,
    status: Status,
    created: datetime,
    error: str | None,
    run_id: str | None,
    attachments: tuple[Attachment, ...],
) -> str:
    """Return the head of a message as JSON. It is the same for all chunks of a text."""
    message = Message(seq, sender, "", status, created, error, run_id, attachments=attachments)
    return MessageHead.model_validate(message, from_attributes=True).model_dump_json()


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
