"""Ids: short, ordered by time, hard to guess."""

from __future__ import annotations

from typing import NewType

UserId = NewType("UserId", str)
TalkId = NewType("TalkId", str)
RunId = NewType("RunId", str)
EnvelopeId = NewType("EnvelopeId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
RANDOM_BITS = 60


def encode(milliseconds: int, random_bits: int) -> str:
    """22 characters: 50 bits of time, so that ids sort as they were made, and 60 random ones."""
    value = (milliseconds << RANDOM_BITS) | random_bits
    return "".join(_PAIRS[(value >> shift) & 1023] for shift in range(100, -1, -10))


def reference(run_id: str) -> str:
    """What a person reads out to whoever keeps the log: the random end of a run's id."""
    return run_id[-8:].upper()
