"""Attachments: files and images in messages. Their type follows from their bytes; the sender's word does not count."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from hashlib import sha256

from roost.core.values import checks
from roost.errors import Invalid

PIECE = 256 * 1024
"""Bytes of a file in one row of the store."""
TEXT = "text/plain"
BINARY = "application/octet-stream"
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
"""Types of raster images, by their first bytes. An SVG image can hold scripts: it is a text."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """File of a message, without its bytes. `size` is in bytes."""

    attachment_id: str
    name: str
    media_type: str
    size: int
    sha256: str

    @property
    def is_image(self) -> bool:
        return self.media_type.startswith("image/")

    @property
    def is_text(self) -> bool:
        return self.media_type == TEXT


@dataclass(frozen=True, slots=True)
class AttachmentFile:
    """Attachment with its bytes."""

    attachment: Attachment
    data: bytes


def described(attachment_id: str, name: object, data: object, *, most: int, what: str = "the file") -> Attachment:
    """Return the attachment of these bytes. Raise Invalid if the name or the size is not allowed."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise Invalid(f"{what} must be bytes, not {type(data).__name__}")
    content = bytes(data)
    if not content:
        raise Invalid(f"{what} is empty: choose one with content")
    check_size(len(content), most, what)
    digest = sha256(content).hexdigest()
    return Attachment(attachment_id, file_name(name, f"the name of {what}"), media_type(content), len(content), digest)


def check_size(size: int, most: int, what: str = "the file") -> None:
    if size > most:
        raise Invalid(
            f"{what} is too large: {size:,} bytes, and {most:,} are allowed (attachment_bytes): send a smaller one"
        )


def file_name(value: object, what: str) -> str:
    """Return a file's name without its folders."""
    name = checks.name(value, what).replace("\\", "/").rpartition("/")[2].strip()
    if name in ("", ".", ".."):
        raise Invalid(f"{what} must be a file name, not {checks.shown(value)}")
    return name


def media_type(data: bytes) -> str:
    """Return the media type of a file: of an image, plain text, or any other bytes."""
    for start, kind in _IMAGES.items():
        if data.startswith(start):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return TEXT if _is_text(data) else BINARY


def _is_text(data: bytes) -> bool:
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def ids(values: object, *, most: int) -> tuple[str, ...]:
    """Return the ids of a message's attachments, in order. Raise Invalid if there are too many, or one twice."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise Invalid(f"the attachments must be a list of ids, not {checks.shown(values)}")
    found = tuple(checks.name(value, "the attachment id") for value in values)
    if len(found) > most:
        raise Invalid(f"a message may have at most {most:,} files, not {len(found):,}: send several messages")
    if len(set(found)) < len(found):
        raise Invalid("the attachments must be different: one is listed twice")
    return found


def pieces(data: bytes) -> Iterator[bytes]:
    """Split a file into pieces; joined, they are the file."""
    return (data[start : start + PIECE] for start in range(0, len(data), PIECE))


def pack(attachments: Sequence[Attachment]) -> str:
    """Return attachments as they are stored with a message; empty without any."""
    return json.dumps([astuple(one) for one in attachments], ensure_ascii=False) if attachments else ""


def unpack(text: str) -> tuple[Attachment, ...]:
    return tuple(Attachment(*fields) for fields in json.loads(text)) if text else ()
