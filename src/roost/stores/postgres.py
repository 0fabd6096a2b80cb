"""PostgreSQL: several writers, each with its own share of the lanes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import errors

from roost.errors import RoostError, Unavailable
from roost.ports import Params, Row
from roost.stores import migrations
from roost.stores.gathering import Gathering

Raw = psycopg.Connection[tuple[Any, ...]]
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")

# Two locks keep a second program out. One of our connections holds the first. Each that writes holds a share of the
# second: nobody gets in while one of them is left, and one that comes back looks whether the first is still ours.
_OWNER = 7052
_WRITERS = 7053
_HOLDER = f"""
SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = {_OWNER} AND l.objsubid = 1 AND l.granted
"""
_PATIENCE: dict[str, Any] = {"keepalives_idle": 10, "keepalives_count": 3, "tcp_user_timeout": 30_000}
"""A server that has vanished without a word is given up after half a minute."""
_OPTIONS = "-c statement_timeout=30s -c lock_timeout=10s -c idle_in_transaction_session_timeout=30s"


@lru_cache(maxsize=1024)
def _translated(sql: str) -> str:
    """Our `:name` as the driver's `%(name)s`, and `?` as its `%s`."""
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")).replace("?", "%s")


class PostgresConnection(Gathering):
    """One connection, opened again when it was lost."""

    for_update = " FOR UPDATE"

    def __init__(self, url: str, *, read_only: bool, joined: Callable[[Raw], None] | None = None) -> None:
        self._url = url
        self._read_only = read_only
        self._joined = joined
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
        self._drop_left()
        try:
            self._db.rollback()
        except psycopg.Error:
            self._db.close()

    def close(self) -> None:
        self._db.close()

    def read(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        if self._left:
            self.catch_up(sql)
        return list(self._db.execute(_translated(sql), params).fetchall())

    def one(self, sql: str, params: Params = {}) -> Row | None:  # noqa: B006 — never changed
        if self._left:
            self.catch_up(sql)
        return self._db.execute(_translated(sql), params).fetchone()

    def write(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        if self._left:
            self.catch_up(sql)
        cursor = self._db.execute(_translated(sql), params)
        rows: list[Row] = list(cursor.fetchall()) if cursor.description else []
        self.wrote = self.wrote or bool(rows) or cursor.rowcount != 0
        return rows

    def _connect(self) -> Raw:
        db = psycopg.connect(self._url, options=_OPTIONS, connect_timeout=10, application_name="roost", **_PATIENCE)
        try:
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
        self._ours: set[int] = set()
        try:
            self._prepare()
        except psycopg.Error as error:
            raise self._unusable(error) from None  # its own words may hold the password

    def connect(self, *, read_only: bool) -> PostgresConnection:
        try:
            return PostgresConnection(self._url, read_only=read_only, joined=None if read_only else self._join)
        except psycopg.Error as error:
            raise self._unusable(error) from None  # its own words may hold the password

    def _unusable(self, error: psycopg.Error) -> RoostError:
        return self.translate(error) or Unavailable(f"the database {self._where} cannot be used: check its URL")

    def translate(self, error: Exception) -> RoostError | None:
        if isinstance(error, errors.DiskFull):
            return Unavailable(
                "the database's disk is full: free some space and try again; nothing acknowledged is lost"
            )
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return Unavailable(f"the database {self._where} is read-only: use its primary server")
        if isinstance(error, errors.InvalidAuthorizationSpecification | errors.InsufficientPrivilege):
            return Unavailable(f"the database {self._where} refuses this user: check name, password and rights")
        # Connections lost or refused (08, or no code at all), servers shutting down (57), too busy (53, 55).
        if isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "53", "55", "57"):
            return Unavailable(
                f"the database {self._where} cannot be reached or does not answer: check it, then try again"
            )
        return None

    def is_doubtful(self, error: Exception) -> bool:
        return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57")

    def may_retry(self, error: Exception) -> bool:
        return isinstance(error, errors.SerializationFailure | errors.DeadlockDetected)

    def release(self) -> None:
        self._owner.close()

    def _prepare(self) -> None:
        """Held open, this connection says that the database is taken: two programs would run each other's talks."""
        self._owner = PostgresConnection(self._url, read_only=False, joined=self._enlist)
        try:
            self._take()
            migrations.refuse_newer(self._owner, self._where)
            migrations.migrate(self._owner, dialect="postgres")
        except BaseException:
            self._owner.close()
            raise

    def _take(self) -> None:
        """Waits a little: a program that has just died lets go of it a moment later."""
        try:
            self._owner.write("SET LOCAL lock_timeout = '3s'")
            self._owner.read(f"SELECT pg_advisory_lock({_OWNER})")
            self._owner.read(f"SELECT pg_advisory_lock({_WRITERS})")
            self._owner.read(f"SELECT pg_advisory_unlock({_WRITERS})")
            self._owner.commit()
        except errors.LockNotAvailable as error:
            raise self._taken() from error

    def _enlist(self, db: Raw) -> None:
        self._ours.add(db.info.backend_pid)

    def _join(self, db: Raw) -> None:
        """Raises Unavailable if, while the connection was lost, another program has become the owner."""
        self._enlist(db)
        db.execute(f"SELECT pg_advisory_lock_shared({_WRITERS})")
        for _ in range(3):
            holder = db.execute(_HOLDER).fetchone()
            # The connection that held it may be lost as well: then this one takes its place.
            free = holder is None and db.execute(f"SELECT pg_try_advisory_lock({_OWNER})").fetchone()
            if (free and free[0]) or (holder and holder[0] in self._ours):
                db.commit()
                return
        raise self._taken()

    def _taken(self) -> Unavailable:
        return Unavailable(f"the database {self._where} is in use by another Roost: stop it or name another database")


def _without_secrets(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "of the given URL"
    return f"{parts.hostname or 'localhost'}{parts.path}"
