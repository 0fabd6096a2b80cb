"""Many subscribers of one talk in a real server process, one of them slow: the others get their text at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.fan_out import many_subscribers
from bench.figures import percentile


@pytest.mark.alone
@pytest.mark.parametrize(
    ("count", "seconds", "within"), [(100, 1, 2_000.0), pytest.param(1_000, 20, 100.0, marks=pytest.mark.soak)]
)
def test_all_get_their_text_in_time_beside_a_slow_one(tmp_path: Path, count: int, seconds: int, within: float) -> None:
    with many_subscribers(tmp_path) as server:
        for kind in ("rpc", "sse"):
            measured = server.heard(kind, count, 20, seconds)
            assert (measured.ended, measured.lost) == (count, 0)
            assert len(measured.latencies) == count * 20 * seconds, "each chunk reaches each subscriber once"
            assert percentile(measured.latencies, 99) < within
            assert server.grown_mib < 32
            assert measured.slow_open


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.parametrize("kind", ["rpc", "sse"])
def test_a_slow_reader_is_notified_and_stays_connected(tmp_path: Path, kind: str) -> None:
    with many_subscribers(tmp_path) as server:
        measured = server.heard(kind, 20, 50, 90, 1_000, slow_rate=8_000)
    assert measured.slow_notices
    assert measured.slow_open
    assert server.grown_mib < 96, "most of it is the answer, which is in memory while it is written"
