"""Hybrid logical clocks: close to real time, and never before what the holder has seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

SKEW = 60_000
"""Milliseconds by which another clock may be ahead and is still followed."""
LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999."""


class Stamp(NamedTuple):
    """Timestamp: milliseconds since 1970, and a counter within one. Compared as tuples."""

    ms: int
    counter: int = 0

    def later(self) -> Stamp:
        """Return the next stamp in the same millisecond."""
        return Stamp(self.ms, self.counter + 1)


BEGINNING = Stamp(0)


@dataclass(frozen=True, slots=True)
class HybridClock:
    """Hybrid logical clock of one participant. Each `tick` is later than the last, and than all it has received.

    Stamps more than `SKEW` ahead of now are not followed, so that one broken clock does not move all others into the
    future. The order of entries still holds: a log places each after everything its author had seen.
    """

    author: str
    stamp: Stamp = BEGINNING

    def tick(self, now: int) -> HybridClock:
        """Return the clock for a new entry, with its stamp."""
        last = self.stamp if _is_near(self.stamp, now) else Stamp(now)
        return replace(self, stamp=Stamp(now) if now > last.ms else last.later())

    def receive(self, stamp: Stamp, now: int) -> HybridClock:
        """Return the clock after an entry with this stamp was received."""
        return replace(self, stamp=stamp) if stamp > self.stamp and _is_near(stamp, now) else self


def milliseconds(seconds: float) -> int:
    """Convert seconds since 1970 to milliseconds."""
    return round(seconds * 1000)


def _is_near(stamp: Stamp, now: int) -> bool:
    return stamp.ms <= now + SKEW
