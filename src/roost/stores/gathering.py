"""Rows that are left to be written together: each statement hands the interpreter over, or crosses the network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from roost.stores.statements import bulk

if TYPE_CHECKING:
    from roost.core.envelopes import DeadLetter
    from roost.ports import Tx

_WORD = re.compile(r"[a-z_]+")


class Gathering:
    """What a connection has of it. Nobody sees the difference: a table is up to date before a statement names it."""

    wrote: bool

    def __init__(self) -> None:
        self._left: dict[tuple[str, tuple[str, ...], str], list[Sequence[Any]]] = {}
        self.died: list[DeadLetter] = []

    def later(self, table: str, columns: tuple[str, ...], row: Sequence[Any], ending: str = "") -> None:
        self._left.setdefault((table, columns, ending), []).append(row)
        self.wrote = True

    def catch_up(self: Tx, sql: str | None = None) -> None:
        """Write what was left for the tables that this statement names; without one, all of it."""
        left = self._left  # type: ignore[attr-defined]
        names = None if sql is None else _words(sql)
        due = [(key, left.pop(key)) for key in list(left) if names is None or key[0] in names]
        for (table, columns, ending), rows in due:
            bulk.insert(self, table, columns, rows, ending)

    def _drop_left(self) -> None:
        self._left.clear()
        self.died = []


@lru_cache(maxsize=2_048)
def _words(sql: str) -> frozenset[str]:
    return frozenset(_WORD.findall(sql))
