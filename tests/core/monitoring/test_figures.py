"""Quantiles of figures, and the widths of their buckets."""

from __future__ import annotations

import pytest

from roost.core.monitoring.figures import (
    BINS,
    BOUNDS,
    DAY,
    GOOD_BUCKETS,
    HOUR,
    added,
    bin_of,
    kept_width,
    multiple,
    quantile,
    width_of,
)


def bins(*seconds: float) -> list[int]:
    counts = [0] * BINS
    for one in seconds:
        counts[bin_of(one)] += 1
    return counts


def test_a_quantile_lies_in_the_bin_of_its_value() -> None:
    counts = bins(*[0.03] * 90, *[0.7] * 9, 15.0)
    middle, late, latest = (quantile(counts, share) for share in (0.5, 0.95, 1.0))
    assert middle is not None
    assert 0.02 < middle < 0.05
    assert late is not None
    assert 0.5 < late < 1
    assert latest == 20


def test_nothing_has_no_quantile_and_the_longest_is_the_last_bound() -> None:
    assert quantile([0] * BINS, 0.5) is None
    assert quantile((), 0.5) is None
    assert quantile(bins(1e9), 0.5) == BOUNDS[-1]


def test_histograms_are_added_bin_by_bin() -> None:
    assert added([bins(0.03), bins(0.03, 2)]) == tuple(bins(0.03, 0.03, 2))


@pytest.mark.parametrize("hours", [0.25, 1, 6, 24, 7 * 24, 30 * 24])
def test_a_range_has_buckets_that_are_kept_and_not_too_many(hours: float) -> None:
    width = width_of(hours * HOUR + 0.1, hours * HOUR + 0.1)
    assert hours * HOUR / width <= GOOD_BUCKETS
    assert width % kept_width(hours * HOUR) == 0


def test_buckets_are_as_narrow_as_they_are_kept() -> None:
    assert [kept_width(age) for age in (0, HOUR, 2 * HOUR, DAY, 2 * DAY, 90 * DAY)] == [10, 10, 60, 60, 900, 900]
    assert [multiple(width, 60) for width in (1, 60, 61, 90.5)] == [60, 60, 120, 120]
