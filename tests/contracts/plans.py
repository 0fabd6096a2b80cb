"""Query plans of store operations, as SQLite makes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.ports import Row


class PlannedTx:
    """Reads and writes that record the plan of each statement."""

    for_update = node = ""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self.steps: list[str] = []

    def read(self, sql: str, params: Any = ()) -> list[Row]:
        self.steps += [step for *_, step in self._database.execute(f"EXPLAIN QUERY PLAN {sql}", params)]
        return self._database.execute(sql, params).fetchall()

    write = read

    def one(self, sql: str, params: Any = ()) -> Row | None:
        return next(iter(self.read(sql, params)), None)


Plan = Callable[..., list[str]]


@pytest.fixture
def plan(tmp_path: Path) -> Iterator[Plan]:
    """Run an operation on an empty store, after some statements; return the steps of its plans."""
    roost.open(f"sqlite:///{tmp_path}/roost.db").close()
    with closing(sqlite3.connect(tmp_path / "roost.db")) as database:

        def planned(op: Callable[..., object], *args: Any, before: str = "") -> list[str]:
            database.executescript(before)
            tx = PlannedTx(database)
            op(tx, *args)
            return tx.steps

        yield planned
