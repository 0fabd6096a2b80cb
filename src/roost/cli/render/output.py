"""Printing the result of a command: as JSON, as lines of text or as a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from roost.cli.render.tables import table_or_message

T = TypeVar("T")
SHORT = 8


def shown(value: Any) -> Any:
    """Return a value as JSON, with the names of the HTTP API."""
    from roost.protocol import values  # slow to import, and not needed for help and completion

    return values.shown(value)


def print_result(value: Any, text: Callable[[], Sequence[str] | Iterator[str]], *, as_json: bool) -> None:
    """Print a value as JSON, or the lines of `text`."""
    if as_json:
        print(json.dumps(shown(value), indent=2))
    else:
        for row in text():
            print(row)


def print_table(
    listed: Sequence[T],
    headings: Sequence[str],
    row: Callable[[T], Sequence[str]],
    nothing: str,
    *,
    as_json: bool,
    whole: str = "ID",
) -> None:
    """Print a list as JSON, or as a table, or the sentence `nothing` if it is empty."""
    print_result(listed, lambda: table_or_message(listed, headings, row, nothing, whole), as_json=as_json)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def short_id(full: str) -> str:
    """Return the end of an id: ids start with the time and end with random characters."""
    return full[-SHORT:]
