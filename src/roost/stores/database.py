"""Contract between the engine and the databases: connections, and the meaning of their errors."""

from __future__ import annotations

from typing import Protocol

from roost.errors import RoostError, Unavailable
from roost.ports import Tx
from roost.stores.migrations import Schema


class Connection(Tx, Protocol):
    """One connection to a database; used by one thread at a time."""

    wrote: bool
    """True if anything was written since `begin`, or since it was last set to False."""

    def begin(self) -> None: ...

    def catch_up(self) -> None:
        """Write the deferred inserts."""
        ...

    def commit(self) -> None: ...

    def rollback(self) -> None:
        """Return to the state at `begin`; replace a broken connection. Raises nothing."""
        ...

    def close(self) -> None: ...


class Database(Protocol):
    """A kind of database: how to connect to it and what its errors mean."""

    writers: int
    readers: int
    generation: str
    """See `Store.generation`."""
    schema: Schema
    """Version of its schema when it was opened."""

    lost: Unavailable | None
    """Error if writes would be lost now, else None."""

    is_member: bool
    """Set when this node has joined its cluster: a store that does not know it is an older copy, and refuses it."""

    def problem(self) -> Unavailable | None:
        """Return the error if writes fail now or will soon fail."""
        ...

    def connect(self, *, read_only: bool) -> Connection: ...

    def translate(self, error: Exception) -> RoostError | None:
        """Return the RoostError for a driver's error; None if it is not a database error."""
        ...

    def is_full(self, error: Exception) -> bool:
        """Return whether the disk has no space for the write."""
        ...

    def is_doubtful(self, error: Exception) -> bool:
        """Return whether a commit that failed with this error may have succeeded."""
        ...

    def may_retry(self, error: Exception) -> bool:
        """Return whether the same batch may succeed when it is executed again."""
        ...

    def is_disconnected(self, error: Exception) -> bool:
        """Return whether the connection is lost, so that every queued operation would fail the same way."""
        ...

    def release(self) -> None:
        """Release what is held for the whole process, such as the lock file."""
        ...
