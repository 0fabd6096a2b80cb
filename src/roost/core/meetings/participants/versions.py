"""Versions: logs by content, so that participants with the same entries share one log and one view.

This is a cache: a version can always be rebuilt from its entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from roost.core.meetings.games.registry import unknown_game
from roost.core.meetings.log.bodies import Body
from roost.core.meetings.log.entries import Entry, Vector, from_json, to_json
from roost.core.meetings.log.log import Log
from roost.core.meetings.log.stamps import HybridClock
from roost.core.meetings.view.fold import LogReader, fold
from roost.core.meetings.view.view import View

KEPT = 512
"""Cached versions: a few of each running meeting."""


class Version:
    """Log with the checksum of its contents, and its view, computed when needed."""

    __slots__ = ("_shelf", "_view", "contents", "log")

    def __init__(self, shelf: Versions, log: Log, contents: str) -> None:
        self._shelf = shelf
        self._view: View | None = None
        self.log = log
        self.contents = contents

    @property
    def view(self) -> View:
        if self._view is not None:
            return self._view
        if unknown_game(self.log) is not None:  # not cached: the game may be registered later
            return fold(self.log)
        self._view = self._shelf.read(self.log)
        return self._view

    def added(self, entries: Iterable[Entry]) -> Version:
        return self._shelf.added(self, entries)

    def earlier(self, seen: Vector) -> Version | None:
        """Return the version with the entries of this vector; None if some are missing."""
        log = self.log
        kept = [placed.entry for placed in log.order if placed.number <= seen.get(placed.author, 0)]
        if len(kept) != sum(seen.values()):
            return None
        return self if len(kept) == log.size else self._shelf.empty(log.meeting, log.creator).added(kept)

    def written(self, clock: HybridClock, body: Body, now: int) -> tuple[Version, Entry]:
        log, _, entry = self.log.written(clock, body, now)
        return self._shelf.keep(log, _mixed(self.contents, _sum_of(entry))), entry


class Versions:
    """Cache of versions. Safe for threads: versions made at the same time are equal."""

    def __init__(self) -> None:
        self._kept: dict[str, Version] = {}
        self._readers: dict[str, LogReader] = {}

    def empty(self, meeting: str, creator: str) -> Version:
        return Version(self, Log(meeting, creator), "")

    def find(self, contents: str) -> Version | None:
        return self._kept.get(contents)

    def loaded(self, meeting: str, creator: str, texts: Iterable[str]) -> Version:
        """Return the version of stored entries."""
        contents, entries = "", []
        for text in texts:
            contents = _mixed(contents, _sum(text))
            entries.append(from_json(text))
        return self.find(contents) or self.keep(Log(meeting, creator).added(*entries), contents)

    def added(self, version: Version, entries: Iterable[Entry]) -> Version:
        log = version.log
        fresh = {entry.id: entry for entry in entries}
        held = {key: log.get(key) for key in fresh}
        if any(
            one is not None and one is not fresh[key] and one != fresh[key] for key, one in held.items()
        ):  # one author, one number, two entries
            grown = log.added(*fresh.values())
            return version if grown is log else self.loaded(log.meeting, log.creator, map(to_json, grown))
        new = [fresh[key] for key, one in held.items() if one is None]
        contents = version.contents
        for entry in new:
            contents = _mixed(contents, _sum_of(entry))
        return self.find(contents) or self.keep(log.added(*new), contents) if new else version

    def keep(self, log: Log, contents: str) -> Version:
        version = self._kept[contents] = Version(self, log, contents)
        while len(self._kept) > KEPT:
            self._kept.pop(next(iter(self._kept), ""), None)
        return version

    def read(self, log: Log) -> View:
        # Removed while in use, so that no two threads share it.
        reader = self._readers.pop(log.meeting, None) or LogReader()
        view = reader.read(log)
        self._readers[log.meeting] = reader
        while len(self._readers) > KEPT:
            self._readers.pop(next(iter(self._readers), ""), None)
        return view


def _sum_of(entry: Entry) -> int:
    return _sum(to_json(entry))


def _sum(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest())


def _mixed(contents: str, more: int) -> str:
    """Combine checksums; the order does not matter."""
    return f"{int(contents or '0', 16) ^ more:032x}"
