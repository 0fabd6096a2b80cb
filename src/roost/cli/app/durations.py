"""Parsers of durations and times."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import typer

from roost.cli.render.tables import UNITS
from roost.core.values.checks import LONGEST, shown

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw]?)")


def duration(text: str) -> float:
    """Parse a duration such as `90`, `30m`, `1h30m` or `2 d`; return seconds."""
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise typer.BadParameter(f"{shown(text)} is not a valid duration: use a form such as 45s, 30m, 1h30m or 2d")
    seconds = sum(float(number) * UNITS[unit or "s"] for number, unit in parts)
    if seconds > LONGEST:
        raise typer.BadParameter(f"{shown(text)} is too long: the maximum is 100 years")
    return seconds


def positive_duration(text: str) -> float:
    """Parse a duration greater than zero."""
    seconds = duration(text)
    if seconds == 0:
        raise typer.BadParameter(f"{shown(text)} is not allowed: use a duration above 0, such as 45s or 30m")
    return seconds


def timestamp(text: str) -> datetime:
    """Parse a time in ISO 8601; without an offset it is local time."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{shown(text)} is not a valid time: use a form such as 2030-01-01T09:00 or 2030-01-01T09:00Z"
        ) from None


def future_time(text: str) -> datetime:
    """Parse a time in the future."""
    time = timestamp(text)
    away = (time - datetime.now(UTC)).total_seconds()
    if away <= 0:
        raise typer.BadParameter(
            f"{shown(text)} is in the past: it is {datetime.now().astimezone():%Y-%m-%dT%H:%M:%S%z} now"
        )
    if away > LONGEST:
        raise typer.BadParameter(f"{shown(text)} is too far in the future: the maximum is 100 years")
    return time
