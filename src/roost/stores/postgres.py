"""PostgreSQL: several writers, each with its own share of the lanes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from socket import gethostname
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import errors

from roost.errors import InUse, RoostError, Unavailable
from roost.ports import Params, Row
from roost.stores import migrations
from roost.stores.deferred_inserts import DeferredInserts

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")

# Two locks keep a second program out. One connection of this process holds the first. Each writer shares the second:
# no other program can start while a writer is connected, and a writer that reconnects checks the first lock.
_OWNER = 7052
_WRITERS = 7053
_HOLDER = f"""
SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = {_OWNER} AND l.objsubid = 1 AND l.granted
"""
CONNECT_TIMEOUT = 5
REPLY_TIMEOUT = 12.0
"""Timeout of a statement in seconds. The server's own limits are shorter; if they do not hold, it has failed."""
_SOCKET: dict[str, Any] = {
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 6_000,
}
"""Connection settings: a server that does not respond for 6 seconds counts as down."""
_OPTIONS = "-c statement_timeout=10s -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s"
_UNLIMITED = "-c statement_timeout=0 -c lock_timeout=3s"
"""Options for migrations, which may take long on a large store."""
_LOST = ("57P01", "57P02", "57P03")
"""SQL states of a server that is shutting down or starting."""


class ServerHung(psycopg.OperationalError):
    """The server did not answer in time; the connection was closed."""


class Raw(psycopg.Connection[tuple[Any, ...]]):
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


