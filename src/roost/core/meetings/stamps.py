"""Hybrid logical time: as near to the clock on the wall as it can be, and never before what its holder has seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

SKEW = 60_000
"""Milliseconds that another's clock may be ahead and still be followed; what claims more is taken, but not followed."""
LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999."""


class Stamp(NamedTuple):
    """Milliseconds since 1970, and a counter for what happens within one of them. Stamps compare as tuples."""

    ms: int
    counter: int = 0

    def later(self) -> Stamp:
        """The next one, in the same millisecond."""
        return Stamp(self.ms, self.counter + 1)


BEGINNING = Stamp(0)


@dataclass(frozen=True, slots=True)
class Clock:
    """The logical clock of one participant. Each `tick` is later than the one before and than all it has received.

    There are two exceptions, both so that one broken clock does not carry all others into the future with it: what
    is more than `SKEW` ahead of now is not followed, neither another's nor its own of before a jump back. The order of
    entries does not suffer: a log puts each after all that its author had seen, whatever its stamp says.
    """

    author: str
    stamp: Stamp = BEGINNING

    def tick(self, now: int) -> Clock:
        """For an entry that is about to be written; its stamp is that of the result."""
        last = self.stamp if _is_near(self.stamp, now) else Stamp(now)
        return replace(self, stamp=Stamp(now) if now > last.ms else last.later())

    def receive(self, stamp: Stamp, now: int) -> Clock:
        """After an entry with this stamp has come in."""
        return replace(self, stamp=stamp) if stamp > self.stamp and _is_near(stamp, now) else self


def milliseconds(seconds: float) -> int:
    """A time as entries have it, from seconds since 1970."""
    return round(seconds * 1000)


def _is_near(stamp: Stamp, now: int) -> bool:
    return stamp.ms <= now + SKEW
