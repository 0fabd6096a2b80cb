"""Free pages of a SQLite file, and how they are given back to the file system.

SQLite reuses pages of deleted rows, and by itself never makes a file smaller. In the mode *incremental* it knows for
each page which other one refers to it, and so it can move pages from the end of the file into free ones, a few at a
time.
A file gets this mode when it is created, or when it is rebuilt as a whole.
"""

from __future__ import annotations

import sqlite3

INCREMENTAL = "PRAGMA auto_vacuum = INCREMENTAL"
SMALL = 16 * 2**20
"""Bytes up to which a file is rebuilt while it is opened: some tenths of a second."""
_MODE = 2


def can_shrink(database: sqlite3.Connection) -> bool:
    """Return whether the file has the mode."""
    return _value(database, "auto_vacuum") == _MODE


def size(database: sqlite3.Connection) -> int:
    """Return the size of the database in bytes."""
    return _value(database, "page_count") * _value(database, "page_size")


def free(database: sqlite3.Connection) -> int:
    """Return the number of bytes in free pages."""
    return _value(database, "freelist_count") * _value(database, "page_size")


def excess(database: sqlite3.Connection, keep: float) -> int:
    """Return the number of free pages above this share of all pages; 0 if the file cannot shrink."""
    unused = _value(database, "freelist_count")
    if not unused or not can_shrink(database):
        return 0
    return max(0, unused - int(_value(database, "page_count") * keep))


def shrink(database: sqlite3.Connection, pages: int) -> None:
    """Remove some free pages from the file; it becomes smaller with the next checkpoint."""
    for _ in range(pages):  # the module ends a statement without columns after its first step, which is one page
        database.execute("PRAGMA incremental_vacuum(1)")


def rebuild(database: sqlite3.Connection) -> None:
    """Write the whole file again, in the mode and without free pages. Needs as much free space as the file has."""
    database.execute(INCREMENTAL)
    database.execute("VACUUM")


def _value(database: sqlite3.Connection, pragma: str) -> int:
    return int(database.execute(f"PRAGMA {pragma}").fetchone()[0])
