"""Meetings in simulations: whatever goes wrong, all see the same in the end, and nothing is said twice."""

from __future__ import annotations

from collections import Counter

import pytest

from roost.core.meetings.participants.seats import Seat
from roost.testing import Faults
from tests.testing.gathering import simulate

EACH = 25
PARTS = [0, *(pytest.param(first, marks=pytest.mark.soak) for first in range(EACH, 40 * EACH, EACH))]
"""The first seed of each part; `make soak` runs a thousand."""


@pytest.mark.parametrize("first", PARTS)
def test_a_gathering_agrees_whatever_goes_wrong(first: int) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + EACH):
        happened += simulate(seed).happened
    assert happened.keys() == Faults().chances.keys(), "not all of it has happened"


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 1_000, EACH))
def test_two_to_eight_agree_when_a_third_is_lost(first: int) -> None:
    faults = Faults(post_lost=0.3, handover_lost=0.3, handover_reordered=0.3, commit_failed=0.1, crash=0.001)
    happened: Counter[str] = Counter()
    for seed in range(first, first + EACH):
        happened += simulate(seed, faults, range(1, 8)).happened
    assert set(happened) == {name for name, chance in faults.chances.items() if chance}


def test_participants_that_do_not_answer_digests_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seat, "_answer", lambda *_: None)
    with pytest.raises(AssertionError, match=r"differently|not so within"):
        for seed in range(50):
            simulate(seed, Faults(post_lost=0.3))
