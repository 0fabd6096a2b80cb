"""Log of a meeting as one participant has it: a set of entries, and the order that follows from it.

Merging two logs gives the union of their sets: participants with the same entries have the same log, even if messages
were lost, doubled or reordered. An entry is *placed* once everything its author had seen is placed; until then it
waits. So the placed part is closed: nothing in it refers to a missing entry.

The order is that of the stamps, except that no entry precedes what its author had seen: one with an older stamp (a
clock was set back, or another clock is ahead) is placed just after the latest of those. The order depends only on the
entry and what it refers to, so it is the same everywhere.
"""

from __future__ import annotations

import hashlib
from bisect import insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from roost.core.meetings.log.bodies import Body, Called, EntryId
from roost.core.meetings.log.digests import Digest, Head
from roost.core.meetings.log.entries import Entry, Vector, check, to_json
from roost.core.meetings.log.stamps import HybridClock, Stamp
from roost.errors import Forbidden, Invalid


class Placed(NamedTuple):
    """Placed entry. The first three fields are the sort key, which is unique.

    `checksum` covers this entry and everything its author had seen.
    """

    time: Stamp
    author: str
    number: int
    entry: Entry
    checksum: str


class Gap(NamedTuple):
    """Range of missing entries of one author."""

    author: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Log:
    """Log of one participant. It only grows.

    Only the creator can call the meeting, so that a later call with an earlier time cannot replace it.
    """

    meeting: str
    creator: str
    order: tuple[Placed, ...] = ()
    placed: Mapping[str, tuple[Placed, ...]] = field(default_factory=dict)
    waiting: Mapping[EntryId, Entry] = field(default_factory=dict)

    @property
    def vector(self) -> Vector:
        """Return the vector of the placed entries; a new entry carries it as `seen`."""
        return {author: len(placed) for author, placed in self.placed.items()}

    @property
    def size(self) -> int:
        return len(self.order) + len(self.waiting)

    def __iter__(self) -> Iterator[Entry]:
        """Iterate over the placed entries in order, then over those that wait."""
        yield from (placed.entry for placed in self.order)
        yield from (self.waiting[key] for key in sorted(self.waiting))

    def get(self, entry_id: EntryId) -> Entry | None:
        placed = self.placed.get(entry_id.author, ())
        if 0 < entry_id.number <= len(placed):
            return placed[entry_id.number - 1].entry
        return self.waiting.get(entry_id)

    def refusal(self, entry: Entry) -> str | None:
        """Return why an entry can never belong to this log; None if it can."""
        is_first = entry.id == EntryId(self.creator, 1)
        if entry.meeting != self.meeting:
            return f"{entry.id} belongs to the meeting {entry.meeting!r:.80}, not to {self.meeting!r:.80}"
        if is_first is not isinstance(entry.body, Called):
            return f"a meeting is called by the first entry of its creator, {self.creator}, and by no other"
        if is_first and entry.seen:
            return "who calls a meeting can't have seen anything of it"
        if entry.author != self.creator and self.creator not in entry.seen:
            return f"{entry.id} was written without having seen the call: first ask for what is missing"
        return None

    def added(self, *entries: Entry) -> Log:
        """Return the log with these entries; if it has them all, return the same object.

        Of two entries with the same author and number all logs keep the earlier one, in whatever order they arrive.
        This happens only if an author was restored from an old copy of its log.
        """
        fresh: dict[EntryId, Entry] = {}
        for entry in entries:
            if (why := self.refusal(entry)) is not None:
                raise Invalid(why)
            held = fresh.get(entry.id) or self.get(entry.id)
            if held is None or (held is not entry and _rank(entry) < _rank(held)):
                fresh[entry.id] = entry
        if any(key.number <= len(self.placed.get(key.author, ())) for key in fresh):
            whole = {entry.id: entry for entry in self} | fresh
            return Log(self.meeting, self.creator)._grown(whole)
        return self._grown({**self.waiting, **fresh}) if fresh else self

    def merged(self, other: Log) -> Log:
        """Return the union of both logs. Commutative, associative and idempotent."""
        if (self.meeting, self.creator) != (other.meeting, other.creator):
            raise Invalid(f"the logs are of two meetings, {self.meeting!r:.80} and {other.meeting!r:.80}")
        return self.added(*other)

    def written(self, clock: HybridClock, body: Body, now: int) -> tuple[Log, HybridClock, Entry]:
        """Append a new entry by the owner of the clock."""
        clock = clock.tick(now)
        seen = dict(self.vector)
        number = 1 + seen.pop(clock.author, 0)
        entry = check(Entry(self.meeting, clock.author, number, clock.stamp, seen, body))
        return self.added(entry), clock, entry

    def missing(self, vector: Vector) -> tuple[Gap, ...]:
        """Return the gaps of this log compared with a vector."""
        gaps = (gap for author, count in sorted(vector.items()) for gap in self._gaps_of(author, count))
        return tuple(gaps)

    def gaps(self) -> tuple[Gap, ...]:
        """Return the gaps that waiting entries depend on."""
        known: dict[str, int] = {}
        for entry in self.waiting.values():
            for author, count in (*entry.seen.items(), (entry.author, entry.number)):
                known[author] = max(count, known.get(author, 0))
        return self.missing(known)

    def digest(self) -> Digest:
        """Return a short digest, from which others see what is missing here."""
        heads = {author: Head(len(placed), placed[-1].checksum) for author, placed in self.placed.items()}
        return Digest(self.meeting, self.creator, heads)

    def answer_to(self, digest: Digest, most: int | None = None) -> tuple[Entry, ...]:
        """Return the entries that the digest lacks, in order, so that the first `most` can be used without the rest.

        If both have the same number of an author's entries but different ones, all of them are returned.
        """
        if (self.meeting, self.creator) != (digest.meeting, digest.creator):
            return ()
        shared = {author: self._shared(author, head) for author, head in digest.heads.items()}
        if not self.waiting and all(shared.get(author, 0) >= len(own) for author, own in self.placed.items()):
            return ()
        lacking = (entry for entry in self if entry.number > shared.get(entry.author, 0) or entry.id in self.waiting)
        return tuple(entry for entry, _ in zip(lacking, range(self.size if most is None else most), strict=False))

    def _shared(self, author: str, head: Head) -> int:
        """Return how many of the author's entries the holder of that head already has."""
        placed = self.placed.get(author, ())
        if head.length > len(placed):
            return head.length
        return head.length if placed[head.length - 1].checksum == head.checksum else 0

    def _gaps_of(self, author: str, count: int) -> Iterator[Gap]:
        first = len(self.placed.get(author, ())) + 1
        for number in sorted(key.number for key in self.waiting if key.author == author and key.number <= count):
            if first < number:
                yield Gap(author, first, number - 1)
            first = number + 1
        if first <= count:
            yield Gap(author, first, count)

    def _grown(self, waiting: Mapping[EntryId, Entry]) -> Log:
        """Replace the waiting entries by these, and place those that can be placed."""
        left = dict(waiting)
        placed: dict[str, list[Placed]] = {}
        order = list(self.order)
        is_growing = True
        while is_growing:
            is_growing = False
            for author in sorted({key.author for key in left}):
                own = placed.setdefault(author, list(self.placed.get(author, ())))
                while (entry := left.get(EntryId(author, len(own) + 1))) and self._is_covered(entry, placed):
                    own.append(self._place(entry, placed))
                    insort(order, own[-1])
                    del left[entry.id]
                    is_growing = True
        ready = {author: tuple(own) for author, own in placed.items() if own}
        return replace(self, order=tuple(order), placed={**self.placed, **ready}, waiting=left)

    def _is_covered(self, entry: Entry, placed: Mapping[str, list[Placed]]) -> bool:
        return all(count <= len(self._of(author, placed)) for author, count in entry.seen.items())

    def _place(self, entry: Entry, placed: Mapping[str, list[Placed]]) -> Placed:
        before = [self._of(author, placed)[count - 1] for author, count in sorted(entry.seen.items())]
        before += placed[entry.author][-1:]
        latest = max((seen.time for seen in before), default=None)
        time = entry.at if latest is None or latest < entry.at else latest.later()
        text = "".join(seen.checksum for seen in before) + to_json(entry)
        return Placed(time, entry.author, entry.number, entry, hashlib.sha256(text.encode()).hexdigest()[:32])

    def _of(self, author: str, placed: Mapping[str, list[Placed]]) -> list[Placed] | tuple[Placed, ...]:
        return placed[author] if author in placed else self.placed.get(author, ())


def check_sender(entry: Entry, sender: str, *, is_answer: bool = False) -> None:
    """Raise Forbidden unless the sender is the author. Only answers may hold entries of others."""
    if entry.author != sender and not is_answer:
        raise Forbidden(f"{sender} sends {entry.id}, which is not its own: only answers to a digest may hold others'")


def _rank(entry: Entry) -> tuple[Stamp, str]:
    return entry.at, to_json(entry)
