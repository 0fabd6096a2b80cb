"""Ids: short, and ordered by time. They are no secrets: whose something is, is checked each time."""

from __future__ import annotations

from collections.abc import Callable

RANDOM_BITS = 52
STEP_BITS = 24


def encode(milliseconds: int, random_bits: int) -> str:
    """25 characters: 48 bits of time, so that ids sort as they were made, and 52 random ones."""
    return f"{milliseconds:012x}{random_bits:013x}"


def following(last: tuple[int, int], milliseconds: int, random_bits: Callable[[int], int]) -> tuple[int, int]:
    """Time and chance of the next id: after the last one, also within one millisecond or when a clock is set back."""
    if milliseconds > last[0]:
        return milliseconds, random_bits(RANDOM_BITS - 1)
    return last[0], last[1] + 1 + random_bits(STEP_BITS)


def reference(run_id: str) -> str:
    """What a person reads out to whoever keeps the log: the random end of a run's id."""
    return run_id[-8:].upper()
