"""Inserts that are deferred and written together, to save statements: each one costs a lock or a round trip."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from roost.stores import bulk

if TYPE_CHECKING:
    from roost.core.envelopes.dead_letters import DeadLetter
    from roost.ports import Tx

_WORD = re.compile(r"[a-z_]+")


class DeferredInserts:
    """Deferred inserts of a connection. A table is brought up to date before any statement names it."""

    wrote: bool
    node = ""

    def __init__(self) -> None:
        self._deferred: dict[tuple[str, tuple[str, ...], str], list[Sequence[Any]]] = {}
        self.died: list[DeadLetter] = []
        self.capacity: dict[str, int] = {}
        self.armed: float | None = None
        self.ends: dict[str, Any] = {}

    def later(self, table: str, columns: tuple[str, ...], row: Sequence[Any], ending: str = "") -> None:
        self._deferred.setdefault((table, columns, ending), []).append(row)
        self.wrote = True

    def catch_up(self: Tx, sql: str | None = None) -> None:
        """Write the deferred rows of the tables that this statement names; of all tables if there is none."""
        deferred = self._deferred  # type: ignore[attr-defined]
        names = None if sql is None else _words(sql)
        named = [(key, deferred.pop(key)) for key in list(deferred) if names is None or key[0] in names]
        for (table, columns, ending), rows in named:
            bulk.insert(self, table, columns, rows, ending)

    def _discard(self) -> None:
        self._deferred.clear()
        self.died = []
        self.capacity.clear()  # may depend on what was rolled back
        self.ends.clear()
        self.armed = None


@lru_cache(maxsize=2_048)
def _words(sql: str) -> frozenset[str]:
    return frozenset(_WORD.findall(sql))
