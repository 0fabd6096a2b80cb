"""Ids: short, ordered by time, hard to guess."""

from __future__ import annotations

from typing import NewType

UserId = NewType("UserId", str)
TalkId = NewType("TalkId", str)
RunId = NewType("RunId", str)
EnvelopeId = NewType("EnvelopeId", str)

RANDOM_BITS = 52


def encode(milliseconds: int, random_bits: int) -> str:
    """25 characters: 48 bits of time, so that ids sort as they were made, and 52 random ones."""
    return f"{milliseconds:012x}{random_bits:013x}"


def reference(run_id: str) -> str:
    """What a person reads out to whoever keeps the log: the random end of a run's id."""
    return run_id[-8:].upper()
