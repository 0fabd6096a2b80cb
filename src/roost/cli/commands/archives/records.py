"""Format of an export: lines of JSON, of which each is one thing of a user.

The first line says what it is, the last one how many lines of each kind there are, so that a file that was cut off is
recognised. Agents come before what needs them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from roost.errors import Invalid

KIND = "roost.export"
VERSION = 1
KINDS = ("agent", "memory", "schedule", "mail", "talk")
LONGEST = 96 * 1024 * 1024
"""Bytes of a line: a talk with its files, of which 64 MiB can be imported."""


@dataclass(frozen=True, slots=True)
class Record:
    """One thing of an export, and the number of its line."""

    kind: str
    value: dict[str, Any]
    line: int


def head(user: str, exported: str) -> str:
    return _line({"kind": KIND, "version": VERSION, "user": user, "exported": exported})


def record(kind: str, value: object) -> str:
    return _line({kind: value})


def end(counts: Counter[str]) -> str:
    return _line({"end": {kind: counts[kind] for kind in KINDS}})


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def read(file: IO[bytes]) -> Iterator[Record]:
    """Yield the records of an export. Raise Invalid, with the number of the line, where it is not one."""
    lines = _lines(file)
    _check_head(next(lines, (1, b"")))
    counts: Counter[str] = Counter()
    for number, text in lines:
        found = _parsed(number, text)
        if set(found) == {"end"}:
            return _check_end(found["end"], counts, lines)
        [(kind, value)] = found.items() if len(found) == 1 else [("", None)]
        if kind not in KINDS or not isinstance(value, dict):
            raise Invalid(f"line {number} is not known: was it changed, or written by a newer Roost?")
        counts[kind] += 1
        yield Record(kind, value, number)
    raise Invalid(f"the file is not complete: it ends after line {sum(counts.values()) + 1}; export it again")


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    number = 0
    while text := file.readline(LONGEST):
        number += 1
        if len(text) == LONGEST:
            raise Invalid(f"line {number} is too long: {LONGEST:,} bytes are allowed")
        yield number, text


def _parsed(number: int, text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Invalid(f"line {number} is not valid JSON: the file is damaged or not complete; export it again")
    return found


def _check_head(first: tuple[int, bytes]) -> None:
    try:
        found = json.loads(first[1])
        kind, version = found["kind"], found["version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        kind, version = None, 0
    if kind == "roost.talk":
        raise Invalid("this is a single talk: `roost talks import` imports it")
    if kind != KIND:
        raise Invalid("this is not a file of `roost export`")
    if version != VERSION:
        raise Invalid(f"this file has version {version!r:.20}, and this Roost reads {VERSION}: upgrade Roost first")


def _check_end(told: Any, counts: Counter[str], rest: Iterable[object]) -> None:
    if told != {kind: counts[kind] for kind in KINDS} or any(True for _ in rest):
        raise Invalid("the file was changed: its last line does not fit what is before; export it again")
