"""Meetings on three simulated nodes: whatever goes wrong, all participants see the same in the end."""

from __future__ import annotations

from collections import Counter

import pytest

from roost.testing import ClusterFaults
from roost.testing.cluster.faults import RATES
from tests.testing.gathering import simulate_on_nodes

FEW, MANY = 25, 100
PARTS = [(0, FEW), *(pytest.param(first, MANY, marks=pytest.mark.soak) for first in range(FEW, 1_000, MANY))]
"""First seed of each part, and their number; the long form has a thousand."""
LOSSY = {"message_lost": 0.3, "message_doubled": 0.3, "message_delayed": 0.3}


@pytest.mark.parametrize(("first", "count"), PARTS)
def test_views_of_a_meeting_are_equal_whatever_its_nodes_suffer(first: int, count: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + count):
        happened += simulate_on_nodes(seed).happened
    assert set(RATES) | {"message_lost", "commit_failed"} <= happened.keys(), "not all of it has happened"


@pytest.mark.soak
@pytest.mark.parametrize(
    "chances",
    [{"node_killed": 1.0}, {"commit_crash": 0.1}, {"network_cut": 1.0}, {"store_cut": 1.0}, LOSSY],
    ids=lambda chances: "+".join(chances),
)
def test_views_of_a_meeting_are_equal_under_a_single_fault(chances: dict[str, float]) -> None:
    happened: Counter[str] = Counter()
    for seed in range(100):
        happened += simulate_on_nodes(seed, ClusterFaults(**chances)).happened
    assert happened.keys() == chances.keys()
