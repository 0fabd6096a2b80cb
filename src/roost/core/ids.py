"""Ids: short, and ordered by time. They are no secrets: whose something is, is checked each time."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

RANDOM_BITS = 52
CHANCE_BITS = 20
STEP_BITS = RANDOM_BITS - CHANCE_BITS
STEPS = 1 << STEP_BITS


def encode(milliseconds: int, random_bits: int) -> str:
    """25 characters: 48 bits of time, so that ids sort as they were made, and 52 others."""
    return f"{milliseconds:012x}{random_bits:013x}"


class Ids:
    """Makes ids, each after the one before, also within one millisecond or when a clock is set back.

    Any thread may call, and none waits for another: that `count` goes on is all they share.
    """

    def __init__(self, random_bits: Callable[[int], int]) -> None:
        self._random_bits = random_bits
        self._steps = count(random_bits(STEP_BITS - 1))
        self._latest = 0

    def new(self, kind: str, milliseconds: int) -> str:
        if milliseconds > self._latest:
            self._latest = milliseconds
        chance = next(self._steps) % STEPS << CHANCE_BITS | self._random_bits(CHANCE_BITS)
        return f"{kind}_{self._latest << RANDOM_BITS | chance:025x}"


def reference(run_id: str) -> str:
    """What a person reads out to whoever keeps the log: the random end of a run's id."""
    return run_id[-8:].upper()
