"""Transcripts: a talk as Markdown for people, or as JSON that can be imported again.

Both are written in parts, so that a long talk needs little RAM. The parts joined together are the transcript.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from roost.core.talks import attachments, side_channels
from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Message, Sender, Status
from roost.core.talks.side_channels import Note, Notes
from roost.core.talks.talk import BusyPolicy, Talk
from roost.core.values import addresses, checks
from roost.errors import Invalid

KIND = "roost.talk"
OPTIONS = ("model", "temperature", "instructions", "client_tools", "tool_choice")
"""Options of a talk in a transcript."""
VERSION = 1
MOST_BYTES = 64 * 1024 * 1024
"""Largest transcript that can be imported."""
ERROR_BYTES = 100_000
EARLIEST = 1970


class TranscriptFormat(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """Part of a transcript, and the number of its last message, for the next part; None after the last part."""

    text: str
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """Talk that can be imported. `agent` is an address or the name of an agent; without one there is a profile."""

    title: str
    profile: str
    agent: str | None
    busy: BusyPolicy
    options: Mapping[str, Any]
    created: datetime
    messages: tuple[Message, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Bytes of attachments, by id."""

    @property
    def chars(self) -> int:
        """Return the number of characters and bytes that its messages take in the store, about."""
        texts = sum(len(m.content) + side_channels.length(m.notes) + len(m.error or "") for m in self.messages)
        return texts + sum(map(len, self.files.values()))


@dataclass(frozen=True, slots=True)
class TranscriptLimits:
    """Limits of a transcript that is read."""

    text: int
    """Bytes of a message."""
    attachment: int
    """Bytes of a file."""
    attachments: int
    """Files of a message."""


def part(
    talk: Talk,
    messages: Sequence[Message],
    form: TranscriptFormat,
    *,
    is_first: bool,
    is_last: bool,
    files: Mapping[str, bytes] | None = None,
) -> str:
    """Return these messages of a talk as a part of its transcript; only the last part may have none.

    `files`: the bytes of their attachments, by id, for JSON.
    """
    closed = [replace(m, status=Status.INTERRUPTED) if m.status is Status.STREAMING else m for m in messages]
    if form is TranscriptFormat.JSON:
        return _json_part(talk, closed, files or {}, is_first=is_first, is_last=is_last)
    return (_markdown_head(talk) if is_first else "") + "".join(map(_markdown_message, closed))


# --- JSON --------------------------------------------------------------------------------------------


def _json_part(
    talk: Talk, messages: Sequence[Message], files: Mapping[str, bytes], *, is_first: bool, is_last: bool
) -> str:
    """Return a part of the JSON object, with one line per message."""
    lines = [json.dumps(_message(message, files), ensure_ascii=False) for message in messages]
    start = f"{_json_head(talk)}\n" if is_first else ",\n" if lines else ""
    return start + ",\n".join(lines) + ("\n]}\n" if is_last else "")


def _json_head(talk: Talk) -> str:
    about = {
        "title": talk.title,
        "profile": talk.profile,
        "agent": None if talk.agent is None else addresses.shortened(talk.agent, talk.user_id),
        "busy": talk.busy,
        "options": dict(talk.options),
        "created": talk.created.isoformat(),
    }
    head = {"kind": KIND, "version": VERSION, "talk": about}
    return json.dumps(head, ensure_ascii=False).removesuffix("}") + ', "messages": ['


def _message(message: Message, files: Mapping[str, bytes]) -> dict[str, Any]:
    fields = {
        "sender": message.sender,
        "text": message.content,
        "status": message.status,
        "created": message.created.isoformat(),
    }
    optional = {
        "error": message.error,
        "notes": [{"channel": note.channel, "text": note.text} for note in message.notes],
        "attachments": [_attachment(one, files[one.attachment_id]) for one in message.attachments],
    }
    return fields | {name: value for name, value in optional.items() if value}


