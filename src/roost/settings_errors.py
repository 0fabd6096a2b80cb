"""Errors of settings for users: where a setting comes from, and what is expected."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import ErrorDetails

from roost.core.limits.limits import RENAMED

_EXPECTED = {
    "int": "must be a whole number",
    "float": "must be a number",
    "finite": "must be a finite number",
    "string_type": "must be text in quotes",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern": "must be a built-in brain, or module:function",
    "path": "must be a path in quotes",
    "bool": "must be true or false",
    "tuple": "must be a list",
    "dict": "must be a table",
    "model": "must be a table",
    "dataclass": "must be a table",
    "missing": "is missing",
}
"""Messages for users, by the prefix of pydantic's error type; pydantic's own messages are for programmers."""

_PATTERNS = {
    "base_url": "must be a URL that begins with http:// or https://",
    "key": "must be the name of a variable, such as OPENAI_API_KEY: the key itself belongs into secrets.toml",
    "url": "must be a URL that begins with http:// or https://",
    "token": "must be the name of a variable: the token itself belongs into secrets.toml",
    "client_secret": "must be the name of a variable: the secret itself belongs into secrets.toml",
    "proxy_user_header": "must be the name of a header, such as X-Forwarded-User",
}
"""Messages for strings of a certain format, by the name of the setting."""


def sentence(detail: ErrorDetails, text: str, file: Path | None, names: Mapping[Any, Any]) -> str:
    path = tuple(str(part) for part in detail["loc"])
    if detail["type"] == "limit":
        path = (*path, detail["ctx"]["key"])
    silent = path[:1] in (("secret",), ("server",)) or path[-1:] in (("key",), ("client_secret",))
    silent = silent or detail["type"] in ("missing", "limit", "string_too_short")
    given = "" if silent else f", not {detail['input']!r:.80}"
    return f"{place(path, text, file, names)}{'.'.join(path)} {_expected(detail)}{given}"


def _expected(detail: ErrorDetails) -> str:
    if detail["type"] == "string_pattern_mismatch" and (expected := _PATTERNS.get(str(detail["loc"][-1]))):
        return expected
    if detail["type"] == "string_pattern_mismatch" and "tools" in detail["loc"]:
        return (
            "must be module:function" if detail["loc"][0] == "tools" else "must be a tool's name, or a pattern of them"
        )
    if detail["type"] == "string_pattern_mismatch" and detail["loc"][0] == "games":
        return "must be module:name, a class derived from roost.Game"
    for kind, expected in _EXPECTED.items():
        if detail["type"].startswith(kind):
            return expected.format(**detail.get("ctx", {}))
    what = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return what if what.startswith("must") else f"must be {what}"


def hint(key: str, known: Sequence[str]) -> str:
    """Return the next step after an unknown name: its present name, the most similar one, or all."""
    if (renamed := RENAMED.get(key)) in known:
        return f"it is now {renamed!r}"
    near = difflib.get_close_matches(key, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(sorted(known))}"


def place(path: tuple[str, ...], text: str, file: Path | None, names: Mapping[Any, Any]) -> str:
    """Return where a setting comes from: its variable, or its line."""
    for end in range(len(path), 0, -1):
        if path[:end] in names:
            return f"{names[path[:end]][0]}: "
    for end in range(len(path), 0, -1):
        line = line_of(text, path[:end])
        if line:
            return f"{file}, line {line}: "
    return ""


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """Return the line that sets a key: the first after which the parsed beginning of the file has it."""
    lines = text.splitlines()
    start = 1
    for end in range(1, len(lines) + 1):
        try:
            value: Any = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue  # in the middle of a value of several lines
        if _has(value, path):
            return start
        start = end + 1
    return None


def _has(value: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        if isinstance(value, list) and key.isdigit():
            return True
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True
