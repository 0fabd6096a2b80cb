"""A5: when something is due, over both changes of summer time, and what was missed meanwhile."""

from __future__ import annotations

import functools
import math
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from roost.core.schedules import rules
from roost.core.schedules.cron import Cron
from roost.core.schedules.rules import LATE, Every, MissedPolicy, Once, Overlap, Rule
from roost.core.values.times import LATEST
from roost.errors import Invalid

NOW = datetime(2027, 5, 1, 12, tzinfo=UTC).timestamp()
YEAR = 365 * 86_400.0

CHANGES = [
    ("Europe/Berlin", date(2027, 3, 28)),
    ("Europe/Berlin", date(2027, 10, 31)),
    ("America/New_York", date(2027, 3, 14)),
    ("America/New_York", date(2027, 11, 7)),
    ("America/Sao_Paulo", date(2018, 11, 4)),  # From 00:00 to 01:00.
    ("America/Sao_Paulo", date(2018, 2, 18)),  # From 00:00 back to 23:00 of the day before.
    ("America/Santiago", date(2027, 9, 5)),  # From 00:00 to 01:00.
    ("America/Havana", date(2027, 11, 7)),  # From 01:00 back to 00:00.
    ("Australia/Lord_Howe", date(2027, 10, 3)),  # By half an hour.
    ("Australia/Lord_Howe", date(2027, 4, 4)),
    ("Pacific/Apia", date(2011, 12, 30)),  # A day that never was.
    ("UTC", date(2027, 3, 28)),
]


def moment(text: str, zone: str = "UTC", fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def following(rule: Rule, after: float, count: int) -> list[float]:
    ticks: list[float] = []
    while len(ticks) < count and (tick := rules.next_after(rule, ticks[-1] if ticks else after)) is not None:
        ticks.append(tick)
    return ticks


def on_the_wall(expression: str, zone: str, after: str, count: int) -> list[str]:
    ticks = following(Cron(expression, zone), moment(after, zone), count)
    return [f"{datetime.fromtimestamp(tick, ZoneInfo(zone)):%d %H:%M %z}" for tick in ticks]


def test_a_time_that_is_left_out_comes_right_after_the_change() -> None:
    assert on_the_wall("30 2 * * *", "Europe/Berlin", "2027-03-27T02:00", 3) == [
        "27 02:30 +0100",
        "28 03:00 +0200",
        "29 02:30 +0200",
    ]


def test_several_times_that_are_left_out_come_as_one() -> None:
    assert on_the_wall("0,20,40 2,3 * * *", "Europe/Berlin", "2027-03-28T01:00", 4) == [
        "28 03:00 +0200",
        "28 03:20 +0200",
        "28 03:40 +0200",
        "29 02:00 +0200",
    ]


def test_a_time_that_happens_twice_comes_the_first_time_only() -> None:
    assert on_the_wall("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00", 2) == ["31 02:30 +0200", "01 02:30 +0100"]
    second = moment("2027-10-31T02:15", "Europe/Berlin", fold=1)
    assert rules.next_after(Cron("30 2 * * *", "Europe/Berlin"), second) == moment("2027-11-01T02:30", "Europe/Berlin")


@pytest.mark.parametrize(("zone", "day"), CHANGES)
def test_quarter_hours_keep_their_pace(zone: str, day: date) -> None:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() - 86_400
    ticks = following(Cron("*/15 * * * *", zone), start - 1, 4 * 24 * 3)
    assert ticks == [start + 900 * n for n in range(4 * 24 * 3)]


def test_a_change_by_half_an_hour_leaves_no_tick_out() -> None:
    assert on_the_wall("*/20 3 * * *", "Australia/Lord_Howe", "2027-10-03T00:10", 3) == [
        "03 03:00 +1100",
        "03 03:20 +1100",
        "03 03:40 +1100",
    ]
    assert on_the_wall("15 2 * * *", "Australia/Lord_Howe", "2027-10-03T00:00", 2) == [
        "03 02:30 +1100",
        "04 02:15 +1100",
    ]
    assert on_the_wall("45 1 * * *", "Australia/Lord_Howe", "2027-04-04T00:00", 2) == [
        "04 01:45 +1100",
        "05 01:45 +1030",
    ]


def test_midnight_that_is_left_out_comes_at_one() -> None:
    assert on_the_wall("0 0 * * *", "America/Santiago", "2027-09-04T12:00", 2) == ["05 01:00 -0300", "06 00:00 -0300"]
    assert on_the_wall("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00", 2) == ["04 01:00 -0200", "05 00:00 -0200"]


def test_the_second_pass_of_an_hour_is_not_lost_when_the_next_such_day_is_a_year_away() -> None:
    assert on_the_wall("*/20 2 25 10 *", "Europe/Berlin", "2026-10-25T02:30", 5) == [
        "25 02:40 +0200",
        "25 02:00 +0100",
        "25 02:20 +0100",
        "25 02:40 +0100",
        "25 02:00 +0200",
    ]


def test_a_zone_that_gave_up_summer_time_has_none() -> None:
    assert on_the_wall("0 0 * * *", "America/Sao_Paulo", "2027-11-06T12:00", 2) == ["07 00:00 -0300", "08 00:00 -0300"]


FIELD = st.one_of(
    st.just("*"),
    st.integers(2, 40).map(lambda n: f"*/{n}"),
    st.lists(st.integers(0, 23), min_size=1, max_size=3).map(lambda ns: ",".join(map(str, ns))),
    st.integers(0, 3).map(lambda n: f"{n}-{n + 2}"),
)


def meant(field: str, size: int) -> set[int]:
    if field.startswith("*"):
        return set(range(0, size, int(field.partition("/")[2] or 1)))
    if "-" in field:
        low, high = field.split("-")
        return set(range(int(low), int(high) + 1))
    return set(map(int, field.split(",")))


@functools.cache
def minutes(zone: str, day: date) -> list[tuple[float, datetime]]:
    """Four days around a change, minute by minute: the moment, and what the clock on the wall shows."""
    start = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) - 2 * 86_400
    info = ZoneInfo(zone)
    return [
        (float(m), datetime.fromtimestamp(m, info).replace(tzinfo=None, fold=0))
        for m in range(start, start + 4 * 86_400, 60)
    ]