def _attachment(attachment: Attachment, data: bytes) -> dict[str, Any]:
    return {"name": attachment.name, "data": b64encode(data).decode()}


# --- Markdown ----------------------------------------------------------------------------------------


def _markdown_head(talk: Talk) -> str:
    partner = talk.profile if talk.agent is None else addresses.shortened(talk.agent, talk.user_id)
    return f"# {_escaped(talk.title) or 'New talk'}\n\nTalk with {_escaped(partner)}, begun {_time(talk.created)}.\n"


def _markdown_message(message: Message) -> str:
    """Return a message under a heading. Its text is quoted: no line of it can be taken for a heading."""
    status = "" if message.status is Status.COMPLETE else f", {message.status}"
    blocks = [f"## {message.seq}. {message.sender.capitalize()}, {_time(message.created)}{status}"]
    for note in message.notes:
        blocks += [f"*{_escaped(note.channel)}*", _quoted(_fenced(note.text))]
    if message.content:
        blocks.append(_quoted(message.content))
    blocks += [
        f"*attachment* {_escaped(one.name)} ({one.media_type}, {one.size:,} bytes)" for one in message.attachments
    ]
    if message.error:
        blocks += ["*error*", _quoted(_fenced(message.error))]
    return "\n" + "\n\n".join(blocks) + "\n"


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _quoted(text: str) -> str:
    return "> " + _LINE_END.sub("\n> ", text)


def _fenced(text: str) -> str:
    """Return a text in a fence that is longer than any in it."""
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def _escaped(line: str) -> str:
    """Return one line without the meaning that Markdown gives to characters in it."""
    return _MARKS.sub(r"\\\g<0>", " ".join(line.split()))


_LINE_END = re.compile("\r\n|\n|\r")
_TICKS = re.compile("`+")
_MARKS = re.compile(r"[\\`*_\[\]<>&#!|~$]")


# --- reading -----------------------------------------------------------------------------------------


