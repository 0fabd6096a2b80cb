"""PostgreSQL: several writers, each with its own share of the lanes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from socket import gethostname
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import errors

from roost.core.cluster.nodes import announcement
from roost.errors import InUse, RoostError, Unavailable
from roost.stores import migrations
from roost.stores.postgres_connection import (
    CONNECT_TIMEOUT,
    OPTIONS,
    SOCKET,
    DriverConnection,
    PostgresConnection,
    ServerHung,
)

# Two locks keep a second program out. One connection of this process holds the first. Each writer shares the second:
# no other program can start while a writer is connected, and a writer that reconnects checks the first lock.
_OWNER = 7052
_WRITERS = 7053
_HOLDER = f"""
SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = {_OWNER} AND l.objsubid = 1 AND l.granted
"""
MIGRATION_ATTEMPTS = 20
"""Attempts of a migration, each of which waits up to 3 seconds for a lock."""
_LOST = ("57P01", "57P02", "57P03")
"""SQL states of a server that is shutting down or starting."""
# Errors of a connection that is not opened have no SQL state, only the server's text, which may be in another language.
_USER_REFUSED = ("password authentication failed", "no password supplied", "no pg_hba.conf entry", 'role "')
_NO_TRUST = ("certificate", "does not support SSL")


class Postgres:
    """A server as a database. Opening it brings the schema up to date.

    It belongs to one process or, if `node` is given, to the nodes of a cluster, of which this is one.
    """

    writers = 2  # more of them make smaller batches: each batch costs round trips, locks and a commit
    readers = 2

    def __init__(self, url: str, node: str = "", applied: Callable[[str], object] = bool) -> None:
        self._url = url
        self._applied = applied
        """Called with the name of each migration."""
        self._node = node
        self._where = _without_secrets(url)
        self._own_pids: set[int] = set()
        self.lost: Unavailable | None = None
        """Error if writes would be lost now, else None."""
        self.is_member = False
        self._capacity: dict[str, int] = {}
        """Shared by the writers."""
        self._announced = ""
        self._announcement = announcement(node)
        try:
            self._prepare()
        except psycopg.Error as error:
            raise self._unusable(error) from None  # the driver's message may contain the password

    def connect(self, *, read_only: bool) -> PostgresConnection:
        try:
            joined = None if read_only else self._join
            made = PostgresConnection(
                self._url, read_only=read_only, joined=joined, pipelined=not read_only, node=self._node
            )
        except psycopg.Error as error:
            raise self._unusable(error) from None  # the driver's message may contain the password
        if not read_only:
            made.capacity = self._capacity
        return made

    def _unusable(self, error: psycopg.Error) -> RoostError:
        return self.translate(error) or self._unavailable("{where} cannot be used: check its URL")

    def translate(self, error: Exception) -> RoostError | None:
        if self.is_full(error):
            return Unavailable(
                "the database's disk is full: free some space and try again; nothing acknowledged is lost"
            )
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return self._unavailable("{where} is read-only: use its primary server")
        if isinstance(error, errors.InvalidAuthorizationSpecification | errors.InsufficientPrivilege):
            return self._unavailable("{where} refuses this user: check name, password and rights")
        if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            return self._not_opened(str(error))
        # Connections lost or refused (08, or no code at all), servers shutting down (57), too busy (53, 55).
        if isinstance(error, psycopg.OperationalError) and str(error.sqlstate)[:2] in ("08", "53", "55", "57"):
            return self._unavailable("{where} cannot be reached or does not answer: check it, then try again")
        return None

    def _not_opened(self, text: str) -> Unavailable:
        """Return the error for a connection that was not opened, or was lost."""
        if any(words in text for words in _NO_TRUST):
            return self._unavailable(
                "{where} cannot be reached with the encryption that was asked for: check its certificate, and `sslmode`"
                " and `sslrootcert` of its URL"
            )
        if any(words in text for words in _USER_REFUSED):
            return self._unavailable("{where} refuses this user: check name, password and rights")
        return self._unavailable("{where} cannot be reached or does not answer: check it, then try again")

    def is_full(self, error: Exception) -> bool:
        return isinstance(error, errors.DiskFull)

    def is_doubtful(self, error: Exception) -> bool:
        """Return whether a commit that failed in this way may have succeeded: its answer is lost.

        Any other error is one of the commit, or of a statement before it that was not waited for.
        """
        return self.is_disconnected(error)

    def may_retry(self, error: Exception) -> bool:
        """Return whether it lost a race or a connection; nothing of it is committed. A hung server would hang again."""
        if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
            return True
        return self.is_disconnected(error) and not isinstance(error, ServerHung)

    def is_disconnected(self, error: Exception) -> bool:
        if isinstance(error, errors.IdleInTransactionSessionTimeout):  # this process was frozen for some seconds
            return True
        state = getattr(error, "sqlstate", None) or "08"
        return isinstance(error, psycopg.OperationalError) and (state.startswith("08") or state in _LOST)

    def release(self) -> None:
        with suppress(psycopg.Error):  # an unreachable server has no announcement to remove
            self._owner.begin()
            self._owner.write(
                "DELETE FROM meta WHERE name = :name AND value = :value",
                {"name": self._announcement, "value": self._announced},
            )
            self._owner.commit()
        self._owner.close()

    def announce(self, **facts: Any) -> None:
        """Write how to reach the owner into the database, for programs that find it in use. Contains no secrets."""
        facts.pop("token", None)
        self._announced = json.dumps({"pid": os.getpid(), "host": gethostname(), **facts})
        try:
            self._owner.begin()
            self._owner.write(
                "INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = :value",
                {"name": self._announcement, "value": self._announced},
            )
            self._owner.commit()
        except psycopg.Error as error:
            raise self._unusable(error) from None  # the driver's message may contain the password

    def _prepare(self) -> None:
        """Hold a lock on this connection while the database is in use: two processes would run each other's talks."""
        self._owner = PostgresConnection(
            self._url, read_only=False, joined=self._enlist, unlimited=True, node=self._node
        )
        try:
            self._take()
            self._migrate()
            self._owner.limit()
        except BaseException:
            self._owner.close()
            raise

    def _migrate(self) -> None:
        """Migrate while other nodes work: a step that waits too long for their locks is tried again."""
        migrations.refuse_incompatible(self._owner, self._where)
        for attempt in count(1):
            try:
                migrations.migrate(self._owner, dialect="postgres", applied=self._applied)
                break
            except (errors.LockNotAvailable, errors.DeadlockDetected):
                if attempt == MIGRATION_ATTEMPTS:
                    raise self._unavailable(
                        "{where} cannot be migrated, since its tables are in use, or another program migrates it:"
                        " try again later"
                    ) from None
        self.schema = migrations.schema(self._owner)
        self.generation = migrations.generation(self._owner)
        self._owner.rollback()

    def _take(self) -> None:
        """Take the lock; wait briefly, since a process that has just died releases it a moment later."""
        try:
            self._owner.begin()
            self._owner.write("SET LOCAL lock_timeout = '3s'")
            if self._node:  # nodes share it, and exclude a process that has the database alone
                self._owner.read(f"SELECT pg_advisory_lock_shared({_OWNER})")
                self._owner.commit()
                return
            self._owner.read(f"SELECT pg_advisory_lock({_OWNER})")
            self._owner.read(f"SELECT pg_advisory_lock({_WRITERS})")
            self._owner.read(f"SELECT pg_advisory_unlock({_WRITERS})")
            self._owner.commit()
        except errors.LockNotAvailable as error:
            raise self._taken() from error

    def _enlist(self, db: DriverConnection) -> None:
        self._own_pids.add(db.info.backend_pid)

    def _join(self, db: DriverConnection) -> None:
        """Raise Unavailable if another process became the owner while the connection was lost."""
        self._enlist(db)
        if self._node:
            self._check_node(db)
            return
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

    def _check_node(self, db: DriverConnection) -> None:
        """Raise Unavailable if this node may no longer use the store.

        It was evicted, the store was replaced by an older copy, or it was migrated by a newer program.
        """
        row = db.execute("SELECT state FROM nodes WHERE node_id = %s", (self._node,)).fetchone()
        if row is None and self.is_member:
            self.lost = Unavailable("the store does not know this node, since it is an older copy: start it again")
            raise self.lost
        if row is not None and row[0] == "gone":
            self.lost = Unavailable("this node has lost its lease, and others do its work: start it again")
            raise self.lost
        oldest = db.execute("SELECT value FROM meta WHERE name = 'oldest'").fetchone()
        if oldest is not None and int(oldest[0]) > migrations.known():
            self.lost = Unavailable(
                "the store was migrated by a newer Roost: install that one and start this node again"
            )
            raise self.lost

    def problem(self) -> Unavailable | None:
        return self.lost

    def _taken(self) -> InUse:
        facts = owner(self._url)
        place = f" (process {facts['pid']} on {facts['host']}, at {facts['url']})" if "url" in facts else ""
        message = "is in use by another Roost{place}: stop it, use it with --server URL, or name another database"
        return InUse(
            f"the database {self._where} {message.format(place=place)}",
            public=f"the database {message.format(place='')}",
        )

    def _unavailable(self, message: str) -> Unavailable:
        where = f"the database {self._where}"
        return Unavailable(message.format(where=where), public=message.format(where="the database"))


def owner(url: str) -> dict[str, Any]:
    """Return what the owner of a database announced about itself; empty if nothing can be read.

    In a cluster it is a node on this machine, if there is one.
    """
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT, options=OPTIONS, **SOCKET) as db:
            rows = db.execute("SELECT value FROM meta WHERE name LIKE 'owner%' ORDER BY name DESC").fetchall()
        found = [facts for row in rows if isinstance(facts := json.loads(row[0]), dict)]
    except (psycopg.Error, ValueError):
        return {}
    here = [facts for facts in found if facts.get("host") == gethostname()]
    return next(iter(here or found), {})


def _without_secrets(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "of the given URL"
    return f"{parts.hostname or 'localhost'}{parts.path}"