def expected(minute: str, hour: str, zone: str, day: date) -> list[float]:
    """The same by looking at each minute there is, and each that was left out."""
    shown = minutes(zone, day)
    minute_set, hour_set = meant(minute, 60), meant(hour, 24)

    def fits(wall: datetime) -> bool:
        return wall.minute in minute_set and wall.hour in hour_set

    if "*" in minute + hour:
        return [m for m, wall in shown if fits(wall)]
    firsts: dict[datetime, float] = {}
    for m, wall in shown:
        firsts.setdefault(wall, m)
    ticks = {m for wall, m in firsts.items() if fits(wall)}
    for (_, before), (m, after) in pairwise(shown):
        left_out = int((after - before).total_seconds()) // 60 - 1
        if any(fits(before + timedelta(minutes=n + 1)) for n in range(left_out)):
            ticks.add(m)
    return sorted(ticks)


@given(FIELD, FIELD, st.sampled_from(CHANGES))
@example("*/20", "2", CHANGES[1])
@example("15", "0-2", CHANGES[4])
@example("0", "*/2", CHANGES[8])
def test_cron_comes_as_a_look_at_each_minute_says(minute: str, hour: str, change: tuple[str, date]) -> None:
    zone, day = change
    shown = minutes(zone, day)
    ticks = [t for t in expected(minute, hour, zone, day) if t > shown[0][0]]
    assert following(Cron(f"{minute} {hour} * * *", zone), shown[0][0], len(ticks)) == ticks


@given(FIELD, FIELD, st.sampled_from(CHANGES), st.floats(0, 1))
def test_cron_gives_the_same_next_tick_from_any_moment(
    minute: str, hour: str, change: tuple[str, date], share: float
) -> None:
    zone, day = change
    shown = minutes(zone, day)
    after = shown[0][0] + share * 4 * 86_400
    ticks = [tick for tick in expected(minute, hour, zone, day) if tick > after]
    assume(ticks)
    assert rules.next_after(Cron(f"{minute} {hour} * * *", zone), after) == ticks[0]


@given(
    st.sampled_from(["0 0 29 2 *", "59 23 L * *", "0 9 * * MON#1", "* * * * *", "30 */2 1,15 * FRI", "*/7 * * * * *"])
)
def test_a_moment_that_is_a_tick_is_not_its_own_next(expression: str) -> None:
    first, second = following(Cron(expression, "Europe/Berlin"), NOW, 2)
    assert NOW < first < second
    assert rules.next_after(Cron(expression, "Europe/Berlin"), first - 0.001) == first


def test_a_leap_day_comes_in_its_year() -> None:
    assert rules.next_after(Cron("0 0 29 2 *"), NOW) == moment("2028-02-29T00:00")


