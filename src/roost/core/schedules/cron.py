"""Cron expressions, read in a time zone.

Expressions use local time, including changes for summer time. An expression with fixed hours and minutes
(`30 2 * * *`) runs once on each of its days: if its time is skipped, right after the change; if it occurs twice, the
first time. One with a `*` there (`*/15 * * * *`) runs whenever the local time matches, so that it keeps its interval.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from roost.core.values import checks
from roost.core.values.times import LATEST
from roost.errors import Invalid

if TYPE_CHECKING:
    from cronsim import CronSim

DAY = 86_400


@dataclass(frozen=True, slots=True)
class Cron:
    """Cron rule: minute, hour, day, month, weekday; a sixth field in front is the second."""

    expression: str
    zone: str = "UTC"


def parse_cron(expression: object, zone: object) -> Cron:
    rule = Cron(" ".join(checks.name(expression, "cron").split()), checks.name(zone, "a time zone"))
    zone_named(rule.zone)
    calendar_of(rule.expression)
    return rule


def zone_named(name: object) -> tzinfo:
    if name == "UTC":
        return UTC  # Works on machines without a time zone database, too.
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(checks.name(name, "a time zone"))
    except (KeyError, ValueError, OSError):
        raise Invalid(
            f"time zone {checks.shown(name)} is not known: use a name such as 'Europe/Berlin' or 'UTC'"
        ) from None


def calendar_of(expression: str) -> CronSim:
    """Return an iterator over the local times of an expression, without time zones; it starts at `dt`."""
    from cronsim import CronSim, CronSimError

    try:
        return CronSim(expression, datetime(2000, 1, 1))
    except (CronSimError, ValueError, AssertionError) as error:
        raise Invalid(
            f"cron {checks.shown(expression)} cannot be read ({error}): use five fields, "
            "minute, hour, day, month and weekday, such as '*/15 * * * *'"
        ) from None


def cron_ticks(rule: Cron, after: float) -> Iterator[float]:
    if after >= LATEST:
        return
    zone, calendar = zone_named(rule.zone), calendar_of(rule.expression)
    names_its_time = not any(field.startswith("*") for field in rule.expression.split()[:-3])
    following = _by_the_day if names_its_time else _by_the_clock
    moment: int | None = math.floor(after)
    while moment is not None and (moment := following(calendar, zone, moment)) is not None:
        yield float(moment)


def _by_the_day(calendar: CronSim, zone: tzinfo, moment: int) -> int | None:
    """Return the next tick of a rule that runs once on each of its days."""
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
    """Return the next moment at which the local time matches, searching from one clock change to the next."""
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
    """Return the first second after `low`, up to `high`, at which the UTC offset changes."""
    if zone is UTC:
        return None
    offset = _offset(zone, low)
    for day in range(low, high, DAY):
        end = min(day + DAY, high)
        if _offset(zone, end) != offset:
            seconds = range(day, end)
            return day + bisect_left(seconds, True, key=lambda second: _offset(zone, second) != offset)
    return None
