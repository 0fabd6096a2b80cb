"""Size limit of SQLite's journal, so that a reader that never ends cannot fill the disk."""

from __future__ import annotations

import logging
import os
import sqlite3
from pathlib import Path

from roost.errors import Unavailable

log = logging.getLogger("roost.store")

KEPT = 64 * 2**20
"""Bytes that the journal keeps on disk when it restarts."""
ALARM = 256 * 2**20
"""Size in bytes at which a warning is logged."""
MOST = 2**30
"""Size in bytes at which writes are refused until the journal restarts."""
PATIENCE = 3
"""Failed restarts in a row before a warning is logged."""
EVERY = 64
"""Commits between two checks of the size."""


class WalGuard:
    """Guard of the journal size; called by the writer thread before it begins a transaction.

    The journal restarts when all of it is in the database file and no reader needs it. A reader that stays in one
    transaction, in another program for example, keeps it growing.
    """

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(f"{database.name}-wal")
        self._commits = 0
        self._failures = 0
        """Failed restarts in a row: a reader of our own has ended by the next check."""

    @property
    def _alarmed(self) -> bool:
        return self._failures >= PATIENCE

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise Unavailable if the journal has reached its limit and cannot restart."""
        self._commits += 1
        if self._commits % EVERY and not self._alarmed:
            return
        size = self._size()
        if size >= ALARM and not _starts_over(connection):
            self._failures += 1
            self._alarm(size)
            return
        if self._alarmed:
            log.warning("the store's journal can restart again")
        self._failures = 0

    def _alarm(self, size: int) -> None:
        if self._failures == PATIENCE:
            log.error(
                "the store's journal has %d MB and cannot restart: stop the program that keeps a read transaction open",
                size // 10**6,
            )
        if size >= MOST and self._alarmed:
            template = "has {} MB and cannot restart: stop the program that keeps a read transaction open"
            text = template.format(size // 10**6)
            raise Unavailable(f"the journal {str(self._path)!r} {text}", public=f"the store's journal {text}")

    def _size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0


def _starts_over(connection: sqlite3.Connection) -> bool:
    """Checkpoint and truncate the journal, unless a reader needs it; return whether it was done."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        return False
    finally:
        connection.execute("PRAGMA busy_timeout = 5000")
    return not busy
