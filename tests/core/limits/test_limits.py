"""A12: what bounds things is itself checked when it is given."""

from __future__ import annotations

from typing import Any

import pytest

from roost.core.limits.limits import Limits
from roost.errors import Invalid


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"hops": "x"}, "hops must be a whole number greater than 0, not 'x'"),
        ({"hops": 0}, "hops must be a whole number greater than 0, not 0"),
        ({"hops": -1}, "hops must be a whole number greater than 0, not -1"),
        ({"hops": 1.5}, "hops must be a whole number greater than 0, not 1.5"),
        ({"attempts": True}, "attempts must be a whole number greater than 0, not True"),
        ({"breaker_failures": 0}, "breaker_failures must be a whole number greater than 0, not 0"),
        ({"drain": 0.0}, "drain must be a number greater than 0, not 0.0"),
        ({"drain": float("nan")}, "drain must be a number greater than 0, not nan"),
        ({"drain": float("inf")}, "drain must be a number greater than 0, not inf"),
        ({"drain": None}, "drain must be a number greater than 0, not None"),
        ({"keep_runs_days": -1}, "keep_runs_days must be a number, 0 (no bound) or greater, not -1"),
    ],
)
def test_a_limit_that_bounds_nothing_is_refused_by_its_name(given: dict[str, Any], told: str) -> None:
    with pytest.raises(Invalid) as refused:
        Limits(**given)
    assert str(refused.value) == f"the limit {told}"


def test_whole_numbers_do_for_all_and_nothing_for_those_that_may_be_unbounded() -> None:
    limits = Limits(drain=1, hops=1, keep_talks_days=0, process_mib=0)
    assert (limits.drain, limits.hops, limits.keep_talks_days, limits.process_mib) == (1, 1, 0, 0)
