"""Store: durable operations, their transactions, and the environment of a claim."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.monitoring.facts import FactRow
from roost.core.monitoring.metrics import Histogram
from roost.errors import Unavailable
from roost.ports.host import Pending

T = TypeVar("T")
Row = Sequence[Any]
Params = Mapping[str, Any] | Sequence[Any]


class Tx(Protocol):
    """The transaction of an operation: SQL with `:name` (or positional `?`) parameters, the same on every database."""

    for_update: str
    """Suffix of a SELECT that locks its rows for update (empty where there is a single writer)."""
    for_share: str
    """Suffix of a SELECT that locks its rows for sharing (empty where there is a single writer)."""
    writer: str
    """SQL expression of the writer's number: no two that write at the same time have the same."""
    node: str
    """Node of a cluster that writes; empty if the store belongs to one process."""
    capacity: dict[str, int]
    """Cached bounds: free places in inboxes by address, and numbers of talks and agents by user."""
    ends: dict[str, Any]
    """Cached ends of agents' histories, by address; used where there is a single writer."""
    died: list[DeadLetter]
    """Dead letters added in this transaction; passed to the store's listener after the commit."""
    armed: float | None
    """Earliest due time of the timers set in this transaction; passed in the same way."""

    def read(self, sql: str, params: Params = ...) -> list[Row]: ...

    def one(self, sql: str, params: Params = ...) -> Row | None: ...

    def write(self, sql: str, params: Params = ...) -> list[Row]:
        """Execute a change; return the rows of `RETURNING`."""
        ...

    def later(self, table: str, columns: tuple[str, ...], row: Sequence[Any], ending: str = "") -> None:
        """Defer the insert of a row: until a statement names the table, or the commit."""
        ...

    def give_back(self, pages: int, keep: float) -> bool:
        """Give up to this number of free pages back to the file system; return whether to continue.

        `keep`: share of the pages that stay free, for new rows. PostgreSQL does this by itself.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A check for an agent's work; `anew`: for a new activation."""

    address: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class ClaimEnvironment:
    """Environment of a claim: the time, the load, and the known profiles."""

    time: float
    new_id: Callable[[], str]
    """Makes the id of a state change."""
    cpu: float | None = None
    awake: int | None = None
    knows: Callable[[str], bool] = bool
    """Returns whether a profile exists; by default all do."""


@dataclass(frozen=True, slots=True)
class StoreLoad:
    """Load of a store: queued operations, and batch sizes."""

    queued_writes: int
    queued_reads: int
    batches: Histogram


class Store(Protocol):
    """Durable storage. An operation is a plain function `op(tx, …) -> result`.

    Operations are repeatable: a failed batch is rolled back and its operations are executed again one by one, so they
    change nothing but the database, and ids and times are made by the caller. An operation that refuses raises a
    RoostError, best before it has written anything.
    """

    generation: str
    """Changes when the store is restored from a backup; empty if it never was. Cursors carry it."""

    def write(
        self,
        op: Callable[..., T],
        *args: Any,
        key: str = "",
        facts: Callable[[T], Sequence[FactRow]] | None = None,
        then: Callable[[T], object] | None = None,
        failed: Callable[[Exception], object] | None = None,
    ) -> Pending[T]:
        """Queue a write; the result is set after the commit. Writes with the same key keep their order.

        Talks have their own keys. Writes of agents have none, so that posted envelopes are handed over before a claim
        can find them. `facts` is called with the result in the transaction, and changes nothing; the facts that it
        returns are passed to the listeners before and after the commit. `then` is called with the result after the
        commit, in the order of commits, before callers get their results; `failed` with the error if it failed. They
        must be quick and must not wait. Raise Unavailable if too many writes are queued or the store is closed.
        """
        ...

    def read(self, op: Callable[..., T], *args: Any) -> Pending[T]:
        """Execute a read on a snapshot; it sees everything committed before the call."""
        ...

    def read_now(self, op: Callable[..., T], *args: Any) -> T:
        """Execute a short read on this thread, on a snapshot."""
        ...

    def listen(
        self,
        died: Callable[[Sequence[DeadLetter]], object],
        armed: Callable[[float], object] = bool,
        *,
        committing: Callable[[Tx, Sequence[FactRow]], object] | None = None,
        reported: Callable[[Sequence[FactRow]], object] = bool,
    ) -> None:
        """Set the listeners of commits. They are called after `then`, and before callers that wait get their results.

        `committing` is called in each transaction that has facts or dead letters, with its facts; what it writes is
        part of it. `reported` is called with the facts of each write after the commit, before its `then`. `died` is
        called with the dead letters added in a commit, `armed` with the earliest due time of its timers;
        neither if there are none. Like `then`, they must be quick and must not wait.
        """
        ...

    @property
    def lost(self) -> Unavailable | None:
        """Error if writes would be lost now, else None: the file was removed, or another process owns the database."""
        ...

    async def heartbeat(self, age: float) -> None:
        """Return if a write was committed within these seconds, or can be now; raise Unavailable if not."""
        ...

    def load(self) -> StoreLoad:
        """Return the load."""
        ...

    def close(self) -> None:
        """Execute what is queued, then release the database."""
        ...
