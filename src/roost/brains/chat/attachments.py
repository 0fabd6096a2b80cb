"""Attachments for a model: images as images if it can see, text files as text, all others by their names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roost.brains.chat import context
from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Message
from roost.errors import NotFound
from roost.ports import Turn, TurnAttachment

IMAGES = 20
"""Number of the newest images that a model is shown; of older ones it gets the names."""


@dataclass(frozen=True, slots=True)
class Image:
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Shown:
    """Attachments of a message as a model gets them."""

    text: str = ""
    images: tuple[Image, ...] = ()

    def after(self, said: str) -> str:
        return "\n\n".join(part for part in (said, self.text) if part)


class AttachmentReader:
    """Attachments of the messages of one run; each is read once."""

    def __init__(self, turn: Turn, window: int, *, sees: bool) -> None:
        self._turn = turn
        self._window = window
        self._sees = sees
        self._shown: dict[int, Shown] = {}

    async def load(self, messages: Iterable[Message]) -> None:
        """Read the attachments of these messages, the newest first."""
        left = IMAGES
        for message in sorted(messages, key=lambda one: one.seq, reverse=True):
            if message.attachments and message.seq not in self._shown:
                self._shown[message.seq] = shown = await self._read(message, left)
                left -= len(shown.images)

    def of(self, message: Message) -> Shown:
        return self._shown.get(message.seq, _NOTHING)

    async def _read(self, message: Message, left: int) -> Shown:
        files = self._turn.attachments_of(message)
        room = min(context.FILE_CHARS, int(self._window * context.FULL) // max(1, sum(file.is_text for file in files)))
        texts: list[str] = []
        images: list[Image] = []
        for file in files:
            try:
                if file.is_image and self._sees and len(images) < left:
                    images.append(Image(file.media_type, await file.read()))
                    texts.append(f"[image: {file.name}]")
                else:
                    texts.append(await _as_text(file, room))
            except NotFound:
                texts.append(f"[attached file that was deleted: {file.name}]")
        return Shown("\n\n".join(texts), tuple(images))


async def _as_text(file: TurnAttachment, room: int) -> str:
    if not file.is_text:
        return named(file.attachment)
    text = context.without_middle(await file.text(), room)
    return f"## File: {file.name}\n\n{text}"


def named(attachment: Attachment) -> str:
    """Return a line about a file that the model is not shown."""
    return f"[attached file, not shown: {attachment.name} ({attachment.media_type}, {attachment.size:,} bytes)]"


_NOTHING = Shown()
