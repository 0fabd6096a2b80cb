"""What is shown, as text that fits the terminal: tables, times, durations."""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import typer

from roost.cli.text import line
from roost.core.checks import LONGEST, shown

T = TypeVar("T")
WIDTH = 80
GAP = "  "
NARROWEST = 4
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhdw]?)")
_STEPS = ((90, 1, "s"), (5400, 60, "min"), (2 * 86_400, 3600, "h"), (60 * 86_400, 86_400, "d"))


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, width: int | None = None, whole: str = "ID"
) -> Iterator[str]:
    """Aligned lines; where they do not fit, the widest columns are cut, with an ellipsis, and `whole` last of all."""
    room = width or columns()
    cells = [[line(cell) for cell in row] for row in (headings, *rows)]
    widths = [min(room, max(map(size, column))) for column in zip(*cells, strict=True)]
    _fit(widths, room, [number for number, heading in enumerate(headings) if heading != whole])
    for row in cells:
        padded = (_padded(cut(cell, taken), taken) for cell, taken in zip(row, widths, strict=True))
        yield cut(GAP.join(padded).rstrip(), room)


def listing(
    listed: Sequence[T], headings: Sequence[str], row: Callable[[T], Sequence[str]], nothing: str, whole: str = "ID"
) -> Iterator[str]:
    """A table with a row each; where there are none, the sentence that says so."""
    return table(headings, map(row, listed), whole=whole) if listed else iter([nothing])


def columns() -> int:
    return shutil.get_terminal_size((WIDTH, 24)).columns


def _fit(widths: list[int], room: int, first: list[int]) -> None:
    """Narrow the widest ones, of those that are cut first, and then of all."""
    over = sum(widths) + len(GAP) * (len(widths) - 1) - room
    for chosen in (first, range(len(widths))):
        while over > 0 and any(widths[number] > NARROWEST for number in chosen):
            widths[max(chosen, key=widths.__getitem__)] -= 1
            over -= 1


def size(text: str) -> int:
    """How many places it takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(_places(character) for character in text)


def _places(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, room: int) -> str:
    if size(text) <= room:
        return text
    kept, taken = "", 1
    for character in text:
        taken += _places(character)
        if taken > room:
            break
        kept += character
    return kept.rstrip() + "…"


def _padded(text: str, room: int) -> str:
    return text + " " * (room - size(text))


def facts(pairs: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    """One fact a line, under each other; those there are."""
    there = [(name, line(value)) for name, value in pairs if value]
    room = max((len(name) for name, _ in there), default=0)
    for name, value in there:
        yield f"{name:<{room}}  {value}"


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """How long ago, or in how long; of what is far away, the day."""
    if moment is None:
        return ""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    away = abs(seconds)
    if away < 1:
        return "now"
    for most, unit, name in _STEPS:
        if away < most:
            return f"{away / unit:.0f} {name} ago" if seconds > 0 else f"in {away / unit:.0f} {name}"
    return f"{moment.astimezone():%Y-%m-%d}"


def at(moment: datetime | None) -> str:
    """A time on this machine's clock, and how far away it is, unless it is far."""
    if moment is None:
        return ""
    shown, away = f"{moment.astimezone():%Y-%m-%d %H:%M:%S}", ago(moment)
    return shown if shown.startswith(away) else f"{shown} ({away})"


def lasting(seconds: float) -> str:
    """A duration, in the largest unit that fits."""
    for name, unit in reversed(_UNITS.items()):
        if name != "w" and seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:g} {'min' if name == 'm' else name}"
    return f"{seconds:g} s"


def duration(text: str) -> float:
    """Seconds, from `90`, `30m`, `1h30m` or `2 d`."""
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise typer.BadParameter(f"{shown(text)} is no duration: write it as 45s, 30m, 1h30m or 2d")
    seconds = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if seconds > LONGEST:
        raise typer.BadParameter(f"{shown(text)} is too long: 100 years are allowed")
    return seconds


def some_time(text: str) -> float:
    """A duration of which there is some: none would be over before it began."""
    seconds = duration(text)
    if seconds == 0:
        raise typer.BadParameter(f"{shown(text)} is no time at all: give more than 0, such as 45s or 30m")
    return seconds


def moment(text: str) -> datetime:
    """A time in ISO 8601; without a zone, on this machine's clock."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{shown(text)} is no time: write it as 2030-01-01T09:00 or 2030-01-01T09:00Z"
        ) from None


def to_come(text: str) -> datetime:
    """A time that is still to come."""
    time = moment(text)
    away = (time - datetime.now(UTC)).total_seconds()
    if away <= 0:
        raise typer.BadParameter(f"{shown(text)} is over: it is {datetime.now().astimezone():%Y-%m-%dT%H:%M:%S%z} now")
    if away > LONGEST:
        raise typer.BadParameter(f"{shown(text)} is too far away: 100 years are allowed")
    return time
