"""Durations as people write them: `45s`, `30m`, `1h30m`, `2d`."""

from __future__ import annotations

import re

from roost.core.values.checks import LONGEST, shown
from roost.errors import Invalid

UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw]?)")


def duration(text: str, what: str) -> float:
    """Return the seconds of a duration; a number without a unit counts seconds."""
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip():
        raise Invalid(f"{what} must be a duration such as 45s, 30m, 1h30m or 2d, not {shown(text)}")
    seconds = sum(float(number) * UNITS[unit or "s"] for number, unit in parts)
    if seconds > LONGEST:
        raise Invalid(f"{what} must be at most 100 years")
    return seconds


def formatted(seconds: float) -> str:
    """Return a duration in its short form, which `duration` reads."""
    if seconds < 1 or seconds != int(seconds):
        return f"{seconds:g}s"
    left, parts = int(seconds), []
    for unit, size in UNITS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
