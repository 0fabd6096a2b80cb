"""When something is due: by a cron expression, at an interval, once. Times are seconds since 1970.

Cron expressions are read as clocks on the wall show them, and clocks are changed. An expression that names its
hours and minutes (`30 2 * * *`) comes once on each of its days: if its time is left out, right after the change, and
if it happens twice, the first time. One with a `*` there (`*/15 * * * *`) comes whenever the clock shows such a
time, so that it goes on at its pace.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Literal, TypeAlias

from roost.core import checks
from roost.core.envelopes import Envelope
from roost.core.priority import Priority
from roost.errors import Invalid

if TYPE_CHECKING:
    from cronsim import CronSim

LATE = 60.0
"""A tick that is at most so late was not missed: else a busy machine would lose it."""
SHORTEST, LONGEST = 1.0, 100 * 365.25 * 86_400
EARLIEST, LATEST = -2_208_988_800, 253_402_214_400
"""From 1900 to 9999: before and after nothing is due."""
DAY = 86_400


@dataclass(frozen=True, slots=True)
class Cron:
    """Minute, hour, day, month, weekday; or six fields of which the first is the second."""

    expression: str
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Every:
    """Due at `start` and at each whole number of intervals after it."""

    seconds: float
    start: float


@dataclass(frozen=True, slots=True)
class Once:
    time: float


Rule: TypeAlias = Cron | Every | Once


class Overlap(StrEnum):
    """What a tick does while earlier ones of its schedule are still waiting or running."""

    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    QUEUE_ALL = "queue_all"
    REPLACE = "replace"


class Missed(StrEnum):
    """What becomes of the ticks that passed while everything was down: nothing, one for all of them, or each."""

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
    """The rule for exactly one of `cron` (in this zone, else UTC), `every` (seconds, counted from now) and `at`."""
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
    rule = _cron(cron, "UTC" if zone is None else zone)
    if next_after(rule, now) is None:
        raise Invalid(f"cron {rule.expression!r:.80} never comes: there is no such day")
    return rule


def changed(
    rule: Rule, *, cron: str | None, every: float | timedelta | None, at: datetime | None, zone: str | None, now: float
) -> Rule:  # fmt: skip
    """The rule with what is named here in place of what it had; a cron expression keeps the zone it is read in."""
    if zone is not None and cron is None:
        if not isinstance(rule, Cron) or every is not None or at is not None:
            raise Invalid(NO_CRON)
        cron = rule.expression
    if zone is None and cron is not None and isinstance(rule, Cron):
        zone = rule.zone
    return parse(cron=cron, every=every, at=at, zone=zone, now=now)


def timestamp(moment: object, what: str) -> float:
    """Seconds since 1970, from those or from an aware datetime."""
    if isinstance(moment, datetime):
        if moment.utcoffset() is None:
            raise Invalid(f"{what} must have a time zone, and {moment.isoformat()} has none: add tzinfo=UTC, say")
        moment = moment.timestamp()
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not EARLIEST <= moment <= LATEST:
        raise Invalid(
            f"{what} must be a datetime or seconds since 1970, between 1900 and 9999, not {checks.shown(moment)}"
        )
    return float(moment)


def next_after(rule: Rule, moment: float) -> float | None:
    """When it is due next, strictly after that moment; None if never again."""
    return next(_ticks(rule, moment), None)


def missed_ticks(rule: Rule, last: float, now: float, missed: Missed, window: float, most: int = 1000) -> list[float]:
    """The ticks after `last` and up to `now` that are to be done, oldest first.

    `once` takes the newest, and `skip` too if it is at most `LATE`. `all` takes each that is at most `LATE`, and of the
    older ones the newest `most` of the last `window` seconds. However many there were, few are looked at.
    """
    in_time = max(last, math.nextafter(now - LATE, -math.inf))
    if missed != Missed.ALL:
        return _newest(rule, last if missed == Missed.ONCE else in_time, math.nextafter(now, math.inf), 1)
    older = _newest(rule, max(last, math.nextafter(now - window, -math.inf)), now - LATE, most)
    return older + list(takewhile(lambda tick: tick <= now, _ticks(rule, in_time)))


def admits(overlap: Overlap, waiting: int, running: int) -> Literal["post", "drop", "replace"]:
    """What to do with a tick when so many earlier ones of its schedule are there: `replace` posts it for them all."""
    if overlap == Overlap.QUEUE_ALL or not waiting + running:
        return "post"
    if overlap == Overlap.REPLACE:
        return "replace"
    return "post" if overlap == Overlap.QUEUE_ONE and not waiting else "drop"


def described(rule: Rule) -> str:
    """The rule in words, for people."""
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
    """What `to_json` wrote; anything else is refused as Invalid."""
    try:
        match json.loads(text):
            case {"cron": {"expression": expression, "zone": zone, **more}, **rest} if not more and not rest:
                return _cron(expression, zone)
            case {"every": {"seconds": seconds, "start": start, **more}, **rest} if not more and not rest:
                return _every(seconds, start)
            case {"once": {"time": time, **more}, **rest} if not more and not rest:
                return Once(timestamp(time, "at"))
    except (ValueError, TypeError, RecursionError):
        pass
    raise Invalid(f"a schedule cannot be read: {checks.shown(text)}")


def _cron(expression: object, zone: object) -> Cron:
    rule = Cron(" ".join(checks.name(expression, "cron").split()), checks.name(zone, "a time zone"))
    _zone(rule.zone)
    _calendar(rule.expression)
    return rule


def _every(seconds: object, start: object) -> Every:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not SHORTEST <= seconds <= LONGEST:
        raise Invalid(f"every must be a number of seconds, from 1 to those of 100 years, not {checks.shown(seconds)}")
    return Every(float(seconds), timestamp(start, "the start"))


def _zone(name: object) -> tzinfo:
    if name == "UTC":
        return UTC  # Known on machines that have no time zones installed, too.
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(checks.name(name, "a time zone"))
    except (KeyError, ValueError, OSError):
        raise Invalid(
            f"time zone {checks.shown(name)} is not known: use a name such as 'Europe/Berlin' or 'UTC'"
        ) from None


def _calendar(expression: str) -> CronSim:
    """What finds the days and times of an expression on a calendar without time zones; starts where `dt` is set."""
    from cronsim import CronSim, CronSimError

    try:
        return CronSim(expression, datetime(2000, 1, 1))
    except (CronSimError, ValueError, AssertionError) as error:
        raise Invalid(
            f"cron {checks.shown(expression)} cannot be read ({error}): expected are five fields, "
            "minute, hour, day, month and weekday, such as '*/15 * * * *'"
        ) from None


def _ticks(rule: Rule, after: float) -> Iterator[float]:
    """All ticks strictly after that moment, in order."""
    after = max(after, EARLIEST)
    if isinstance(rule, Once):
        return iter([rule.time] if rule.time > after else [])
    return _every_ticks(rule, after) if isinstance(rule, Every) else _cron_ticks(rule, after)


def _every_ticks(rule: Every, after: float) -> Iterator[float]:
    """Each is computed from the start, so that nothing adds up, and is the same number whenever it is asked for."""
    n = max(0, math.floor((min(after, LATEST) - rule.start) / rule.seconds) - 1)
    while (tick := rule.start + n * rule.seconds) <= LATEST:
        if tick > after:
            yield tick
        n += 1


def _cron_ticks(rule: Cron, after: float) -> Iterator[float]:
    if after >= LATEST:
        return
    zone, calendar = _zone(rule.zone), _calendar(rule.expression)
    names_its_time = not any(field.startswith("*") for field in rule.expression.split()[:-3])
    following = _by_the_day if names_its_time else _by_the_clock
    moment: int | None = math.floor(after)
    while moment is not None and (moment := following(calendar, zone, moment)) is not None:
        yield float(moment)


def _by_the_day(calendar: CronSim, zone: tzinfo, moment: int) -> int | None:
    """The next of the ticks that come once on each of their days."""
    wall = _next_wall(calendar, _wall(zone, moment))
    while wall:
        aware = wall.replace(tzinfo=zone)
        tick = round(aware.timestamp())
        if tick > LATEST:
            return None
        if _wall(zone, tick) != wall:
            tick = _first_change(zone, round(aware.replace(fold=1).timestamp()), tick) or tick
        if tick > moment:
            return tick
        wall = _next_wall(calendar, wall)
    return None


def _by_the_clock(calendar: CronSim, zone: tzinfo, moment: int) -> int | None:
    """The next moment at which the clock on the wall shows one of the times: looks from one change to the next."""
    wall = _next_wall(calendar, _wall(zone, moment))
    offset = _offset(zone, moment)
    while wall:
        tick = round(wall.replace(tzinfo=UTC).timestamp()) - offset
        if tick > LATEST:
            return None
        change = _first_change(zone, moment, tick)
        if change is None:
            return tick
        moment, offset = change, _offset(zone, change)
        wall = _next_wall(calendar, _wall(zone, change) - timedelta(seconds=1))
    return None


def _next_wall(calendar: CronSim, after: datetime) -> datetime | None:
    calendar.dt = after
    try:
        return next(calendar, None)
    except OverflowError:  # The year 9999 has ended.
        return None


def _wall(zone: tzinfo, moment: int) -> datetime:
    return datetime.fromtimestamp(moment, zone).replace(tzinfo=None, fold=0)


def _offset(zone: tzinfo, moment: int) -> int:
    return round((datetime.fromtimestamp(moment, zone).utcoffset() or timedelta()).total_seconds())


def _first_change(zone: tzinfo, low: int, high: int) -> int | None:
    """The first second after `low`, up to `high`, at which clocks show another time than before."""
    if zone is UTC:
        return None
    offset = _offset(zone, low)
    for day in range(low, high, DAY):
        end = min(day + DAY, high)
        if _offset(zone, end) != offset:
            seconds = range(day, end)
            return day + bisect_left(seconds, True, key=lambda second: _offset(zone, second) != offset)
    return None


def _newest(rule: Rule, low: float, high: float, most: int) -> list[float]:
    """The newest of the ticks between the two, in order; halves the time until it holds few enough to be listed."""
    if low >= high or most < 1:
        return []
    found = list(islice(takewhile(lambda tick: tick < high, _ticks(rule, low)), most + 1))
    if len(found) <= most:
        return found
    middle = (found[0] + high) / 2
    reach = high - 2 * (found[-1] - found[0])
    if reach > middle and len(near := _newest(rule, reach, high, most)) == most:
        return near  # Most rules are even, and the last stretch looks as the first one did.
    newer = _newest(rule, middle, high, most)
    return _newest(rule, low, math.nextafter(middle, math.inf), most - len(newer)) + newer


@dataclass(frozen=True, slots=True)
class Schedule:
    """What an agent does by the clock, as its owner sees it. `next` is None when it never comes again."""

    schedule_id: str
    agent_id: str
    user_id: str
    name: str
    prompt: str
    priority: Priority
    rule: Rule
    overlap: Overlap
    missed: Missed
    catch_up: float
    paused: bool
    next: datetime | None
    created: datetime


@dataclass(frozen=True, slots=True)
class Fired:
    """What came of timers that were due: whom to look at, what was posted, what was cancelled to make room."""

    looked: tuple[str, ...]
    posted: tuple[Envelope, ...]
    cancelled: tuple[tuple[str, str], ...]
    more: bool
    next: float | None
    meetings: tuple[tuple[str, str], ...] = ()
    """Participants of meetings who look at them: each with the meeting."""
    expiring: tuple[str, ...] = ()
    """For whom something has waited too long."""
