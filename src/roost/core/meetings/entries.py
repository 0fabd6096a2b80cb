"""Entries: what the log of a meeting is made of. Nobody changes one; whoever has something to add writes another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from roost.core import checks
from roost.core.meetings import shapes
from roost.core.meetings.bodies import Body, Called, EntryId, Kind, kind_of
from roost.core.meetings.shapes import MOST_AUTHORS, MOST_NUMBER, address
from roost.core.meetings.stamps import LATEST, Stamp
from roost.errors import Invalid

Vector = Mapping[str, int]
"""How many entries of each author somebody has seen: the first so many, without a gap. Who is not in it: none."""

MOST_COUNTER = 2**53
_FIELDS = {"meeting", "author", "number", "at", "seen", "kind", "body"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `number`: the author's own, 1, 2, 3 … without gaps. `seen`: of the others, when this was written."""

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
    def kind(self) -> Kind:
        return kind_of(self.body)

    def knew(self, other: EntryId) -> bool:
        """Whether its author had seen that one when it wrote this."""
        if other.author == self.author:
            return other.number < self.number
        return other.number <= self.seen.get(other.author, 0)


_TEXTS: dict[int, tuple[Entry, str]] = {}
"""Of those last written, by where they are in memory: an entry is written for each who keeps it or hears of it."""
_TEXTS_KEPT = 1_024
_SHORT = 4_096
"""Characters of those that are read once: they are kept."""


def to_json(entry: Entry) -> str:
    """The same text for the same entry, wherever it is made."""
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
    """What `to_json` wrote; anything else is refused as Invalid. The same one goes to many, and is read once."""
    try:
        return _read_once(text) if len(text) <= _SHORT else _parsed(text)
    except (ValueError, TypeError, RecursionError):
        raise Invalid(f"an entry of a meeting cannot be read: {checks.shown(text)}") from None


def _parsed(text: str) -> Entry:
    return _read(json.loads(text))


_read_once = lru_cache(maxsize=1_024)(_parsed)


def check(entry: Entry) -> Entry:
    """The entry as all others will have it; these find it here, and need not read it again."""
    try:
        text = to_json(entry)
    except (ValueError, TypeError, RecursionError) as error:
        raise Invalid(f"what an entry says must be what JSON can hold: {error}") from None
    made = from_json(text)
    _remember(made, text)
    return made


def vector(value: object) -> Vector:
    """A version vector that was received."""
    if not isinstance(value, dict) or len(value) > MOST_AUTHORS:
        raise Invalid(f"what was seen must be an object of at most {MOST_AUTHORS} numbers: {checks.shown(value)}")
    return {
        address(author, "an author"): checks.count(number, "what was seen", least=1, most=MOST_NUMBER)
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
        raise Invalid(f"{entry.id} counts its author's own among those it has seen: leave them out")
    if isinstance(entry.body, Called) and entry.author in entry.body.required + entry.body.optional:
        raise Invalid(f"{entry.author} calls the meeting and need not be invited: leave it out")
    return entry


def _stamp(value: object) -> Stamp:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError
    ms = checks.count(value[0], "the time of an entry", least=0, most=LATEST)
    return Stamp(ms, checks.count(value[1], "the counter of a time", least=0, most=MOST_COUNTER))