def test_nothing_is_due_after_the_year_9999() -> None:
    for rule in (Cron("* * * * *", "Asia/Tokyo"), Cron("0 0 1 1 *"), Every(1, NOW), Once(NOW)):
        assert rules.next_after(rule, LATEST) is None
        assert rules.next_after(rule, 1e300) is None
        assert rules.next_after(rule, float("inf")) is None


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
@pytest.mark.parametrize("expression", ["0 0 1 1 *", "59 23 31 12 *", "* 23 31 12 *", "* * * * * *"])
def test_the_end_of_the_year_9999_is_the_end(expression: str, zone: str) -> None:
    tick: float | None = LATEST - 90_000
    for _ in range(3):
        tick = None if tick is None else rules.next_after(Cron(expression, zone), tick)
        assert tick is None or tick <= LATEST
    assert rules.next_after(Cron(expression, zone), LATEST - 1) in (None, LATEST)


@given(st.floats(1, 1e7), st.floats(0, 4e9), st.floats(0, 1e11))
@example(0.1 + 1, 1e9 + 0.1, 9e10)
def test_an_interval_counts_from_its_start_however_long_ago(seconds: float, start: float, gap: float) -> None:
    rule = Every(seconds, start)
    tick = rules.next_after(rule, start + gap)
    assert tick is not None
    assert start + gap < tick <= start + gap + seconds * (1 + 1e-9) + 1e-4
    assert tick == start + round((tick - start) / seconds) * seconds


@given(st.floats(1, 1e6), st.floats(0, 4e9), st.integers(0, 10**5))
def test_an_interval_is_right_to_the_last_bit(seconds: float, start: float, n: int) -> None:
    tick = start + n * seconds
    assert rules.next_after(Every(seconds, start), math.nextafter(tick, -math.inf)) == tick
    assert rules.next_after(Every(seconds, start), tick) == start + (n + 1) * seconds


def test_before_the_first_moment_the_first_tick_is_next() -> None:
    for past in (-1e300, float("-inf")):
        assert rules.next_after(Cron("0 0 * * *"), past) == moment("1900-01-02T00:00")
        assert rules.next_after(Every(10, 100), past) == 100


def test_an_interval_begins_with_its_start() -> None:
    assert following(Every(10, 100), -1e6, 3) == [100, 110, 120]
    assert following(Every(10, 100), 100, 2) == [110, 120]


def test_once_is_once() -> None:
    assert following(Once(100), 99.5, 2) == [100]
    assert rules.next_after(Once(100), 100) is None


