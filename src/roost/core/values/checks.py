"""Checks of input: texts, names, numbers. Each error names the argument and says what is expected."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from roost.errors import Invalid

E = TypeVar("E", bound=StrEnum)

NAME_LENGTH = 200
DEEPEST = 64
"""Levels of nesting that data may have."""
LONGEST = 100 * 366 * 86_400
"""A hundred years in seconds: a longer duration would end after the last year a datetime can hold."""
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 80


def shown(value: object) -> str:
    """Return a short repr of a value for an error message, even if the value is huge or its `__repr__` raises."""
    try:
        return f"{_SHOWN.repr(value):.80}"
    except Exception:  # an error from `__repr__` must not replace the error that is being raised
        return f"a {type(value).__name__}"


def text(value: object, what: str, *, most: int) -> str:
    """Return a text that is not empty. NUL and lone surrogates are refused: not every store keeps them."""
    if not isinstance(value, str):
        raise Invalid(f"{what} must be a text, not {type(value).__name__}")
    if not value:
        raise Invalid(f"{what} must not be empty")
    if "\0" in value:
        raise Invalid(f"{what} must not contain the NUL character")
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise Invalid(f"{what} must be valid Unicode: it contains half of a surrogate pair") from None
    if size > most:
        raise Invalid(f"{what} is too long: {size:,} bytes, and {most:,} are allowed")
    return value


def name(value: object, what: str) -> str:
    """Return a short printable text of one line: an id, a key, a title."""
    if type(value) is str and value.isascii() and value.isprintable() and 0 < len(value) <= NAME_LENGTH:
        return value
    checked = text(value, what, most=NAME_LENGTH * 4)
    if len(checked) > NAME_LENGTH or not checked.isprintable():
        raise Invalid(f"{what} must be printable and at most {NAME_LENGTH} characters long")
    return checked


def talk(user_id: object, talk_id: object) -> None:
    """Check the ids of a user and of a talk."""
    name(user_id, "the user id")
    name(talk_id, "the talk session id")


def choice(value: object, what: str, kind: type[E]) -> E:
    found: E | None = _members(kind).get(value) if isinstance(value, str) else None
    if found is None:
        raise Invalid(f"{what} {shown(value)} is not known: use one of {', '.join(kind)}")
    return found


@cache
def _members(kind: type[E]) -> dict[str, E]:
    return {str(member): member for member in kind}


def count(value: object, what: str, *, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Invalid(f"{what} must be a whole number from {least} to {most}, not {shown(value)}")
    return value


def flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"{what} must be true or false, not {shown(value)}")
    return value


def place(value: object, what: str) -> str:
    """Return the cursor of a list: an id, or an empty text for its start."""
    return "" if value is None or value == "" else name(value, what)


def seconds(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        raise Invalid(f"{what} must be a number of seconds, of at most 100 years, not {shown(value)}")
    return value


def some_time(value: object, what: str) -> float:
    """Return a duration greater than zero, in seconds."""
    length = seconds(value, what)
    if length == 0:
        raise Invalid(f"{what} must be greater than 0 seconds")
    return length


def data(value: Any, what: str, *, most: int = 1024 * 1024) -> Any:
    """Return the value after a round trip through JSON. Lone surrogates and deep nesting are refused."""
    try:
        encoded = json.dumps(value, allow_nan=False)
        if len(encoded) > most:
            raise Invalid(f"{what} is too long: {len(encoded):,} bytes as JSON, and {most:,} are allowed")
        kept = json.loads(encoded)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"{what} must be a JSON value: {error}") from None
    if encoded.count("[") + encoded.count("{") > DEEPEST and _is_deep(kept):
        raise Invalid(f"{what} is nested too deep: {DEEPEST} levels are allowed")
    if r"\ud" in encoded and not _is_unicode(kept):
        raise Invalid(f"{what} must be valid Unicode: it contains half of a surrogate pair")
    return kept


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for container in level if isinstance(container, list | dict) for inner in _inside(container)]
    return bool(level)


def _inside(value: list[Any] | dict[str, Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _is_unicode(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def normalized(value: Any, depth: int = 0) -> Any:
    """Return a stored JSON value in a form that every reader accepts; see `data`."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list | dict) and depth >= DEEPEST:
        return "…"
    if isinstance(value, list):
        return [normalized(inner, depth + 1) for inner in value]
    if isinstance(value, dict):
        return {normalized(name): normalized(inner, depth + 1) for name, inner in value.items()}
    return value


def clean(chunk: str) -> str:
    """Return a chunk with characters that not every store keeps replaced by the replacement character."""
    if chunk.isascii() and "\0" not in chunk:
        return chunk
    return whole(chunk).replace("\0", "\ufffd")


def whole(text: str) -> str:
    """Return the text with lone surrogates replaced by the replacement character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
