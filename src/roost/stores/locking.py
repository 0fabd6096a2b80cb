"""Row locks of a batch: taken before its operations, in one order, so that no two processes wait for each other.

An operation declares the rows that it locks or that prove its claim (`locks`). The engine locks the rows of all
operations of a batch first: users, then talks, then agents, each by key. The rest of the rows belongs to one of these.
A database with a single writer needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, NamedTuple, Protocol, TypeVar

from roost.ports import Tx
from roost.stores import bulk

Op = TypeVar("Op", bound=Callable[..., Any])


class RowLock(NamedTuple):
    """A row to lock; of several locks of one row the exclusive one counts."""

    rank: int
    key: str
    shared: bool = False


class QueuedCall(Protocol):
    """A call of an operation, with its arguments."""

    @property
    def op(self) -> Callable[..., Any]: ...

    @property
    def args(self) -> tuple[Any, ...]: ...


Rows = Iterable[RowLock]
_TABLES = (("users", "user_id"), ("talks", "talk_id"), ("agents", "address"))


def user(user_id: str, *, shared: bool = False) -> RowLock:
    return RowLock(0, user_id, shared)


def talk(talk_id: str, *, shared: bool = False) -> RowLock:
    return RowLock(1, talk_id, shared)


def agent(address: str) -> RowLock:
    return RowLock(2, address)


def locks(rows: Callable[..., Rows]) -> Callable[[Op], Op]:
    """Declare the rows that an operation locks. `rows` gets the same arguments; it may read, and writes nothing."""

    def declare(op: Op) -> Op:
        op.__dict__["row_locks"] = rows
        return op

    return declare


def by_talk(tx: Tx, talk_id: str, *_: Any) -> Rows:
    return (talk(talk_id),)


def by_user_and_talk(tx: Tx, user_id: str, talk_id: str, *_: Any) -> Rows:
    return (talk(talk_id),)


def by_user_and_agent(tx: Tx, user_id: str, agent_id: str, *_: Any) -> Rows:
    return (agent(f"{user_id}/{agent_id}"),)


def acquire(tx: Tx, calls: Iterable[QueuedCall]) -> None:
    """Lock the rows that these calls declare, in the order of all batches.

    A single row is left to its operation, whose first statement locks it.
    """
    if not tx.for_update:
        return
    declared = [(getattr(call.op, "row_locks", None), call.args) for call in calls]
    wanted = [lock for rows, args in declared if rows is not None for lock in rows(tx, *args)]
    exclusive = {(rank, key) for rank, key, shared in wanted if not shared}
    shared_rows = {(rank, key) for rank, key, _ in wanted} - exclusive
    if len(exclusive) + len(shared_rows) < 2:
        return
    ordered = sorted(exclusive | shared_rows)
    for (rank, is_shared), rows in groupby(ordered, lambda row: (row[0], row in shared_rows)):
        table, column = _TABLES[rank]
        mode = tx.for_share if is_shared else tx.for_update
        query = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {column} IN"
        bulk.read(tx, query, [key for _, key in rows], f" ORDER BY {in_order(tx, column)}{mode}) AS locked")


def in_order(tx: Tx, column: str) -> str:
    """Return a key by which rows that are locked are ordered: by code points, whatever the locale of the database."""
    return f'{column} COLLATE "C"' if tx.for_update else column


def of_table(tx: Tx, name: str) -> str:
    """Return the suffix of a SELECT that locks the rows of one of its tables."""
    return f"{tx.for_update} OF {name}" if tx.for_update else ""
