"""SQLite with injected faults, and with a journal of all envelopes that were posted and removed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from roost.errors import RoostError, Unavailable
from roost.hosts.simulated import Crash
from roost.stores.sqlite import Sqlite, SqliteConnection

JOURNAL = """
CREATE TABLE IF NOT EXISTS simulated_journal (
    number INTEGER PRIMARY KEY, what TEXT, envelope_id TEXT, address TEXT, kind TEXT, lane TEXT, sender TEXT, body TEXT,
    turns INTEGER
);
CREATE TRIGGER IF NOT EXISTS simulated_post AFTER INSERT ON inbox BEGIN
    INSERT INTO simulated_journal (what, envelope_id, address, kind, lane, sender, body, turns)
    VALUES ('posted', NEW.envelope_id, NEW.address, NEW.kind, NEW.lane, NEW.sender, NEW.body,
        simulated_turns());
END;
CREATE TRIGGER IF NOT EXISTS simulated_loss BEFORE INSERT ON inbox
WHEN NEW.kind = 'meeting' AND NEW.lane LIKE 'meeting-log:%' AND simulated_loses(NEW.sender, NEW.address) BEGIN
    SELECT RAISE(IGNORE);
END;
CREATE TRIGGER IF NOT EXISTS simulated_cut AFTER INSERT ON inbox
WHEN NEW.lane NOT LIKE 'meeting-log:%' AND simulated_holds(NEW.sender, NEW.address) BEGIN
    UPDATE inbox SET due = 9e10 WHERE envelope_id = NEW.envelope_id;
END;
CREATE TRIGGER IF NOT EXISTS simulated_end AFTER DELETE ON inbox BEGIN
    INSERT INTO simulated_journal (what, envelope_id, address, kind, lane, sender, body, turns)
    VALUES ('gone', OLD.envelope_id, OLD.address, OLD.kind, OLD.lane, OLD.sender, OLD.body,
        simulated_turns());
END;
"""
"""Written by triggers in the same transaction, so that rolled back work leaves no trace."""


HEAL = "UPDATE inbox SET due = 0 WHERE due = 9e10"
"""Deliver envelopes that were held by a partition."""


class UnknownOutcome(sqlite3.OperationalError):
    """Commit of unknown outcome."""


class FaultySqlite(Sqlite):
    """SQLite that crashes or fails at a chosen commit, counted from 1, or as `decide` returns for each."""

    def __init__(
        self,
        path: Path,
        now: Callable[[], float],
        decide: Callable[[], str | None],
        turns: Callable[[], int],
        loses: Callable[[str, str], bool] = lambda *_: False,
        holds: Callable[[str, str], bool] = lambda *_: False,
    ) -> None:
        self.turns = turns
        """Returns the number of turns started."""
        self.loses = loses
        """Returns whether a post of a meeting is lost between two addresses."""
        self.holds = holds
        """Returns whether envelopes between two addresses are held until the partition is healed."""
        self.commits = 0
        self.crash_before: int | None = None
        self.crash_after: int | None = None
        self.failing: Callable[[int], bool] = lambda _: False
        self.decide: Callable[[], str | None] = lambda: None
        self._connections: list[SqliteConnection] = []
        super().__init__(path, now)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.executescript(JOURNAL)
        connection.close()
        self.commits = 0  # commits of the schema do not count
        self.decide = decide

    @property
    def now(self) -> Callable[[], float]:
        return self._now

    def prepare(self, db: sqlite3.Connection) -> None:
        """Prepare a connection that writes: only simulated power losses happen here, and triggers need functions."""
        db.execute("PRAGMA synchronous = OFF")
        db.create_function("simulated_turns", 0, self.turns)
        db.create_function("simulated_loses", 2, self.loses)
        db.create_function("simulated_holds", 2, self.holds)

    def connect(self, *, read_only: bool) -> SqliteConnection:
        connection = _FaultyConnection(self, self.path, self._now, read_only=read_only)
        self._connections.append(connection)
        return connection

    def translate(self, error: Exception) -> RoostError | None:
        if isinstance(error, UnknownOutcome):
            return Unavailable("the outcome of this commit is unknown: check, or retry with the same key")
        return super().translate(error)

    def is_doubtful(self, error: Exception) -> bool:
        return isinstance(error, UnknownOutcome)

    def cut(self) -> None:
        for connection in self._connections:
            connection.close()
        self.release()


class _FaultyConnection(SqliteConnection):
    def __init__(self, database: FaultySqlite, path: Path, now: Callable[[], float], *, read_only: bool) -> None:
        super().__init__(path, now, read_only=read_only)
        self._database = database
        if not read_only:
            database.prepare(self._db)

    def commit(self) -> None:
        database = self._database
        database.commits += 1
        if database.commits == database.crash_before:
            raise Crash
        if database.failing(database.commits):
            raise full_disk()
        match database.decide():
            case "failed":
                raise full_disk()
            case "undone":
                raise UnknownOutcome("the connection was lost")
            case "done":
                super().commit()
                raise UnknownOutcome("the connection was lost")
        super().commit()
        if database.commits == database.crash_after:
            raise Crash


def full_disk() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error