def test_each_way_to_say_when_becomes_its_rule() -> None:
    noon = datetime(2027, 6, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert rules.parse(cron=" */15  * * * * ", zone="Europe/Berlin", now=NOW) == Cron("*/15 * * * *", "Europe/Berlin")
    assert rules.parse(every=90, now=NOW) == Every(90, NOW)
    assert rules.parse(every=timedelta(minutes=2), now=NOW) == Every(120, NOW)
    assert rules.parse(at=noon, now=NOW) == Once(moment("2027-06-01T10:00"))


@pytest.mark.parametrize("given", [{}, {"every": 5, "cron": "* * * * *"}, {"every": 5, "at": datetime.now(UTC)}])
def test_exactly_one_way_is_given(given: dict[str, object]) -> None:
    with pytest.raises(Invalid, match="exactly one of cron, every and at"):
        rules.parse(**given, now=NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"cron": "every day"}, "five fields"),
        ({"cron": "60 * * * *"}, "Bad minute"),
        ({"cron": "* * * *"}, "five fields"),
        ({"cron": ""}, "must not be empty"),
        ({"cron": "* " * 200}, "at most 200"),
        ({"cron": 5}, "must be a text"),
        ({"cron": "0 0 30 2 *"}, "Bad day-of-month"),
        ({"cron": "0 0 */29 * MON#3"}, "never runs"),
        ({"cron": "* * * * *", "zone": "Europe"}, "Europe/Berlin"),
        ({"cron": "* * * * *", "zone": "Mars/Olympus"}, "'Mars/Olympus' is not known"),
        ({"cron": "* * * * *", "zone": "../etc/passwd"}, "is not known"),
        ({"cron": "* * * * *", "zone": "/etc/localtime"}, "is not known"),
        ({"cron": "* * * * *", "zone": ""}, "must not be empty"),
        ({"every": 5, "zone": "UTC"}, "a time zone belongs to a cron expression: give cron too, or no zone"),
        ({"at": datetime(2027, 1, 1, tzinfo=UTC), "zone": "UTC"}, "give cron too, or no zone"),
        ({"every": 0.99}, "from 1"),
        ({"every": -5}, "from 1"),
        ({"every": timedelta(milliseconds=1)}, "from 1"),
        ({"every": timedelta.max}, "100 years"),
        ({"every": float("nan")}, "number of seconds"),
        ({"every": float("inf")}, "number of seconds"),
        ({"every": True}, "number of seconds"),
        ({"every": "5"}, "number of seconds"),
        ({"at": datetime(2027, 1, 1)}, "must have a time zone"),
        ({"at": "2027-01-01"}, "must be a datetime"),
        ({"at": datetime(1, 1, 1, tzinfo=UTC)}, "between 1900 and 9999"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_is_expected(given: dict[str, object], says: str) -> None:
    with pytest.raises(Invalid, match=says):
        rules.parse(**given, now=NOW)  # type: ignore[arg-type]


@given(
    st.text("0123456789*/,-#LW MONJAN", max_size=20) | st.text(max_size=10),
    st.sampled_from(["UTC", "Europe/Berlin"]) | st.text(max_size=10),
)
def test_whatever_is_given_as_cron_is_a_rule_that_comes_or_refused(expression: str, zone: str) -> None:
    try:
        rule = rules.parse(cron=expression, zone=zone, now=NOW)
    except Invalid:
        return
    assert (rules.next_after(rule, NOW) or 0) > NOW
    assert rules.from_json(rules.to_json(rule)) == rule


RULES: st.SearchStrategy[Rule] = st.one_of(
    st.builds(Every, st.floats(1, 1e8), st.floats(0, 1e10)),
    st.builds(Once, st.floats(-1e9, 1e11)),
    st.builds(
        lambda minute, hour, change: Cron(f"{minute} {hour} * * *", change[0]), FIELD, FIELD, st.sampled_from(CHANGES)
    ),
)


@given(RULES)
def test_a_rule_comes_back_from_json_as_it_was(rule: Rule) -> None:
    assert rules.from_json(rules.to_json(rule)) == rule
    assert rules.described(rule)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "[" * 100_000,
        '{"every": {"seconds": 0.5, "start": 0}}',
        '{"every": {"seconds": 5}}',
        '{"every": {"seconds": 5, "start": NaN}}',
        '{"every": {"seconds": 5, "start": 0, "more": 1}}',
        '{"once": {"time": "soon"}}',
        '{"once": {"time": true}}',
        '{"once": {"time": 1e400}}',
        '{"once": {"time": 1}, "cron": 1}',
        '{"cron": {"expression": "x", "zone": "UTC"}}',
        '{"cron": {"expression": "* * * * *", "zone": "UTC", "more": 1}}',
        '{"cron": {"expression": "* * * * *", "zone": "Nowhere"}}',
        '{"cron": {"expression": ["* * * * *"], "zone": {}}}',
        None,
    ],
)
def test_garbage_is_no_rule(text: str) -> None:
    with pytest.raises(Invalid):
        rules.from_json(text)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Every(900, 0), "every 15 minutes"),
        (Every(60, 0), "every minute"),
        (Every(1, 0), "every second"),
        (Every(90, 0), "every 90 seconds"),
        (Every(1.5, 0), "every 1.5 seconds"),
        (Every(7200, 0), "every 2 hours"),
        (Every(86_400, 0), "every day"),
        (Every(86_400 * 1000, 0), "every 1,000 days"),
        (Cron("*/15 * * * *", "Europe/Berlin"), "*/15 * * * * (Europe/Berlin)"),
        (Once(NOW), "once at 2027-05-01 12:00:00 UTC"),
    ],
)
def test_a_rule_is_described_for_people(rule: Rule, words: str) -> None:
    assert rules.described(rule) == words


def wanted(rule: Rule, last: float, now: float, missed: MissedPolicy, window: float, most: int) -> list[float]:
    """The same by looking at each tick there was."""
    ticks = []
    tick = rules.next_after(rule, last)
    while tick is not None and tick <= now:
        ticks.append(tick)
        tick = rules.next_after(rule, tick)
    late = [tick for tick in ticks if tick >= now - LATE]
    older = [tick for tick in ticks if now - window <= tick < now - LATE]
    kept = {
        MissedPolicy.SKIP: late[-1:],
        MissedPolicy.ONCE: ticks[-1:],
        MissedPolicy.ALL: (older[-most:] if most else []) + late,
    }
    return kept[missed]


BUSY_RULES: st.SearchStrategy[Rule] = st.one_of(
    st.builds(Every, st.integers(1, 500) | st.floats(1, 500), st.integers(-5000, 5000).map(lambda n: NOW + n)),
    st.builds(Once, st.integers(-5000, 5000).map(lambda n: NOW + n)),
    st.sampled_from(["* * * * *", "*/5 * * * *", "0 12 * * *", "*/30 * * * * *", "0-3 11 * * *", "0 0 1 1 *"]).map(
        Cron
    ),
)


