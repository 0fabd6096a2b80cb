"""M4: hybrid logical time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from roost.core.meetings.log.stamps import SKEW, HybridClock, Stamp, milliseconds
from tests.core.meetings.cast import ADA, NOON

NEAR = st.integers(NOON - SKEW // 4, NOON + SKEW // 4)


def test_time_follows_the_wall_and_counts_within_a_millisecond() -> None:
    clock = HybridClock(ADA).tick(NOON)
    assert clock.stamp == Stamp(NOON, 0)
    assert clock.tick(NOON).stamp == Stamp(NOON, 1)
    assert clock.tick(NOON).tick(NOON + 5).stamp == Stamp(NOON + 5, 0)


def test_a_clock_that_is_set_back_a_little_still_counts_up() -> None:
    clock = HybridClock(ADA).tick(NOON).tick(NOON - 50)
    assert clock.stamp == Stamp(NOON, 1)


def test_a_clock_that_was_far_ahead_comes_back() -> None:
    clock = HybridClock(ADA).tick(NOON + 10 * SKEW).tick(NOON)
    assert clock.stamp.ms == NOON
    assert clock.tick(NOON).stamp > clock.stamp


def test_what_was_received_comes_before_what_is_written() -> None:
    heard = Stamp(NOON + SKEW, 7)
    assert HybridClock(ADA).receive(heard, NOON).tick(NOON).stamp == Stamp(NOON + SKEW, 8)
    assert HybridClock(ADA, Stamp(NOON, 9)).receive(Stamp(NOON, 3), NOON).stamp == Stamp(NOON, 9)


def test_a_stamp_from_the_far_future_is_not_followed() -> None:
    assert HybridClock(ADA).receive(Stamp(NOON + SKEW + 1), NOON).tick(NOON).stamp == Stamp(NOON)


@given(st.lists(st.tuples(st.booleans(), NEAR), min_size=2))
def test_ticks_only_ever_go_up_however_the_wall_clock_jumps(steps: list[tuple[bool, int]]) -> None:
    clock, stamps = HybridClock(ADA), []
    for ticks, ms in steps:
        clock = clock.tick(ms) if ticks else clock.receive(Stamp(ms, 3), NOON)
        stamps.append(clock.stamp)
    ticked = [stamp for stamp, (ticks, _) in zip(stamps, steps, strict=True) if ticks]
    assert sorted(set(ticked)) == ticked
    assert sorted(stamps) == stamps


def test_milliseconds_are_those_of_seconds() -> None:
    assert milliseconds(1.2345) == 1234
