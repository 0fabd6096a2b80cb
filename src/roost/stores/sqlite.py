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

from roost.errors import RoostError, Unavailable
from roost.ports import Params, Row
from roost.stores import migrations
from roost.stores.gathering import Gathering

_MEANINGS = {
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


class SqliteConnection(Gathering):
    """A connection in autocommit mode, with explicit transactions."""

    for_update = ""

    def __init__(self, path: Path, now: Callable[[], float], *, read_only: bool) -> None:
        mode = "ro" if read_only else "rw"
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
        self._begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        super().__init__()
        self.wrote = False

    def begin(self) -> None:
        self._db.execute(self._begin)

    def commit(self) -> None:
        self._db.execute("COMMIT")

    def alone(self) -> None:
        """`BEGIN IMMEDIATE` has seen to it."""

    def has_table(self, name: str) -> bool:
        return self.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name", {"name": name}) is not None

    def rollback(self) -> None:
        self._drop_left()
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
        """The time is handed over: a function that SQLite calls would have to wait for the interpreter."""
        if self._left:
            self.catch_up(sql)
        if isinstance(params, dict):
            timed = _timed(sql, ":roost_now")
            return self._db.execute(timed or sql, {**params, "roost_now": self._now()} if timed else params)
        timed = _timed(sql, f"?{len(params) + 1}")
        return self._db.execute(timed or sql, [*params, self._now()] if timed else params)


@lru_cache(maxsize=1_024)
def _timed(sql: str, parameter: str) -> str | None:
    """The statement with the time as one more parameter; None: it does not ask for it."""
    return sql.replace("roost_now()", parameter) if "roost_now()" in sql else None


class Sqlite:
    """A file as a database. Opening it takes the lock file beside it and brings the schema up to date."""

    writers = 1
    readers = 2

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self.path = path
        self._now = now
        if not path.parent.is_dir():
            raise Unavailable(f"the folder {str(path.parent)!r} does not exist: create it or name another one")
        self._lock = LockFile(path)
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._lock.release()
            raise (self.translate(error) or error) from error
        except BaseException:
            self._lock.release()
            raise

    def connect(self, *, read_only: bool) -> SqliteConnection:
        return SqliteConnection(self.path, self._now, read_only=read_only)

    def translate(self, error: Exception) -> RoostError | None:
        if not isinstance(error, sqlite3.Error):
            return None
        code = getattr(error, "sqlite_errorcode", None)
        meaning = _MEANINGS.get(code & 0xFF) if code is not None else None
        return Unavailable(meaning.format(path=repr(str(self.path)))) if meaning else None

    def is_doubtful(self, error: Exception) -> bool:
        return False

    def may_retry(self, error: Exception) -> bool:
        return False

    def release(self) -> None:
        self._lock.release()

    def announce(self, **facts: Any) -> None:
        """Tell, in the lock file, those who find the file in use how to reach its owner."""
        self._lock.write(facts)

    def _prepare(self) -> None:
        if not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        if not os.access(self.path, os.R_OK | os.W_OK):
            # Before SQLite sees it, which would leave read-only files beside it.
            raise Unavailable(_MEANINGS[sqlite3.SQLITE_READONLY].format(path=repr(str(self.path))))
        connection = self.connect(read_only=False)
        try:
            self._refuse_foreign(connection)
            migrations.refuse_newer(connection, str(self.path))
            # Refused before this line, a file that is not ours is left exactly as it was.
            connection.read("PRAGMA journal_mode = WAL")
            migrations.migrate(connection, dialect="sqlite")
            connection.read("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()

    def _refuse_foreign(self, connection: SqliteConnection) -> None:
        tables = {row[0] for row in connection.read("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and not tables >= {"meta", "talks", "messages"}:
            raise Unavailable(f"the database {str(self.path)!r} is another program's: name another file")


class InUse(Unavailable):
    """Another process has the file; it may soon let go of it."""


class LockFile:
    """Held while a process owns the file; the kernel lets go of it when the process dies."""

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
            # Whoever held it before may have removed it in between: then this is a file nobody else can see.
            with suppress(FileNotFoundError):
                if os.fstat(file).st_ino == self.path.stat().st_ino:
                    return file
            os.close(file)


def in_use(lock: Path) -> InUse:
    facts = owner(lock)
    whom = f"process {facts['pid']}" if "pid" in facts else "another process"
    name = str(lock).removesuffix(".lock")
    if "url" in facts:
        return InUse(f"{name!r} is in use by {whom} at {facts['url']}: use that one, stop it, or name another file")
    return InUse(
        f"{name!r} is in use by {whom}: if it is just starting or ending, try again in a moment; else stop it, or name"
        " another file"
    )


def owner(lock: Path) -> dict[str, Any]:
    """What the owner of a database file wrote about itself; empty if nothing can be read."""
    try:
        facts = json.loads(lock.read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}
