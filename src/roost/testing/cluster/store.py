"""The one store of all simulated nodes: a SQLite file that stands for the database server.

SQLite executes each transaction alone, so no row locks are needed. What the caches of a single writer know may be wrong
here, since other nodes write as well: they are cleared at each transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from typing import Any, Protocol

from roost.errors import RoostError, Unavailable
from roost.ports import Host
from roost.stores.engine import Engine
from roost.stores.sqlite import SqliteConnection
from roost.testing.faulty_sqlite import FaultySqlite, UnknownOutcome, full_disk


class Unreachable(sqlite3.OperationalError):
    """The database server does not answer, or refuses an evicted node."""


class CommitFaults(Protocol):
    """Source of faults for the transactions of a node."""

    def commit(self) -> str | None: ...

    def commit_crash(self, moment: str, operations: Collection[str]) -> None:
        """Raise Crash if the machine crashes before or after a commit of these operations."""
        ...


class NodeDatabase:
    """The shared file, as one node sees it."""

    writers = readers = 1

    def __init__(self, shared: FaultySqlite, node: str, faults: CommitFaults, *, ends_backends: bool) -> None:
        self.shared = shared
        self.node = node
        self.faults = faults
        self.generation = shared.generation
        self.schema = shared.schema
        self.lost: Unavailable | None = None
        self.is_member = True
        self.is_cut: Callable[[], bool] = lambda: False
        """Returns whether the server cannot be reached."""
        self.ends_backends = ends_backends
        """True: connections of an evicted node are refused. False, as with a pooler: only epochs protect the rows."""
        self._connections: list[SqliteConnection] = []

    def connect(self, *, read_only: bool) -> NodeConnection:
        connection = NodeConnection(self, read_only=read_only)
        self._connections.append(connection)
        return connection

    def transact(self, op: Callable[..., Any], *args: Any) -> Any:
        """Execute one operation at once, as another process would."""
        connection = SqliteConnection(self.shared.path, self.shared.now, read_only=False)
        try:
            connection.begin()
            result = op(connection, *args)
            connection.catch_up()
            connection.commit()
        finally:
            connection.close()
        return result

    def cut_power(self) -> None:
        for connection in self._connections:
            connection.close()

    def translate(self, error: Exception) -> RoostError | None:
        if isinstance(error, Unreachable):
            return Unavailable(f"the database cannot be reached or does not answer: {error}")
        return self.shared.translate(error)

    def is_doubtful(self, error: Exception) -> bool:
        return isinstance(error, UnknownOutcome)

    def is_full(self, error: Exception) -> bool:
        return self.shared.is_full(error)

    def may_retry(self, error: Exception) -> bool:
        return False

    def is_disconnected(self, error: Exception) -> bool:
        return isinstance(error, Unreachable)

    def problem(self) -> Unavailable | None:
        return self.lost

    def release(self) -> None:
        """Do nothing: the file belongs to the simulation."""


class NodeConnection(SqliteConnection):
    """Connection of a node; `operations` are those of the batch that is being written."""

    def __init__(self, database: NodeDatabase, *, read_only: bool) -> None:
        super().__init__(database.shared.path, database.shared.now, read_only=read_only)
        self.node = database.node
        self.operations: Collection[str] = ()
        self._database = database
        self._read_only = read_only
        if not read_only:
            database.shared.prepare(self._db)

    def begin(self) -> None:
        if self._database.is_cut():
            raise Unreachable("the connection is cut")
        super().begin()
        self.ends.clear()
        if not self._read_only and self._database.ends_backends:
            self._refuse_evicted()

    def _refuse_evicted(self) -> None:
        if self.one("SELECT 1 FROM nodes WHERE node_id = :node AND state = 'gone'", {"node": self.node}) is not None:
            self.rollback()
            text = "this node has lost its lease, and others do its work: start it again"
            self._database.lost = Unavailable(text)
            raise Unreachable(text)

    def commit(self) -> None:
        faults = self._database.faults
        faults.commit_crash("before", self.operations)
        match faults.commit():
            case "failed":
                raise full_disk()
            case "undone":
                raise UnknownOutcome("the connection was lost")
            case "done":
                super().commit()
                raise UnknownOutcome("the connection was lost")
        super().commit()
        faults.commit_crash("after", self.operations)


class NodeEngine(Engine):
    """Engine whose connections know which operations a batch has."""

    def __init__(self, host: Host, database: NodeDatabase, *, queued: int) -> None:
        super().__init__(host, database, queued=queued)
        for writer in self._writers:
            _name_operations(writer)


def _name_operations(writer: Any) -> None:
    attempt = writer._attempt

    def named(batch: list[Any]) -> Any:
        writer.connection.operations = {job.op.__name__ for job in batch}
        return attempt(batch)

    writer._attempt = named
