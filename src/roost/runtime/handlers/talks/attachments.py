"""Attachments of messages: upload and download. A file belongs to its user, until a message of a talk has it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from roost.core.talks import attachments
from roost.core.talks.attachments import Attachment, AttachmentFile
from roost.core.values import checks
from roost.errors import NotFound, Unavailable
from roost.ports import Tx
from roost.runtime.context import RuntimeContext
from roost.stores.sql.tables import attachments as attachments_sql

BATCH = 4
"""Pieces per write: other writes go between those of a large file."""


class TalkAttachments:
    """Methods of talks for files in messages."""

    _context: RuntimeContext
    closing: bool

    async def add_attachment(self, user_id: str, name: str, data: bytes) -> Attachment:
        """Upload a file for a message; `add_message` takes its id. One that no message has is deleted after a day.

        The media type is found from the bytes. The name loses its folders. Raise Invalid if the file is empty or too
        large, LimitReached if the user has stored too much.
        """
        checks.name(user_id, "the user id")
        context = self._context
        if self.closing:
            raise Unavailable("this Roost is closing: upload the file again after its restart")
        context.ram.check()
        new_id = context.host.new_id("attachment")
        # On the thread of a reader: no loop has the time to hash a large file.
        attachment = await context.store.read(_described, new_id, name, data, context.limits.attachment_bytes)
        await context.quota.use(user_id, attachment.size)
        pieces = list(attachments.pieces(bytes(data)))
        now = context.host.clock.now()
        for first in range(0, len(pieces), BATCH):
            part, is_last = pieces[first : first + BATCH], first + BATCH >= len(pieces)
            await context.store.write(
                attachments_sql.save, user_id, attachment, first, part, is_last, now, key=attachment.attachment_id
            )
        return attachment

    async def get_attachment(self, user_id: str, attachment_id: str) -> AttachmentFile:
        """Return a file of the user with its bytes. Raise NotFound if it was deleted, or belongs to another user."""
        return await self._context.store.read(_file, *_checked(user_id, attachment_id))

    async def open_attachment(self, user_id: str, attachment_id: str) -> tuple[Attachment, AsyncIterator[bytes]]:
        """Return a file of the user and its pieces, which are read one by one: a slow reader needs little RAM."""
        found = await self._context.store.read(attachments_sql.get, *_checked(user_id, attachment_id))
        return found, self._pieces(found)

    async def _pieces(self, attachment: Attachment) -> AsyncIterator[bytes]:
        for number in range(-(-attachment.size // attachments.PIECE)):
            piece = await self._context.store.read(attachments_sql.read_piece, attachment.attachment_id, number)
            if not piece:
                raise NotFound(f"the attachment {attachment.name!r} was deleted while it was read")
            yield piece


def _checked(user_id: str, attachment_id: str) -> tuple[str, str]:
    return checks.name(user_id, "the user id"), checks.name(attachment_id, "the attachment id")


def _described(_: Tx, attachment_id: str, name: str, data: bytes, most: int) -> Attachment:
    return attachments.described(attachment_id, name, data, most=most)


def _file(tx: Tx, user_id: str, attachment_id: str) -> AttachmentFile:
    return AttachmentFile(attachments_sql.get(tx, user_id, attachment_id), attachments_sql.read(tx, attachment_id))
