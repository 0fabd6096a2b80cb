"""Figures of the monitor: counts, sums and durations of each user over time, in buckets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

HOUR, DAY = 3_600, 86_400
WIDTHS: Mapping[int, int] = {10: HOUR + 300, 60: DAY + HOUR, 900: 31 * DAY}
"""Widths of the kept buckets in seconds, and for how long each is kept: then it is added to the next wider one."""
NARROW = 10
_MILLISECONDS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
_SECONDS = (1, 2, 5, 10, 20, 60, 120, 300, 600, 1_800, 3_600)
BOUNDS = (*(one / 1_000 for one in _MILLISECONDS), *map(float, _SECONDS))
"""Upper bounds of the bins of durations, in seconds; a last bin has what takes longer."""
BINS = len(BOUNDS) + 1
MOST_BUCKETS = 1_000
GOOD_BUCKETS = 180
STEPS = (10, 20, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 14_400, 21_600, 43_200, DAY)
"""Widths of buckets from which the narrowest one is chosen that gives at most `GOOD_BUCKETS`."""
OTHERS = "others"
"""Stands for other users and their agents in counts of who talks to whom, and for rare pairs."""


class FigureName(StrEnum):
    """Name of a figure; what its labels mean."""

    RUNS = "runs"
    """Seconds of finished turns, by kind: `talk`, `task`, `mail`, `event`, `meeting`, `message`, `answer`."""
    WAITED = "waited"
    """Seconds for which work waited in an inbox until its turn started, by kind."""
    LATENESS = "lateness"
    """Seconds by which timers fired after their due time."""
    TOKENS = "tokens"
    """Tokens of models, by `input` and `output`."""
    COST = "cost"
    """Cost of model calls in US dollars, by profile."""
    ERRORS = "errors"
    """Failed attempts, by fault."""
    LOST = "lost"
    """Runs that ended with their thread or process, by kind."""
    DEAD_LETTERS = "dead_letters"
    """New dead letters, by kind."""
    CHANGES = "changes"
    """Changes of agents, by fact: `AgentCreated`, `AgentWoke`, …"""
    QUEUE = "queue"
    """Envelopes in all inboxes, and with the label `awake` those in memory. A gauge, as `agents`."""
    AGENTS = "agents"
    """Agents by state: `active` and `waiting` while they work, else the state in which they rest."""
    SENT = "sent"
    """Messages, tasks, mail and events by sender and recipient: see `monitor.edges`."""


HISTOGRAMS = frozenset({FigureName.RUNS, FigureName.WAITED, FigureName.LATENESS})
GAUGES = frozenset({FigureName.QUEUE, FigureName.AGENTS})


@dataclass(frozen=True, slots=True)
class FigurePoint:
    """Values of one bucket. A bucket without values has no point."""

    at: datetime
    """Start of the bucket."""
    count: int
    """Number of values; of a gauge, the number of samples."""
    total: float
    """Sum of the values."""
    bins: tuple[int, ...] = ()
    """Of a histogram: the number of values up to each of the bounds, and of those above."""

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> float | None:
        return quantile(self.bins, share)


@dataclass(frozen=True, slots=True)
class FigureSeries:
    """Points of one figure with one label, in the order of time."""

    name: FigureName
    label: str
    points: tuple[FigurePoint, ...]

    @property
    def count(self) -> int:
        return sum(point.count for point in self.points)

    @property
    def total(self) -> float:
        return sum(point.total for point in self.points)


@dataclass(frozen=True, slots=True)
class FigureReport:
    """Figures from `since` on and before `until`, in buckets of `width` seconds."""

    since: datetime
    until: datetime
    width: float
    series: tuple[FigureSeries, ...]
    bounds: tuple[float, ...] = BOUNDS
    """Upper bounds of the bins of histograms, in seconds."""

    def of(self, name: FigureName) -> tuple[FigureSeries, ...]:
        """Return the series of a figure, one for each label."""
        return tuple(one for one in self.series if one.name is name)


@dataclass(frozen=True, slots=True)
class EdgeCount:
    """Number of messages, tasks, mail and events from a sender to a recipient.

    Both are addresses: `user:ann`, `agent:ann/d`, `schedule:…`; `others` stands for all other users.
    """

    sender: str
    recipient: str
    count: int


def bin_of(seconds: float) -> int:
    """Return the bin of a duration."""
    return bisect_left(BOUNDS, seconds)


def quantile(bins: Sequence[int], share: float) -> float | None:
    """Return the duration below which this share of the values lies; None without values.

    Values are taken as spread evenly over their bin, and those above all bounds as the largest bound.
    """
    rank, below = share * sum(bins), 0
    for number, count in enumerate(bins):
        if count and below + count >= rank:
            lower = BOUNDS[number - 1] if number else 0.0
            upper = BOUNDS[number] if number < len(BOUNDS) else lower
            return lower + (upper - lower) * max(0.0, rank - below) / count
        below += count
    return None


def added(bins: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the sums of histograms, bin by bin."""
    return tuple(map(sum, zip(*bins, strict=True)))


def width_of(seconds: float, age: float) -> int:
    """Return the width of buckets for a range of this length that begins so long ago."""
    kept = kept_width(age)
    return next((step for step in STEPS if step >= kept and seconds < step * (GOOD_BUCKETS + 1)), STEPS[-1])


def kept_width(age: float) -> int:
    """Return the width of the buckets that are kept for so long."""
    return next((width for width, kept in WIDTHS.items() if age <= kept), max(WIDTHS))


def multiple(width: float, of: int) -> int:
    """Return the smallest multiple of a width that is not less than another width."""
    return max(1, -(-int(-(-width // 1)) // of)) * of
