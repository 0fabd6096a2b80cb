"""Connections to PostgreSQL: pipelined, reopened when they are lost, and closed when the server hangs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import errors

from roost.core.cluster.nodes import application_name
from roost.ports import Params, Row
from roost.stores.deferred_inserts import DeferredInserts

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
CONNECT_TIMEOUT = 5
REPLY_TIMEOUT = 12.0
"""Timeout of a statement in seconds. The server's own limits are shorter; if they do not hold, it has failed."""
SOCKET: dict[str, Any] = {
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 6_000,
}
"""Connection settings: a server that does not respond for 6 seconds counts as down."""
OPTIONS = "-c statement_timeout=10s -c lock_timeout=5s -c idle_in_transaction_session_timeout=5s"
_UNLIMITED = "-c statement_timeout=0 -c lock_timeout=3s"
"""Options for migrations, which may take long on a large store."""
MOST_UNSENT = 32 * 1024
"""Bytes of statements that are sent without waiting. If more do not fit into the buffers of the connection, the driver
waits for an answer before it has sent them, without end."""


class ServerHung(psycopg.OperationalError):
    """The server did not answer in time; the connection was closed."""


class DriverConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that gives up on a server that does not answer: the network may work while the server hangs."""

    reply_timeout: float | None = REPLY_TIMEOUT

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, timeout or self.reply_timeout)
        except errors._WaitTimeout as error:
            self.pgconn.finish()
            raise ServerHung(f"no answer within {self.reply_timeout:g} s") from error


@lru_cache(maxsize=1024)
def _translated(sql: str) -> str:
    """Return SQL with the driver's `%(name)s` for `:name` and `%s` for `?`."""
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")).replace("?", "%s")


@lru_cache(maxsize=1024)
def _returns_rows(sql: str) -> bool:
    return sql.startswith("SELECT") or "RETURNING" in sql


def _size(text: str, params: Params) -> int:
    """Return roughly the bytes of a statement."""
    values = params.values() if isinstance(params, Mapping) else params
    return len(text) + sum(len(value) if isinstance(value, str | bytes) else 16 for value in values)


class PostgresConnection(DeferredInserts):
    """A connection that is reopened when it is lost.

    A pipelined one waits for the server only when a statement returns rows, and at the end of the transaction. A failed
    statement may be reported by a later one, or by the commit. A read-only one has no transactions: each statement sees
    what was committed before, as it would inside of them.
    """

    for_update = " FOR UPDATE"
    for_share = " FOR KEY SHARE"
    writer = "pg_backend_pid()"

    def __init__(
        self,
        url: str,
        *,
        read_only: bool,
        joined: Callable[[DriverConnection], None] | None = None,
        unlimited: bool = False,
        pipelined: bool = False,
        node: str = "",
        reply_timeout: float = REPLY_TIMEOUT,
    ) -> None:
        self._url = url
        self._reply_timeout = reply_timeout
        self.node = node
        self._read_only = read_only
        self._joined = joined
        self._unlimited = unlimited
        self._pipelined = pipelined
        self._mode = ExitStack()
        self._pipeline: psycopg.Pipeline | None = None
        self._answered = False
        """True if the server has answered in the current transaction."""
        self._unsent = 0
        """Bytes that were given to the driver since the last answer."""
        self._db = self._connect()
        super().__init__()
        self.wrote = False

    @property
    def driver(self) -> DriverConnection:
        """The connection of the driver, for COPY. Not for a pipelined connection."""
        return self._db

    def limit(self) -> None:
        """Wait for answers no longer than other connections do, from now on."""
        self._unlimited = False
        self._db.reply_timeout = self._reply_timeout

    def begin(self) -> None:
        if self._db.closed or self._db.broken:
            self.close()
            self._db = self._connect()
        if not self._read_only:
            self._answered = False
            self._db.execute("BEGIN", prepare=False)

    def alone(self) -> None:
        self._db.execute("SELECT pg_advisory_xact_lock(7051)")

    def has_table(self, name: str) -> bool:
        row = self.one("SELECT to_regclass(:name)", {"name": name})
        return row is not None and row[0] is not None

    def give_back(self, pages: int, keep: float) -> bool:
        return False  # autovacuum frees pages for new rows, and truncates tables

    def commit(self) -> None:
        self._db.execute("COMMIT", prepare=False)
        self._wait()

    def rollback(self) -> None:
        self._discard()
        if self._read_only:
            return
        with suppress(psycopg.Error):  # of the statement that failed
            self._wait()
        try:
            self._db.execute("ROLLBACK", prepare=False)
            self._wait()
        except psycopg.Error:
            self.close()

    def _wait(self) -> None:
        """Wait until the server has answered everything. Then it is idle, and its limit of idle transactions counts."""
        if self._pipeline is not None:
            self._pipeline.sync()
        self._answered, self._unsent = True, 0

    def catch_up(self, sql: str | None = None) -> None:
        super().catch_up(sql)
        # A connection that was lost before this transaction must not be noticed by its commit, which would be in doubt.
        if sql is None and not self._answered:
            self._wait()

    def close(self) -> None:
        with suppress(psycopg.Error):  # it may be lost
            self._mode.close()
        self._db.close()

    def read(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        if self._deferred:
            self.catch_up(sql)
        return self._execute(sql, params).fetchall()

    def one(self, sql: str, params: Params = {}) -> Row | None:  # noqa: B006 — never changed
        if self._deferred:
            self.catch_up(sql)
        return self._execute(sql, params).fetchone()

    def write(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        if self._deferred:
            self.catch_up(sql)
        if not _returns_rows(sql):
            self._send(_translated(sql), params)
            self.wrote = True
            return []
        rows = self._execute(sql, params).fetchall()
        self.wrote = self.wrote or bool(rows)
        return rows

    def _execute(self, sql: str, params: Params) -> psycopg.Cursor[Row]:
        """Execute a statement and wait for its rows."""
        cursor = self._send(_translated(sql), params)
        self._wait()
        return cursor

    def _send(self, text: str, params: Params) -> psycopg.Cursor[Row]:
        """Send a statement, without waiting for its result if it is pipelined."""
        if self._pipeline is None:
            return self._db.execute(text, params)
        size = _size(text, params)
        if self._unsent + size > MOST_UNSENT:
            self._wait()
            if size > MOST_UNSENT:
                return self._send_alone(text, params)
        self._unsent += size
        return self._db.execute(text, params)

    def _send_alone(self, text: str, params: Params) -> psycopg.Cursor[Row]:
        """Execute a large statement outside of the pipeline."""
        self._mode.close()
        try:
            return self._db.execute(text, params)
        finally:
            self._pipeline = self._mode.enter_context(self._db.pipeline())

    def _connect(self) -> DriverConnection:
        options = _UNLIMITED if self._unlimited else OPTIONS
        options += " -c default_transaction_read_only=on" if self._read_only else ""
        db = DriverConnection.connect(
            self._url,
            options=options,
            connect_timeout=min(CONNECT_TIMEOUT, math.ceil(self._reply_timeout)),
            application_name=application_name(self.node) if self.node else "roost",
            autocommit=True,
            **SOCKET,
        )
        try:
            db.reply_timeout = None if self._unlimited else self._reply_timeout
            if self._joined is not None:
                self._joined(db)
            if self._pipelined:
                self._pipeline = self._mode.enter_context(db.pipeline())
        except BaseException:
            db.close()
            raise
        return db
