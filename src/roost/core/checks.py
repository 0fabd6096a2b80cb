"""What may come in: texts, names, numbers. Each refusal names the thing and says what is expected."""

from __future__ import annotations

import json
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from roost.errors import Invalid

E = TypeVar("E", bound=StrEnum)

NAME_LENGTH = 200


def text(value: object, what: str, *, most: int) -> str:
    """Any Unicode text but the empty one, NUL and lone surrogates, which no store keeps alike."""
    if not isinstance(value, str):
        raise Invalid(f"{what} must be a text, not {type(value).__name__}")
    if not value:
        raise Invalid(f"{what} must not be empty")
    if "\0" in value:
        raise Invalid(f"{what} must not contain the character NUL")
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise Invalid(f"{what} must be valid Unicode: it contains half of a surrogate pair") from None
    if size > most:
        raise Invalid(f"{what} is too long: {size:,} bytes, and {most:,} are allowed")
    return value


def name(value: object, what: str) -> str:
    """A short printable text in one line: an id, a key, a title."""
    if type(value) is str and value.isascii() and value.isprintable() and 0 < len(value) <= NAME_LENGTH:
        return value
    checked = text(value, what, most=NAME_LENGTH * 4)
    if len(checked) > NAME_LENGTH or not checked.isprintable():
        raise Invalid(f"{what} must be printable and at most {NAME_LENGTH} characters long")
    return checked


def choice(value: object, what: str, kind: type[E]) -> E:
    found: E | None = _members(kind).get(str(value))
    if found is None:
        known = ", ".join(kind)
        raise Invalid(f"{what} {value!r:.80} is not known: use one of {known}")
    return found


@cache
def _members(kind: type[E]) -> dict[str, E]:
    return {str(member): member for member in kind}


def count(value: object, what: str, *, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Invalid(f"{what} must be a whole number from {least} to {most}, not {value!r:.80}")
    return value


def seconds(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise Invalid(f"{what} must be a number of seconds, not {value!r:.80}")
    return value


def data(value: Any, what: str, *, most: int = 1024 * 1024) -> Any:
    """What JSON can hold, as it comes back from there."""
    try:
        encoded = json.dumps(value, allow_nan=False)
        if len(encoded) > most:
            raise Invalid(f"{what} is too long: {len(encoded):,} bytes as JSON, and {most:,} are allowed")
        return json.loads(encoded)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"{what} must be what JSON can hold: {error}") from None


def clean(chunk: str) -> str:
    """What a brain said, with what no store keeps alike replaced by the replacement character."""
    if chunk.isascii():
        return chunk.replace("\0", "\ufffd") if "\0" in chunk else chunk
    try:
        chunk.encode()
    except UnicodeEncodeError:
        chunk = chunk.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return chunk.replace("\0", "\ufffd")
