"""Tables, times and durations as text that fits the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from rich.cells import cell_len, set_cell_size

from roost.cli.render.text import single_line

T = TypeVar("T")
WIDTH = 80
GAP = "  "
NARROWEST = 4
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_STEPS = ((90, 1, "s"), (5400, 60, "min"), (2 * 86_400, 3600, "h"), (60 * 86_400, 86_400, "d"))


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, width: int | None = None, whole: str = "ID"
) -> Iterator[str]:
    """Yield aligned lines. If they do not fit, truncate the widest columns with an ellipsis, column `whole` last."""
    room = width or terminal_width()
    cells = [[single_line(cell) for cell in row] for row in (headings, *rows)]
    widths = [min(room, max(map(cell_len, column))) for column in zip(*cells, strict=True)]
    _fit(widths, room, [number for number, heading in enumerate(headings) if heading != whole])
    for row in cells:
        padded = (set_cell_size(truncate(cell, taken), taken) for cell, taken in zip(row, widths, strict=True))
        yield truncate(GAP.join(padded).rstrip(), room)


def table_or_message(
    listed: Sequence[T], headings: Sequence[str], row: Callable[[T], Sequence[str]], nothing: str, whole: str = "ID"
) -> Iterator[str]:
    """Yield a table, or the sentence `nothing` if there are no rows."""
    return table(headings, map(row, listed), whole=whole) if listed else iter([nothing])


def terminal_width() -> int:
    return shutil.get_terminal_size((WIDTH, 24)).columns


def _fit(widths: list[int], room: int, first: list[int]) -> None:
    """Narrow the widest columns: first of `first`, then of all."""
    over = sum(widths) + len(GAP) * (len(widths) - 1) - room
    for chosen in (first, range(len(widths))):
        while over > 0 and any(widths[number] > NARROWEST for number in chosen):
            widths[max(chosen, key=widths.__getitem__)] -= 1
            over -= 1


def truncate(text: str, room: int) -> str:
    """Return a text that takes at most `room` cells of the terminal; an ellipsis replaces the rest."""
    return text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "…"


def key_values(pairs: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    """Yield one aligned `name  value` line for each pair with a value."""
    there = [(name, single_line(value)) for name, value in pairs if value]
    room = max((len(name) for name, _ in there), default=0)
    for name, value in there:
        yield f"{name:<{room}}  {value}"


def relative_time(moment: datetime | None, now: datetime | None = None) -> str:
    """Return a time relative to now, such as `5 min ago`; the date if it is far away."""
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


def local_time(moment: datetime | None) -> str:
    """Return a time in local time, followed by the relative time unless it is far away."""
    if moment is None:
        return ""
    shown, away = f"{moment.astimezone():%Y-%m-%d %H:%M:%S}", relative_time(moment)
    return shown if shown.startswith(away) else f"{shown} ({away})"


def format_duration(seconds: float) -> str:
    """Return a duration in the largest unit that fits."""
    for name, unit in reversed(UNITS.items()):
        if name != "w" and seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:g} {'min' if name == 'm' else name}"
    return f"{seconds:g} s"
