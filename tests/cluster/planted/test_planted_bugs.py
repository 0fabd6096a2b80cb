"""Bugs are planted in the code of the cluster, and its tests find each of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg import errors

from roost.errors import StaleCursor, Unavailable
from tests.cluster.planted.bugs import BUGS, LONGER
from tests.cluster.planted.harnesses import Bench, Harness
from tests.cluster.planted.planting import Bug

pytestmark = pytest.mark.postgres
FOUND = (AssertionError, pytest.fail.Exception, StaleCursor, Unavailable, errors.LockNotAvailable)


ALL = [
    *(pytest.param(*one, id=one[0].name) for one in BUGS),
    *(pytest.param(*one, id=one[0].name, marks=pytest.mark.soak) for one in LONGER),
]


@pytest.mark.parametrize(("bug", "harness"), ALL)
def test_a_planted_bug_is_found(bug: Bug, harness: Harness, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    bench = Bench(tmp_path, lambda: str(request.getfixturevalue("postgres")))
    with bug.planted(), pytest.raises(FOUND):
        harness(bench)
    bench.seeds = [bench.last_seed]
    harness(bench)  # finds nothing without the bug
