"""The store: operations that are queued and committed, and what each of them is given."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from roost.core.envelopes import DeadLetter
from roost.core.metrics import Histogram
from roost.ports.host import Pending

T = TypeVar("T")
Row = Sequence[Any]
Params = Mapping[str, Any] | Sequence[Any]


class Tx(Protocol):
    """What an operation is given: statements with `:name` parameters (or `?` in order), the same on every database."""

    for_update: str
    """Ends a SELECT whose rows must not change before the commit (empty where the writer is alone)."""
    died: list[DeadLetter]
    """Letters that have died in this transaction: who listens to the store is told of them after the commit."""

    def read(self, sql: str, params: Params = ...) -> list[Row]: ...

    def one(self, sql: str, params: Params = ...) -> Row | None: ...

    def write(self, sql: str, params: Params = ...) -> list[Row]:
        """Change something; what `RETURNING` gives."""
        ...

    def later(self, table: str, columns: tuple[str, ...], row: Sequence[Any], ending: str = "") -> None:
        """Insert this row, together with others: before a statement names the table, and with the commit at last."""
        ...


@dataclass(frozen=True, slots=True)
class Look:
    """A look at an agent: `anew`, by someone who does not work for it yet.

    `untried`: what counts as tried, and was not.
    """

    address: str
    anew: bool
    untried: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """What a look at agents needs to know of the world: the time, the load, and which profiles there are here."""

    time: float
    new_id: Callable[[], str]
    """For each change of a state that comes of it: most looks change none."""
    cpu: float | None = None
    awake: int | None = None
    knows: Callable[[str], bool] = bool
    """Whether there is a profile of this name; if nothing is said, there is any."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a store keeps up: what is queued, and how many operations there were to a commit."""

    queued_writes: int
    queued_reads: int
    batches: Histogram


class Store(Protocol):
    """The truth. An operation is a plain function `op(tx, …) -> result`.

    Operations are repeatable: a batch that fails is rolled back and its operations are done again one by
    one, so they change nothing but the database, and ids and times of the caller's are made outside.
    An operation that refuses raises a RoostError, best before it has written anything.
    """

    def write(
        self, op: Callable[..., T], *args: Any, key: str = "", then: Callable[[T], object] | None = None,
        failed: Callable[[Exception], object] | None = None,
    ) -> Pending[T]:  # fmt: skip
        """Do it in order with all others of the same key; settled after the commit. What is about agents has none, so
        that what was posted is handed over before anyone can look for it; talks have their own.

        `then` is called with the result after the commit, in the order of commits, before anyone who waits is
        told; `failed` with the error if it could not be done. They must be quick and must not wait. Raises
        Unavailable when too much is queued or the store is closed.
        """
        ...

    def read(self, op: Callable[..., T], *args: Any) -> Pending[T]:
        """Do it on a snapshot; sees what was committed before the call."""
        ...

    def listen(self, died: Callable[[Sequence[DeadLetter]], object]) -> None:
        """Have it called with the letters that have died, after each commit in which some did and what follows it.

        As `then`, it must be quick and must not wait. Whoever waits is told later.
        """
        ...

    def pace(self) -> Pace:
        """How it keeps up."""
        ...

    def close(self) -> None:
        """Do what is queued, then let go of the database."""
        ...
