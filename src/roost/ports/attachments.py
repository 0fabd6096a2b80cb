"""Attachments of a turn: files of the messages that a brain is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from roost.core.talks.attachments import Attachment
from roost.errors import Invalid


@dataclass(frozen=True, slots=True)
class TurnAttachment:
    """File of a message. Its bytes are read from the store when they are needed."""

    attachment: Attachment
    _read: Callable[[str], Awaitable[bytes]] = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.attachment.name

    @property
    def media_type(self) -> str:
        return self.attachment.media_type

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return self.attachment.size

    @property
    def is_image(self) -> bool:
        return self.attachment.is_image

    @property
    def is_text(self) -> bool:
        return self.attachment.is_text

    async def read(self) -> bytes:
        """Return its bytes. Raise NotFound if the talk was deleted meanwhile."""
        return await self._read(self.attachment.attachment_id)

    async def text(self) -> str:
        """Return the text of a text file; raise Invalid for any other file."""
        if not self.is_text:
            raise Invalid(f"{self.name!r} is not a text file but {self.media_type}: use `read`")
        return (await self.read()).decode()
