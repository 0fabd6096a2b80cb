"""Attachments of messages as parts for the ADK.

Stored events refer to a file, and do not contain it: it is in the store already. Before the agent is shown the event, a
reference is replaced by an image, by text or by the name of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.adk.events import Event
from google.genai import types

from roost.brains.chat.attachments import IMAGES, named
from roost.brains.chat.context import without_middle
from roost.core.talks.attachments import Attachment, pack, unpack
from roost.core.talks.messages import Message
from roost.errors import NotFound
from roost.ports import Turn, TurnAttachment

_SCHEME = "roost:"
FILE_CHARS = 20_000
"""Characters of a text file that an agent is shown at most."""


def references(message: Message) -> list[types.Part]:
    """Return a part for each file of a message that refers to it."""
    return [
        types.Part(file_data=types.FileData(file_uri=_SCHEME + pack([one]), mime_type=one.media_type))
        for one in message.attachments
    ]


def parts_of(message: Message) -> list[types.Part]:
    """Return the parts of a new message: its text, and references to its files."""
    files = references(message)
    return [types.Part(text=message.content), *files] if message.content or not files else files


class AttachmentParts:
    """Attachments in the events of one turn."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._images = IMAGES
        self._references: dict[str | bytes, types.Part] = {}
        """References by the text or the bytes that took their place."""

    async def resolve(self, parts: Iterable[types.Part]) -> list[types.Part]:
        """Return parts with the files in place of references."""
        return [await self._resolved(part) for part in parts]

    async def resolve_events(self, events: Sequence[Event]) -> list[Event]:
        """Return events with the files in place of references; if there are many images, the newest ones."""
        found = [await self._of_event(event) for event in reversed(events)]
        return found[::-1]

    def restored(self, event: Event) -> Event:
        """Return an event with references in place of files, to be stored."""
        if event.author != "user" or not self._references:
            return event
        return _with_parts(event, [self._references.get(_key(part), part) for part in _parts(event)])

    async def _of_event(self, event: Event) -> Event:
        if not any(map(_referred, _parts(event))):
            return event
        return _with_parts(event, await self.resolve(_parts(event)))

    async def _resolved(self, part: types.Part) -> types.Part:
        attachment = _referred(part)
        if attachment is None:
            return part
        file = self._turn._opened(attachment)
        try:
            made = await self._shown(file)
        except NotFound:
            made = types.Part(text=f"[attached file that was deleted: {file.name}]")
        self._references[_key(made)] = part
        return made

    async def _shown(self, file: TurnAttachment) -> types.Part:
        if file.is_text:
            return types.Part(text=f"## File: {file.name}\n\n{without_middle(await file.text(), FILE_CHARS)}")
        if file.is_image and self._turn.profile.vision and self._images > 0:
            self._images -= 1
            return types.Part(inline_data=types.Blob(data=await file.read(), mime_type=file.media_type))
        return types.Part(text=named(file.attachment))


def _referred(part: types.Part) -> Attachment | None:
    uri = part.file_data.file_uri if part.file_data else None
    return unpack(uri.removeprefix(_SCHEME))[0] if uri and uri.startswith(_SCHEME) else None


def _key(part: types.Part) -> str | bytes:
    return part.inline_data.data or b"" if part.inline_data else part.text or ""


def _parts(event: Event) -> list[types.Part]:
    return event.content.parts or [] if event.content else []


def _with_parts(event: Event, parts: list[types.Part]) -> Event:
    role = event.content.role if event.content else "user"
    return event.model_copy(update={"content": types.Content(role=role, parts=parts)})
