"""Entries of the log of a meeting. They are immutable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from roost.core.meetings.log import shapes
from roost.core.meetings.log.bodies import Body, Called, EntryId, EntryKind, kind_of
from roost.core.meetings.log.shapes import MOST_AUTHORS, MOST_NUMBER, address
from roost.core.meetings.log.stamps import LATEST, Stamp
from roost.core.values import checks
from roost.errors import Invalid

Vector = Mapping[str, int]
"""Version vector: the number of entries seen of each author, without gaps; a missing author counts 0."""

MOST_COUNTER = 2**53
_FIELDS = {"meeting", "author", "number", "at", "seen", "kind", "body"}


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of a log. `number` counts the author's entries from 1. `seen`: vector of the others at that time."""

    meeting: str
    author: str
    number: int
    at: Stamp
    seen: Vector
    body: Body

    @property
    def id(self) -> EntryId:
        return EntryId(self.author, self.number)

    @property
    def kind(self) -> EntryKind:
        return kind_of(self.body)

    def knew(self, other: EntryId) -> bool:
        """Return whether the author had seen that entry when it wrote this one."""
        if other.author == self.author:
            return other.number < self.number
        return other.number <= self.seen.get(other.author, 0)


_TEXTS: dict[int, tuple[Entry, str]] = {}
"""Cache of JSON texts by object id: an entry is written once for each participant that gets it."""
_TEXTS_KEPT = 1_024
_SHORT = 4_096
"""Maximum characters of cached texts."""


def to_json(entry: Entry) -> str:
    """Return the canonical JSON text of an entry."""
    kept = _TEXTS.get(id(entry))
    if kept is not None and kept[0] is entry:
        return kept[1]
    text = _written(entry)
    _remember(entry, text)
    return text


def _remember(entry: Entry, text: str) -> None:
    while len(_TEXTS) >= _TEXTS_KEPT:
        _TEXTS.pop(next(iter(_TEXTS), 0), None)
    _TEXTS[id(entry)] = (entry, text)


def _written(entry: Entry) -> str:
    plain = {
        "meeting": entry.meeting,
        "author": entry.author,
        "number": entry.number,
        "at": list(entry.at),
        "seen": dict(entry.seen),
        "kind": entry.kind,
        "body": shapes.plain(entry.body),
    }
    return json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Entry:
    """Read the output of `to_json`, with a cache. Raises Invalid for anything else."""
    try:
        return _read_once(text) if len(text) <= _SHORT else _parsed(text)
    except (ValueError, TypeError, RecursionError):
        raise Invalid(f"an entry of a meeting cannot be read: {checks.shown(text)}") from None


def _parsed(text: str) -> Entry:
    return _read(json.loads(text))


_read_once = lru_cache(maxsize=1_024)(_parsed)


def check(entry: Entry) -> Entry:
    """Return the entry as others will read it, and cache it for them."""
    try:
        text = to_json(entry)
    except (ValueError, TypeError, RecursionError) as error:
        raise Invalid(f"the content of an entry must be a JSON value: {error}") from None
    made = from_json(text)
    _remember(made, text)
    return made


def vector(value: object) -> Vector:
    """Return a checked version vector."""
    if not isinstance(value, dict) or len(value) > MOST_AUTHORS:
        raise Invalid(f"`seen` must be an object of at most {MOST_AUTHORS} numbers, not {checks.shown(value)}")
    return {
        address(author, "an author"): checks.count(number, "a number in `seen`", least=1, most=MOST_NUMBER)
        for author, number in value.items()
    }


def _read(plain: Any) -> Entry:
    if not isinstance(plain, dict) or plain.keys() != _FIELDS:
        raise ValueError
    entry = Entry(
        checks.name(plain["meeting"], "the id of a meeting"),
        address(plain["author"], "the author of an entry"),
        checks.count(plain["number"], "the number of an entry", least=1, most=MOST_NUMBER),
        _stamp(plain["at"]),
        vector(plain["seen"]),
        shapes.read(plain["kind"], plain["body"]),
    )
    if entry.author in entry.seen:
        raise Invalid(f"`seen` of {entry.id} counts entries of its own author: leave them out")
    if isinstance(entry.body, Called) and entry.author in entry.body.required + entry.body.optional:
        raise Invalid(f"{entry.author} calls the meeting and need not be invited: leave it out")
    return entry


def _stamp(value: object) -> Stamp:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError
    ms = checks.count(value[0], "the time of an entry", least=0, most=LATEST)
    return Stamp(ms, checks.count(value[1], "the counter of a time", least=0, most=MOST_COUNTER))
