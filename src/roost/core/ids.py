"""Ids: short, and ordered by time. They are no secrets: whose something is, is checked each time."""

from __future__ import annotations

RANDOM_BITS = 52


def encode(milliseconds: int, random_bits: int) -> str:
    """25 characters: 48 bits of time, so that ids sort as they were made, and 52 random ones."""
    return f"{milliseconds:012x}{random_bits:013x}"


def reference(run_id: str) -> str:
    """What a person reads out to whoever keeps the log: the random end of a run's id."""
    return run_id[-8:].upper()
