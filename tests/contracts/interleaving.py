"""Transactions on two connections, driven statement by statement: every order that PostgreSQL allows can be tried."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any

import psycopg

from roost.ports import Params, Row, Tx
from roost.stores.postgres_connection import PostgresConnection

Transaction = Callable[[Tx], Any]
LIMIT = 20.0
_BLOCKED = "SELECT 1 FROM pg_locks WHERE NOT granted AND pid = %s"


@dataclass
class Outcome:
    """Results of the transactions of both sides, and the order of their commits as (side, number)."""

    results: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    commits: list[tuple[int, int]] = field(default_factory=list)
    order: str = ""
    had_choice: list[bool] = field(default_factory=list)
    """For each step, whether the other side could have made it."""

    def is_before(self, first: tuple[int, int], second: tuple[int, int]) -> bool:
        return self.commits.index(first) < self.commits.index(second)


class _Stepped(PostgresConnection):
    """A connection that asks before each statement and each commit."""

    gate: Callable[[], object] = bool

    def read(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        self.gate()
        return super().read(sql, params)

    def one(self, sql: str, params: Params = {}) -> Row | None:  # noqa: B006 — never changed
        self.gate()
        return super().one(sql, params)

    def write(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        self.gate()
        return super().write(sql, params)

    def commit(self) -> None:
        self.gate()
        super().commit()


class _Side:
    """Runs transactions on a thread of its own, one statement at a time."""

    def __init__(self, number: int, connection: _Stepped, transactions: Sequence[Transaction], outcome: Outcome):
        self._number, self._connection, self._transactions, self._outcome = number, connection, transactions, outcome
        self._may_go, self.waits = threading.Semaphore(0), threading.Event()
        self.error: BaseException | None = None
        self.is_over = False
        connection.gate = self._gate
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.waits.wait(LIMIT)

    def step(self, admin: psycopg.Connection[Any]) -> None:
        """Let it execute one statement; return when it is done, or waits for a lock."""
        self.waits.clear()
        self._may_go.release()
        self.settle(admin)

    def settle(self, admin: psycopg.Connection[Any]) -> None:
        """Return when it waits for the next step, or for a lock."""
        pid = self._connection._db.info.backend_pid
        while not self.waits.wait(0.001):
            if admin.execute(_BLOCKED, [pid]).fetchone() is not None:
                return

    def join(self) -> None:
        self._thread.join(LIMIT)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error

    def _gate(self) -> None:
        self.waits.set()
        self._may_go.acquire()

    def _run(self) -> None:
        try:
            for number, transaction in enumerate(self._transactions):
                self._connection.begin()
                result = transaction(self._connection)
                self._connection.catch_up()
                self._connection.commit()
                self._outcome.results[self._number].append(result)
                self._outcome.commits.append((self._number, number))
        except BaseException as error:  # raised again by `join`
            self._connection.rollback()
            self.error = error
        self.is_over = True
        self.waits.set()


class Interleaving:
    """Two connections to a store, and one that watches their locks."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connections = [_Stepped(url, read_only=False) for _ in range(2)]
        self.plain = PostgresConnection(url, read_only=False)
        self._admin = psycopg.connect(url, autocommit=True)

    def close(self) -> None:
        for connection in (*self._connections, self.plain):
            connection.close()
        self._admin.close()

    def do(self, op: Transaction) -> Any:
        """Execute one transaction by itself."""
        self.plain.begin()
        result = op(self.plain)
        self.plain.catch_up()
        self.plain.commit()
        return result

    def run(self, first: Sequence[Transaction], second: Sequence[Transaction], order: str) -> Outcome:
        """Execute both sides, in this order of their steps as far as it goes: a string of 0 and 1.

        A step is one statement or commit. A side that waits for a lock makes none until it has the lock.
        """
        outcome = Outcome()
        sides = [
            _Side(number, connection, transactions, outcome)
            for number, (connection, transactions) in enumerate(zip(self._connections, (first, second), strict=True))
        ]
        while able := [number for number, side in enumerate(sides) if side.waits.is_set() and not side.is_over]:
            made = len(outcome.order)
            wanted = int(order[made]) if made < len(order) else able[0]
            choice = wanted if wanted in able else able[0]
            outcome.order += str(choice)
            outcome.had_choice.append(len(able) > 1)
            sides[choice].step(self._admin)
            sides[1 - choice].settle(self._admin)
        for side in sides:
            side.join()
        return outcome

    def run_all(
        self, sides: Callable[[], tuple[Sequence[Transaction], Sequence[Transaction]]], *, switches: float = inf
    ) -> Iterator[Outcome]:
        """Execute new sides in every order that is possible, with this number of chosen switches at most."""
        orders = [""]
        while orders:
            order = orders.pop()
            outcome = self.run(*sides(), order)
            yield outcome
            made = outcome.order
            others = [made[:number] + str(1 - int(made[number])) for number in range(len(order), len(made))]
            chosen = outcome.had_choice[len(order) :]
            orders += [other for other, is_able in zip(others, chosen, strict=True) if is_able]
            orders = [other for other in orders if sum(a != b for a, b in pairwise(other)) <= switches]
