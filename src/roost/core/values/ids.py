"""Ids: short, and ordered by time. They are not secrets: each access checks the owner."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

RANDOM_BITS = 52
CHANCE_BITS = 20
STEP_BITS = RANDOM_BITS - CHANCE_BITS
STEPS = 1 << STEP_BITS


def encode(milliseconds: int, random_bits: int) -> str:
    """Return 25 characters: 48 bits of time, so that ids sort by creation, and 52 random bits."""
    return f"{milliseconds:012x}{random_bits:013x}"


class Ids:
    """Generator of ids. Each sorts after the one before, even within a millisecond or after a clock is set back.

    Safe for threads without a lock: they share only `count`.
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


def successor(name: str) -> str:
    """Return an id that sorts right after this one."""
    kind, _, number = name.rpartition("_")
    try:
        return f"{kind}_{int(number, 16) + 1:0{len(number)}x}"
    except ValueError:
        return f"{name}0"


def reference(run_id: str) -> str:
    """Return a short reference for support: the random end of a run id."""
    return run_id[-8:].upper()