@given(BUSY_RULES, st.integers(-100, 5000), st.sampled_from(MissedPolicy), st.integers(0, 6000), st.integers(0, 30))
@example(Every(60, NOW - 6000), 600, MissedPolicy.ALL, 120, 5)
@example(Every(1, NOW - 6000), 5000, MissedPolicy.ALL, 100, 30)
def test_missed_ticks_are_those_that_a_look_at_each_says(
    rule: Rule, gap: int, missed: MissedPolicy, window: int, most: int
) -> None:
    found = rules.missed_ticks(rule, NOW - gap, NOW, missed, window, most)
    assert found == wanted(rule, NOW - gap, NOW, missed, window, most)


@given(st.integers(61, 100_000_000), st.sampled_from(MissedPolicy))
def test_what_is_late_but_not_missed_is_done_once_or_all_of_it(gap: int, missed: MissedPolicy) -> None:
    found = rules.missed_ticks(Every(1, NOW - 5e8), NOW - gap, NOW, missed, window=30)
    assert found == [NOW - LATE + n for n in range(61)][0 if missed is MissedPolicy.ALL else -1 :]


@pytest.mark.parametrize(("down", "made_up"), [(4, 0), (7, 1), (50, 10), (600, 120)])
def test_a_short_absence_is_made_up_for_as_a_long_one(down: int, made_up: int) -> None:
    found = {m: len(rules.missed_ticks(Every(5, NOW - down), NOW - down, NOW, m, window=3600)) for m in MissedPolicy}
    assert found == {MissedPolicy.SKIP: min(made_up, 1), MissedPolicy.ONCE: min(made_up, 1), MissedPolicy.ALL: made_up}


def test_a_tick_at_the_edge_of_lateness_is_done_and_one_before_it_missed() -> None:
    assert rules.missed_ticks(Once(NOW - LATE), NOW - 99, NOW, MissedPolicy.SKIP, 0) == [NOW - LATE]
    assert rules.missed_ticks(Once(NOW - LATE - 0.001), NOW - 99, NOW, MissedPolicy.SKIP, 0) == []
    assert rules.missed_ticks(Once(NOW), NOW, NOW, MissedPolicy.ALL, 99) == []


class Counted:
    """Number of functions called: a measure of work that no slow machine spoils."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, frame: object, event: str, arg: object) -> None:
        self.calls += event == "call"


@pytest.mark.parametrize("missed", list(MissedPolicy))
@pytest.mark.parametrize(
    "rule",
    [
        Every(1, NOW - YEAR + 0.5),
        Cron("* * * * * *", "Europe/Berlin"),
        Cron("* * * * *", "Europe/Berlin"),
        Cron("* * * 2 1 *", "Europe/Berlin"),
        Cron("0 3 * * *", "Europe/Berlin"),
    ],
)
def test_a_year_of_absence_is_no_year_of_work(rule: Rule, missed: MissedPolicy) -> None:
    counted = Counted()
    sys.setprofile(counted)
    try:
        found = rules.missed_ticks(rule, NOW - YEAR, NOW, missed, window=YEAR)
    finally:
        sys.setprofile(None)
    assert found == sorted(set(found))
    assert len(found) <= 1000 + 61
    assert counted.calls < 500_000
    if missed is MissedPolicy.ALL and rule != Cron("0 3 * * *", "Europe/Berlin"):
        older = [tick for tick in found if tick < NOW - LATE]
        assert len(older) == 1000
        assert following(rule, older[0], 999) == older[1:]


@pytest.mark.parametrize(
    ("overlap", "waiting", "running", "decision"),
    [
        (Overlap.SKIP, 0, 0, "post"),
        (Overlap.SKIP, 1, 0, "drop"),
        (Overlap.SKIP, 0, 1, "drop"),
        (Overlap.QUEUE_ONE, 0, 0, "post"),
        (Overlap.QUEUE_ONE, 0, 1, "post"),
        (Overlap.QUEUE_ONE, 1, 0, "drop"),
        (Overlap.QUEUE_ONE, 1, 1, "drop"),
        (Overlap.QUEUE_ALL, 0, 0, "post"),
        (Overlap.QUEUE_ALL, 9, 1, "post"),
        (Overlap.REPLACE, 0, 0, "post"),
        (Overlap.REPLACE, 1, 0, "replace"),
        (Overlap.REPLACE, 0, 1, "replace"),
    ],
)
def test_a_tick_meets_earlier_ones_as_its_policy_says(
    overlap: Overlap, waiting: int, running: int, decision: str
) -> None:
    assert rules.admits(overlap, waiting, running) == decision