class PostgresConnection(DeferredInserts):
    """A connection that is reopened when it is lost."""

    for_update = " FOR UPDATE"
    for_share = " FOR KEY SHARE"

    def __init__(
        self, url: str, *, read_only: bool, joined: Callable[[Raw], None] | None = None, unlimited: bool = False
    ) -> None:
        self._url = url
        self._read_only = read_only
        self._joined = joined
        self._unlimited = unlimited
        self._db = self._connect()
        super().__init__()
        self.wrote = False

    def begin(self) -> None:
        if self._db.closed or self._db.broken:
            self._db = self._connect()
        # The driver begins a transaction with the first statement.

    def alone(self) -> None:
        self._db.execute("SELECT pg_advisory_xact_lock(7051)")

    def has_table(self, name: str) -> bool:
        row = self.one("SELECT to_regclass(:name)", {"name": name})
        return row is not None and row[0] is not None

    def commit(self) -> None:
        self._db.commit()

    def rollback(self) -> None:
        self._discard()
        try:
            self._db.rollback()
        except psycopg.Error:
            self._db.close()

    def close(self) -> None:
        self._db.close()

    def read(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        if self._deferred:
            self.catch_up(sql)
        return list(self._db.execute(_translated(sql), params).fetchall())

    def one(self, sql: str, params: Params = {}) -> Row | None:  # noqa: B006 — never changed
        if self._deferred:
            self.catch_up(sql)
        return self._db.execute(_translated(sql), params).fetchone()

    def write(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        if self._deferred:
            self.catch_up(sql)
        cursor = self._db.execute(_translated(sql), params)
        rows: list[Row] = list(cursor.fetchall()) if cursor.description else []
        self.wrote = self.wrote or bool(rows) or cursor.rowcount != 0
        return rows

    def _connect(self) -> Raw:
        options = _UNLIMITED if self._unlimited else _OPTIONS
        db = Raw.connect(
            self._url, options=options, connect_timeout=CONNECT_TIMEOUT, application_name="roost", **_SOCKET
        )
        try:
            if self._unlimited:
                db.reply_timeout = None
            if self._joined is not None:
                self._joined(db)
        except BaseException:
            db.close()
            raise
        db.read_only = self._read_only
        return db


class Postgres:
    """A server as a database. Opening it brings the schema up to date."""

    writers = 4
    readers = 2

    def __init__(self, url: str) -> None:
        self._url = url
        self._where = _without_secrets(url)
        self._own_pids: set[int] = set()
        self.lost: Unavailable | None = None
        """Error if writes would be lost now, else None."""
        self._capacity: dict[str, int] = {}
        """Shared by the writers."""
        self._announced = ""
        try:
            self._prepare()
        except psycopg.Error as error:
            raise self._unusable(error) from None  # the driver's message may contain the password

    def connect(self, *, read_only: bool) -> PostgresConnection:
        try:
            made = PostgresConnection(self._url, read_only=read_only, joined=None if read_only else self._join)
        except psycopg.Error as error:
            raise self._unusable(error) from None  # the driver's message may contain the password
        if not read_only:
            made.capacity = self._capacity
        return made

    def _unusable(self, error: psycopg.Error) -> RoostError:
        return self.translate(error) or self._unavailable("{where} cannot be used: check its URL")

    def translate(self, error: Exception) -> RoostError | None:
        if isinstance(error, errors.DiskFull):
            return Unavailable(
                "the database's disk is full: free some space and try again; nothing acknowledged is lost"
            )
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return self._unavailable("{where} is read-only: use its primary server")
        if isinstance(error, errors.InvalidAuthorizationSpecification | errors.InsufficientPrivilege):
            return self._unavailable("{where} refuses this user: check name, password and rights")
        # Connections lost or refused (08, or no code at all), servers shutting down (57), too busy (53, 55).
        if isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "53", "55", "57"):
            return self._unavailable("{where} cannot be reached or does not answer: check it, then try again")
        return None

    def is_doubtful(self, error: Exception) -> bool:
        return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57")

    def may_retry(self, error: Exception) -> bool:
        """Return whether it lost a race or a connection; nothing of it is committed. A hung server would hang again."""
        if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
            return True
        return self.is_disconnected(error) and not isinstance(error, ServerHung)

    def is_disconnected(self, error: Exception) -> bool:
        state = getattr(error, "sqlstate", None) or "08"
        return isinstance(error, psycopg.OperationalError) and (state.startswith("08") or state in _LOST)

    def release(self) -> None:
        with suppress(psycopg.Error):  # an unreachable server has no announcement to remove
            self._owner.begin()
            self._owner.write("DELETE FROM meta WHERE name = 'owner' AND value = :value", {"value": self._announced})
            self._owner.commit()
        self._owner.close()

    def announce(self, **facts: Any) -> None:
        """Write how to reach the owner into the database, for programs that find it in use. Contains no secrets."""
        facts.pop("token", None)
        self._announced = json.dumps({"pid": os.getpid(), "host": gethostname(), **facts})
        self._owner.begin()
        self._owner.write(
            "INSERT INTO meta (name, value) VALUES ('owner', :value) ON CONFLICT (name) DO UPDATE SET value = :value",
            {"value": self._announced},
        )
        self._owner.commit()

    def _prepare(self) -> None:
        """Hold a lock on this connection while the database is in use: two processes would run each other's talks."""
        self._owner = PostgresConnection(self._url, read_only=False, joined=self._enlist, unlimited=True)
        try:
            self._take()
            migrations.refuse_newer(self._owner, self._where)
            migrations.migrate(self._owner, dialect="postgres")
            self.generation = migrations.generation(self._owner)
            self._owner.rollback()
        except BaseException:
            self._owner.close()
            raise

    def _take(self) -> None:
        """Take the lock; wait briefly, since a process that has just died releases it a moment later."""
        try:
            self._owner.write("SET LOCAL lock_timeout = '3s'")
            self._owner.read(f"SELECT pg_advisory_lock({_OWNER})")
            self._owner.read(f"SELECT pg_advisory_lock({_WRITERS})")
            self._owner.read(f"SELECT pg_advisory_unlock({_WRITERS})")
            self._owner.commit()
        except errors.LockNotAvailable as error:
            raise self._taken() from error

    def _enlist(self, db: Raw) -> None:
        self._own_pids.add(db.info.backend_pid)

    def _join(self, db: Raw) -> None:
        """Raise Unavailable if another process became the owner while the connection was lost."""
        self._enlist(db)
        db.execute(f"SELECT pg_advisory_lock_shared({_WRITERS})")
        for _ in range(3):
            holder = db.execute(_HOLDER).fetchone()
            # The connection that held it may be lost as well: then this one takes it.
            free = holder is None and db.execute(f"SELECT pg_try_advisory_lock({_OWNER})").fetchone()
            if (free and free[0]) or (holder and holder[0] in self._own_pids):
                db.commit()
                self.lost = None
                return
        self.lost = self._taken()
        raise self.lost

    def problem(self) -> Unavailable | None:
        return self.lost

    def _taken(self) -> InUse:
        facts = owner(self._url)
        place = f" (process {facts['pid']} on {facts['host']}, at {facts['url']})" if "url" in facts else ""
        message = "is in use by another Roost{place}: stop it or name another database"
        return InUse(
            f"the database {self._where} {message.format(place=place)}",
            public=f"the database {message.format(place='')}",
        )

    def _unavailable(self, message: str) -> Unavailable:
        where = f"the database {self._where}"
        return Unavailable(message.format(where=where), public=message.format(where="the database"))


def owner(url: str) -> dict[str, Any]:
    """Return what the owner of a database announced about itself; empty if nothing can be read."""
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT, options=_OPTIONS) as db:
            row = db.execute("SELECT value FROM meta WHERE name = 'owner'").fetchone()
        facts = json.loads(row[0]) if row else {}
    except (psycopg.Error, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _without_secrets(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "of the given URL"
    return f"{parts.hostname or 'localhost'}{parts.path}"
