"""Talks and messages on the wire: camelCase, with strict validation of requests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from roost.core.monitoring.health import Health
from roost.core.talks import side_channels as notes
from roost.core.talks.messages import Change, Message, Page, Sender, Status
from roost.core.talks.side_channels import Note
from roost.core.talks.talk import BusyPolicy, Receipt, Talk
from roost.ports import Profile


class _Wire(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True, frozen=True
    )


class _Incoming(_Wire):
    # Strict, so that a number in place of a string is rejected and not converted.
    model_config = ConfigDict(extra="forbid", strict=True)


class Options(_Incoming):
    """Options of a talk; missing ones are those of the profile."""

    model: str | None = None
    temperature: float | None = None
    instructions: str | None = None


class NewTalk(_Incoming):
    profile: str | None = None
    agent: str | None = None
    busy: str = "interrupt"
    title: str | None = None
    model: str | None = None
    temperature: float | None = None
    instructions: str | None = None


class TalkChange(_Incoming):
    """Changes of a talk; missing fields stay, `options` replace all previous ones."""

    title: str | None = None
    profile: str | None = None
    busy: str | None = None
    options: Options | None = None


class NewMessage(_Incoming):
    content: str
    key: str | None = None
    busy: str | None = None


class StopRequest(_Incoming):
    wait: float = Field(default=0.0, ge=0, le=30)


class TalkReply(_Wire):
    talk_session_id: str
    profile: str
    busy: BusyPolicy
    title: str
    created: datetime
    updated: datetime
    messages: int
    running: bool
    options: Mapping[str, Any]
    agent: str | None = None
    asking: bool = False

    @classmethod
    def of(cls, talk: Talk) -> Self:
        return cls.model_validate(talk, from_attributes=True)

    def talk(self, user_id: str) -> Talk:
        return Talk(user_id=user_id, **dict(self))


class TalkList(_Wire):
    talks: list[TalkReply]


class NoteReply(_Wire):
    """Side output of an agent: its thoughts, tool calls and comments."""

    channel: str
    text: str

    def note(self) -> Note:
        return Note(self.channel, self.text)


class MessageReply(_Wire):
    seq: int
    sender: Sender
    content: str
    status: Status
    created: datetime
    error: str | None = None
    run_id: str | None = None
    notes: tuple[NoteReply, ...] = ()

    @classmethod
    def of(cls, message: Message) -> Self:
        return cls.model_validate(message, from_attributes=True)

    def message(self) -> Message:
        return Message(**{**dict(self), "notes": tuple(reply.note() for reply in self.notes)})


class PageReply(_Wire):
    messages: list[MessageReply]
    cursor: str
    running: bool
    more_before: bool
    more_after: bool

    @classmethod
    def of(cls, page: Page) -> Self:
        return cls.model_validate(page, from_attributes=True)

    def page(self) -> Page:
        shown = tuple(reply.message() for reply in self.messages)
        return Page(shown, self.cursor, self.running, self.more_before, self.more_after)


class MessageHead(_Wire):
    """Message without its text."""

    seq: int
    sender: Sender
    status: Status
    created: datetime
    error: str | None = None
    run_id: str | None = None


class ChangeEvent(_Wire):
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
        message = Message(content=content, notes=said, **dict(self.message))
        return Change(message, self.text, self.cursor, self.reset, new)


class ReceiptReply(_Wire):
    requested: datetime
    acknowledged: datetime | None
    quiesced: datetime | None
    abandoned: tuple[str, ...]

    @classmethod
    def of(cls, receipt: Receipt) -> Self:
        return cls.model_validate(receipt, from_attributes=True)

    def receipt(self) -> Receipt:
        return Receipt(**dict(self))


class ProfileReply(_Wire):
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


class ProfileList(_Wire):
    profiles: list[ProfileReply]


class HealthReply(_Wire):
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


class LinkReply(_Wire):
    """Link that signs one browser in as the local user, once."""

    path: str
    seconds: int