def read(text: object, limits: TranscriptLimits, new_id: Callable[[], str]) -> Transcript:
    """Return the transcript in a JSON text. Raise Invalid, with the place, for any field that is wrong or unknown.

    `new_id` makes the ids of attachments.
    """
    try:
        found = json.loads(checks.text(text, "the transcript", most=MOST_BYTES), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the transcript is not JSON: {error}") from None
    top = _object(found, "the transcript", ("kind", "version", "talk", "messages"))
    if top["kind"] != KIND:
        raise Invalid(f"kind must be {KIND!r}, not {checks.shown(top['kind'])}: export a talk as JSON")
    if type(top["version"]) is not int or not 1 <= top["version"] <= VERSION:
        raise Invalid(f"version must be at most {VERSION}, not {checks.shown(top['version'])}: use a newer Roost")
    talk = _object(top["talk"], "talk", ("title", "profile", "agent", "busy", "options", "created"))
    values = enumerate(_list(top["messages"], "messages"), start=1)
    reader = _MessageReader(limits, new_id)
    return Transcript(
        title=_title(talk["title"]),
        profile="" if talk["profile"] == "" else checks.name(talk["profile"], "talk.profile"),
        agent=None if talk["agent"] is None else checks.name(talk["agent"], "talk.agent"),
        busy=checks.choice(talk["busy"], "talk.busy", BusyPolicy),
        options=_object(talk["options"], "talk.options", (), OPTIONS),
        created=_moment(talk["created"], "talk.created"),
        messages=tuple(reader.message(value, seq) for seq, value in values),
        files=reader.files,
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


class _MessageReader:
    """Reader of messages, and of the files in them."""

    def __init__(self, limits: TranscriptLimits, new_id: Callable[[], str]) -> None:
        self._limits = limits
        self._new_id = new_id
        self.files: dict[str, bytes] = {}

    def message(self, value: object, seq: int) -> Message:
        where, most = f"messages[{seq - 1}]", self._limits.text
        fields = _object(value, where, ("sender", "text", "status", "created"), ("error", "notes", "attachments"))
        sender = checks.choice(fields["sender"], f"{where}.sender", Sender)
        status = checks.choice(fields["status"], f"{where}.status", Status)
        _check_fields(fields, sender, status, where)
        text, files = fields["text"], self._attachments(fields.get("attachments", []), f"{where}.attachments")
        may_be_empty = sender is Sender.AGENT or bool(files)
        error = fields.get("error")
        return Message(
            seq,
            sender,
            "" if text == "" and may_be_empty else checks.text(text, f"{where}.text", most=most),
            status,
            _moment(fields["created"], f"{where}.created"),
            None if error is None else checks.text(error, f"{where}.error", most=ERROR_BYTES),
            notes=_notes(fields.get("notes", []), f"{where}.notes", most),
            attachments=files,
        )

    def _attachments(self, value: object, where: str) -> tuple[Attachment, ...]:
        values, most = _list(value, where), self._limits.attachments
        if len(values) > most:
            raise Invalid(f"{where} must have at most {most:,} files (attachments_per_message), not {len(values):,}")
        return tuple(self._attachment(one, f"{where}[{number}]") for number, one in enumerate(values))

    def _attachment(self, value: object, where: str) -> Attachment:
        fields = _object(value, where, ("name", "data"))
        try:
            data = b64decode(fields["data"], validate=True)
        except (NotBase64, TypeError, ValueError):
            raise Invalid(f"{where}.data must be a file in Base64") from None
        found = attachments.described(self._new_id(), fields["name"], data, most=self._limits.attachment, what=where)
        self.files[found.attachment_id] = data
        return found


def _check_fields(fields: Mapping[str, Any], sender: Sender, status: Status, where: str) -> None:
    """Raise Invalid for fields that a message of this sender cannot have."""
    if status in (Status.STREAMING, Status.WITHDRAWN) or (sender is Sender.USER and status is not Status.COMPLETE):
        raise Invalid(f"{where}.status must not be {status} for a message of the {sender}")
    if sender is Sender.USER and (fields.get("error") or fields.get("notes")):
        raise Invalid(f"{where} must not have an error or notes: only answers have them")
    if sender is Sender.AGENT and fields.get("attachments"):
        raise Invalid(f"{where} must not have attachments: only messages of people have them")


def _notes(value: object, where: str, most: int) -> Notes:
    notes = []
    for number, one in enumerate(_list(value, where)):
        note = _object(one, f"{where}[{number}]", ("channel", "text"))
        channel = checks.name(note["channel"], f"{where}[{number}].channel")
        notes.append(Note(channel, checks.text(note["text"], f"{where}[{number}].text", most=most)))
    return tuple(notes)


def _title(value: object) -> str:
    """Return a title; one from a first message may be empty or hold characters that cannot be printed."""
    title = "" if value == "" else checks.text(value, "talk.title", most=checks.NAME_LENGTH * 4)
    if len(title) > checks.NAME_LENGTH or len(title.splitlines()) > 1:
        raise Invalid(f"talk.title must be one line of at most {checks.NAME_LENGTH} characters")
    return title


def _object(value: object, where: str, needed: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid(f"{where} must be a JSON object, not {checks.shown(value)}")
    for name in needed:
        if name not in value:
            raise Invalid(f"{where} has no field {name!r}")
    for name in value:
        if name not in needed and name not in optional:
            raise Invalid(f"{where} has the field {checks.shown(name)}, which is not known")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise Invalid(f"{where} must be a JSON list, not {checks.shown(value)}")
    return value


def _moment(value: object, where: str) -> datetime:
    refusal = Invalid(f"{where} must be a time such as 2030-01-01T09:00:00+00:00, not {checks.shown(value)}")
    try:
        moment = datetime.fromisoformat(checks.name(value, where))
        moment = moment.astimezone(UTC) if moment.tzinfo is not None else moment
    except (ValueError, OverflowError):
        raise refusal from None
    if moment.tzinfo is None or moment.year < EARLIEST:
        raise refusal
    return moment
