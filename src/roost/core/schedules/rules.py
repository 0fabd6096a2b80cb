"""Rules of schedules: a cron expression, an interval, or a single time. Times are seconds since 1970."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import islice, takewhile
from typing import Literal, TypeAlias

from roost.core.schedules.cron import DAY, Cron, cron_ticks, parse_cron
from roost.core.values import checks
from roost.core.values.times import EARLIEST, LATEST, timestamp
from roost.errors import Invalid

LATE = 60.0
"""A tick that is late by up to this many seconds is not missed: a busy machine must not lose it."""
AHEAD = 3_600.0
"""A stored time further ahead than this many seconds was computed with a wrong clock."""
SHORTEST, LONGEST = 1.0, 100 * 365.25 * 86_400


@dataclass(frozen=True, slots=True)
class Every:
    """Interval rule: due at `start` and after each interval."""

    seconds: float
    start: float


@dataclass(frozen=True, slots=True)
class Once:
    """Rule for a single time."""

    time: float


Rule: TypeAlias = Cron | Every | Once


class Overlap(StrEnum):
    """Policy for a tick while earlier ones of its schedule are waiting or running."""

    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    QUEUE_ALL = "queue_all"
    REPLACE = "replace"


class MissedPolicy(StrEnum):
    """Policy for ticks missed during downtime: run none, one for all, or each."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


NO_CRON = "a time zone belongs to a cron expression: give cron too, or no zone"


def parse(
    *,
    cron: str | None = None,
    every: float | timedelta | None = None,
    at: datetime | None = None,
    zone: str | None = None,
    now: float,
) -> Rule:
    """Return the rule for exactly one of `cron` (in `zone`, or UTC), `every` (seconds, from now) and `at`."""
    if sum(value is not None for value in (cron, every, at)) != 1:
        raise Invalid("a schedule needs exactly one of cron, every and at")
    if zone is not None and cron is None:
        raise Invalid(NO_CRON)
    if every is not None:
        return _every(every.total_seconds() if isinstance(every, timedelta) else every, now)
    if at is not None:
        if not isinstance(at, datetime):
            raise Invalid(f"at must be a datetime with a time zone, not {checks.shown(at)}")
        return Once(timestamp(at, "at"))
    rule = parse_cron(cron, "UTC" if zone is None else zone)
    if next_after(rule, now) is None:
        raise Invalid(f"cron {rule.expression!r:.80} never runs: there is no such day")
    return rule


def changed(
    rule: Rule, *, cron: str | None, every: float | timedelta | None, at: datetime | None, zone: str | None, now: float
) -> Rule:
    """Return the rule with the given parts replaced; a cron rule keeps its zone."""
    if zone is not None and cron is None:
        if not isinstance(rule, Cron) or every is not None or at is not None:
            raise Invalid(NO_CRON)
        cron = rule.expression
    if zone is None and cron is not None and isinstance(rule, Cron):
        zone = rule.zone
    return parse(cron=cron, every=every, at=at, zone=zone, now=now)


def next_after(rule: Rule, moment: float) -> float | None:
    """Return the next time strictly after that moment; None if there is none."""
    return next(_ticks(rule, moment), None)


def missed_ticks(
    rule: Rule, last: float, now: float, missed: MissedPolicy, window: float, most: int = 1000
) -> list[float]:
    """Return the ticks after `last` and up to `now` that are due, oldest first.

    `once` takes the newest, and `skip` too if it is at most `LATE`. `all` takes each that is at most `LATE`, and of the
    older ones the newest `most` of the last `window` seconds. The cost does not depend on their number.
    """
    in_time = max(last, math.nextafter(now - LATE, -math.inf))
    if missed != MissedPolicy.ALL:
        return _newest(rule, last if missed == MissedPolicy.ONCE else in_time, math.nextafter(now, math.inf), 1)
    older = _newest(rule, max(last, math.nextafter(now - window, -math.inf)), now - LATE, most)
    return older + list(takewhile(lambda tick: tick <= now, _ticks(rule, in_time)))


def admits(overlap: Overlap, waiting: int, running: int) -> Literal["post", "drop", "replace"]:
    """Decide what to do with a tick while earlier ones exist; `replace` posts it instead of all of them."""
    if overlap == Overlap.QUEUE_ALL or not waiting + running:
        return "post"
    if overlap == Overlap.REPLACE:
        return "replace"
    return "post" if overlap == Overlap.QUEUE_ONE and not waiting else "drop"


def described(rule: Rule) -> str:
    """Return the rule in words."""
    if isinstance(rule, Cron):
        return f"{rule.expression} ({rule.zone})"
    if isinstance(rule, Once):
        return f"once at {datetime.fromtimestamp(rule.time, UTC):%Y-%m-%d %H:%M:%S} UTC"
    units = {"day": DAY, "hour": 3600, "minute": 60, "second": 1}
    unit, size = next(((unit, size) for unit, size in units.items() if rule.seconds % size == 0), ("second", 1))
    number = rule.seconds / size
    return f"every {unit}" if number == 1 else f"every {number:,.15g} {unit}s"


def to_json(rule: Rule) -> str:
    return json.dumps({type(rule).__name__.lower(): asdict(rule)}, ensure_ascii=False, allow_nan=False)


@lru_cache(maxsize=1_000)
def from_json(text: str) -> Rule:
    """Read the output of `to_json`. Raises Invalid for anything else."""
    try:
        match json.loads(text):
            case {"cron": {"expression": expression, "zone": zone, **more}, **rest} if not more and not rest:
                return parse_cron(expression, zone)
            case {"every": {"seconds": seconds, "start": start, **more}, **rest} if not more and not rest:
                return _every(seconds, start)
            case {"once": {"time": time, **more}, **rest} if not more and not rest:
                return Once(timestamp(time, "at"))
    except (ValueError, TypeError, RecursionError):
        pass
    raise Invalid(f"a schedule cannot be read: {checks.shown(text)}")


def _every(seconds: object, start: object) -> Every:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not SHORTEST <= seconds <= LONGEST:
        raise Invalid(f"every must be a number of seconds, from 1 to 100 years, not {checks.shown(seconds)}")
    return Every(float(seconds), timestamp(start, "the start"))


def _ticks(rule: Rule, after: float) -> Iterator[float]:
    """Yield all ticks strictly after that moment, in order."""
    after = max(after, EARLIEST)
    if isinstance(rule, Once):
        return iter([rule.time] if rule.time > after else [])
    return _every_ticks(rule, after) if isinstance(rule, Every) else cron_ticks(rule, after)


def _every_ticks(rule: Every, after: float) -> Iterator[float]:
    """Yield ticks, each computed from `start`, so that rounding errors do not add up."""
    n = max(0, math.floor((min(after, LATEST) - rule.start) / rule.seconds) - 1)
    while (tick := rule.start + n * rule.seconds) <= LATEST:
        if tick > after:
            yield tick
        n += 1


def _newest(rule: Rule, low: float, high: float, most: int) -> list[float]:
    """Return the newest ticks between the two times, in order; halves the range until few remain."""
    if low >= high or most < 1:
        return []
    found = list(islice(takewhile(lambda tick: tick < high, _ticks(rule, low)), most + 1))
    if len(found) <= most:
        return found
    middle = (found[0] + high) / 2
    reach = high - 2 * (found[-1] - found[0])
    if reach > middle and len(near := _newest(rule, reach, high, most)) == most:
        return near  # Most rules are regular, so the end of the range has as many ticks as its start.
    newer = _newest(rule, middle, high, most)
    return _newest(rule, low, math.nextafter(middle, math.inf), most - len(newer)) + newer
