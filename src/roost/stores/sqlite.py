"""SQLite: one file, one writer, owned by one process at a time."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from roost.errors import InUse, RoostError, Unavailable
from roost.ports import Params, Row
from roost.stores import migrations, space, wal
from roost.stores.deferred_inserts import DeferredInserts
from roost.stores.presence import Presence

_MESSAGES = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space and try again; nothing that was acknowledged is lost",
    sqlite3.SQLITE_READONLY: "the file {path} or its folder is read-only: make both writable and try again",
    sqlite3.SQLITE_NOTADB: "the file {path} is not a SQLite database: move it away or name another one",
    sqlite3.SQLITE_CORRUPT: "the database {path} is damaged: restore it from a backup",
    sqlite3.SQLITE_CANTOPEN: "the file {path} cannot be opened: check that it may be read and written",
    sqlite3.SQLITE_PERM: "the file {path} may not be used: check that it may be read and written",
    sqlite3.SQLITE_BUSY: "another program holds {path}: end it and try again",
    sqlite3.SQLITE_LOCKED: "another program holds {path}: end it and try again",
    sqlite3.SQLITE_IOERR: "the disk with {path} reports an error: check its space and health, then try again",
    sqlite3.SQLITE_TOOBIG: "this is too large for the database",
}


LEAST_FREE = 1024 * 1024
"""Free disk space in bytes required for readiness."""


class SqliteConnection(DeferredInserts):
    """A connection in autocommit mode, with explicit transactions."""

    for_update = for_share = ""
    writer = "0"

    def __init__(
        self,
        path: Path,
        now: Callable[[], float],
        *,
        read_only: bool,
        check: Callable[[sqlite3.Connection], None] | None = None,
    ) -> None:
        mode = "ro" if read_only else "rw"
        self._check = check
        self._db = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
        )
        self._now = now
        self._db.execute("PRAGMA busy_timeout = 5000")
        if read_only:
            self._db.execute("PRAGMA query_only = ON")
        else:
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA secure_delete = FAST")
            self._db.execute(f"PRAGMA journal_size_limit = {wal.KEPT}")
        self._begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        super().__init__()
        self.wrote = False

    def begin(self) -> None:
        if self._check is not None:
            self._check(self._db)
        self._db.execute(self._begin)

    def commit(self) -> None:
        self._db.execute("COMMIT")

    def alone(self) -> None:
        """Do nothing: `BEGIN IMMEDIATE` excludes other writers."""

    def has_table(self, name: str) -> bool:
        return self.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name", {"name": name}) is not None

    def switch_if_small(self) -> None:
        """Make a small store that an older program has created able to give pages back."""
        if not space.can_shrink(self._db) and space.size(self._db) <= space.SMALL:
            with suppress(sqlite3.OperationalError):  # no room for it: at another start
                space.rebuild(self._db)

    def give_back(self, pages: int, keep: float) -> bool:
        excess = space.excess(self._db, keep)
        if excess > 0:
            space.shrink(self._db, min(pages, excess))
        return excess > pages

    def rollback(self) -> None:
        self._discard()
        # SQLite ends the transaction by itself after some errors (a full disk among them).
        if self._db.in_transaction:
            self._db.rollback()

    def close(self) -> None:
        self._db.close()

    def read(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        return self._execute(sql, params).fetchall()

    def one(self, sql: str, params: Params = {}) -> Row | None:  # noqa: B006 — never changed
        row: Row | None = self._execute(sql, params).fetchone()
        return row

    def write(self, sql: str, params: Params = {}) -> list[Row]:  # noqa: B006 — never changed
        cursor = self._execute(sql, params)
        rows = cursor.fetchall() if cursor.description else []
        self.wrote = self.wrote or bool(rows) or cursor.rowcount != 0
        return rows

    def _execute(self, sql: str, params: Params) -> sqlite3.Cursor:
        """Execute a statement. The time is a parameter: a callback would wait for the interpreter lock."""
        if self._deferred:
            self.catch_up(sql)
        if isinstance(params, dict):
            timed = _timed(sql, ":roost_now")
            return self._db.execute(timed or sql, {**params, "roost_now": self._now()} if timed else params)
        timed = _timed(sql, f"?{len(params) + 1}")
        return self._db.execute(timed or sql, [*params, self._now()] if timed else params)


@lru_cache(maxsize=1_024)
def _timed(sql: str, parameter: str) -> str | None:
    """Return the statement with the time as one more parameter; None if it does not use the time."""
    return sql.replace("roost_now()", parameter) if "roost_now()" in sql else None


class Sqlite:
    """A file as a database. Opening it takes the lock file beside it and brings the schema up to date."""

    writers = 1
    readers = 2

    def __init__(self, path: Path, now: Callable[[], float], applied: Callable[[str], object] = bool) -> None:
        self.path = path
        self._now = now
        self._applied = applied
        """Called with the name of each migration."""
        if not path.parent.is_dir():
            raise Unavailable(f"the folder {str(path.parent)!r} does not exist: create it or name another one")
        self.lost: Unavailable | None = None
        """Error if writes would be lost now, else None."""
        self.is_member = False
        self._wal = wal.WalGuard(path)
        self._lock = LockFile(path)
        self._claim: int | None = None
        self._presence: Presence | None = None
        try:
            self._create()
            self._claim = claim(path)
            self._prepare()
            self._presence = None if self._claim is None else Presence(path, self._claim)
        except sqlite3.Error as error:
            self.release()
            raise (self.translate(error) or error) from error
        except BaseException:
            self.release()
            raise

    def connect(self, *, read_only: bool) -> SqliteConnection:
        return SqliteConnection(self.path, self._now, read_only=read_only, check=None if read_only else self._check)

    def problem(self) -> Unavailable | None:
        """Return the reason why a larger write would fail, although a small one may still fit into the journal."""
        if self._presence is not None and not self._presence.is_there():
            return self._moved()
        try:
            free = os.statvfs(self.path.parent)
        except OSError:
            return None  # not supported here; writes will fail if the disk is full
        blocks = free.f_bfree if os.geteuid() == 0 else free.f_bavail
        return self._unavailable(sqlite3.SQLITE_FULL) if blocks * free.f_frsize < LEAST_FREE else None

    def _check(self, connection: sqlite3.Connection) -> None:
        """Raise Unavailable if the open file is no longer the one with this name, or its journal is full."""
        if self._presence is not None:
            self.lost = None if self._presence.is_certain(self._now()) else self._moved()
            if self.lost is not None:
                raise self.lost
        self._wal.check(connection)

    def _moved(self) -> Unavailable:
        text = (
            "{path} was moved, removed or replaced while Roost used it: stop Roost, put the file back or restore a"
            " backup, and start it again"
        )
        return Unavailable(
            text.format(path=f"the file {str(self.path)!r}"), public=text.format(path="the store's file")
        )

    def translate(self, error: Exception) -> RoostError | None:
        if not isinstance(error, sqlite3.Error) or (code := getattr(error, "sqlite_errorcode", None)) is None:
            return None
        is_unreachable = code & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
        if is_unreachable and self._presence is not None and not self._presence.is_there():
            return self._moved()
        return self._unavailable(code & 0xFF)

    def _unavailable(self, code: int) -> Unavailable | None:
        if (message := _MESSAGES.get(code)) is None:
            return None
        public = message.replace("the file {path}", "the store's file").replace("{path}", "the store")
        return Unavailable(message.format(path=repr(str(self.path))), public=public)

    def is_full(self, error: Exception) -> bool:
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL

    def is_doubtful(self, error: Exception) -> bool:
        return False

    def may_retry(self, error: Exception) -> bool:
        return False

    def is_disconnected(self, error: Exception) -> bool:
        return False

    def release(self) -> None:
        """Release the file. Called when all its connections are closed: see `claim`."""
        if self._presence is not None:
            self._presence.close()
            self._presence = None
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None
        self._lock.release()

    def announce(self, **facts: Any) -> None:
        """Write into the lock file how to reach the owner, for programs that find the file in use."""
        self._lock.write(facts)

    def _create(self) -> None:
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        if not os.access(self.path, os.R_OK | os.W_OK):
            # Checked before SQLite opens it, which would leave read-only files beside it.
            raise Unavailable(_MESSAGES[sqlite3.SQLITE_READONLY].format(path=repr(str(self.path))))

    def _prepare(self) -> None:
        connection = self.connect(read_only=False)
        try:
            self._refuse_foreign(connection)
            migrations.refuse_incompatible(connection, str(self.path))
            # A file that is refused above stays unchanged.
            if not migrations.version(connection):
                connection.read(space.INCREMENTAL)  # before the journal mode, which writes the first page
            connection.read("PRAGMA journal_mode = WAL")
            migrations.migrate(connection, dialect="sqlite", applied=self._applied)
            connection.switch_if_small()
            connection.read("PRAGMA wal_checkpoint(TRUNCATE)")
            self.schema = migrations.schema(connection)
            self.generation = migrations.generation(connection)
        finally:
            connection.close()

    def _refuse_foreign(self, connection: SqliteConnection) -> None:
        tables = {row[0] for row in connection.read("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and not tables >= {"meta", "talks", "messages"}:
            raise Unavailable(f"the database {str(self.path)!r} belongs to another program: name another file")


class LockFile:
    """Lock file of the process that owns the database; the kernel releases the lock when the process dies."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        self._file = -1
        try:
            self._file = self._take()
            self.write({})
        except OSError as error:
            self.release()
            raise Unavailable(
                f"the folder {str(database.parent)!r} is read-only or full: make it writable and try again"
            ) from error

    def write(self, facts: dict[str, Any]) -> None:
        text = json.dumps({"pid": os.getpid(), **facts}).encode()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text, 0)

    def release(self) -> None:
        if self._file >= 0:
            self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1

    def _take(self) -> int:
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                raise in_use(self.path) from None
            # A previous owner may have removed it meanwhile: then no other process sees this file.
            with suppress(FileNotFoundError):
                if os.fstat(file).st_ino == self.path.stat().st_ino:
                    return file
            os.close(file)


def claim(database: Path) -> int | None:
    """Lock the database file itself; return the descriptor that holds the lock.

    The lock file alone can be removed, and a hard link has another one. Both lead to the same inode, so the lock on
    the inode decides. The descriptor must outlive all connections: closing it drops the locks that SQLite has in this
    process on the same file. A folder in place of the file is left for SQLite to refuse.
    """
    if database.is_dir():
        return None
    file = os.open(database, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _refuse_links(database, os.fstat(file).st_nlink)
    except BlockingIOError:
        os.close(file)
        raise _in_use(str(database), {}) from None  # the lock file beside it is ours: it does not name the owner
    except BaseException:
        os.close(file)
        raise
    return file


def _refuse_links(database: Path, names: int) -> None:
    if names > 1:
        raise Unavailable(
            f"the file {str(database)!r} has {names} names (hard links), and its journal belongs to one of them:"
            " keep the name it was written under, remove the others, and try again"
        )


def in_use(lock: Path) -> InUse:
    return _in_use(str(lock).removesuffix(".lock"), owner(lock))


def _in_use(name: str, facts: dict[str, Any]) -> InUse:
    holder = f"process {facts['pid']}" if "pid" in facts else "another process"
    if "url" in facts:
        return InUse(f"{name!r} is in use by {holder} at {facts['url']}: use that one, stop it, or name another file")
    return InUse(
        f"{name!r} is in use by {holder}: if it is just starting or ending, try again in a moment; else stop it, or"
        " name another file"
    )


def owner(lock: Path) -> dict[str, Any]:
    """Return what the owner of a database file wrote about itself; empty if nothing can be read."""
    try:
        facts = json.loads(lock.read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}
