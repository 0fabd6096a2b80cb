"""Copy of a whole SQLite store to PostgreSQL: every row of every table, verified, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from roost.errors import Unavailable
from roost.ports import Row
from roost.stores.copies.source import SourceTables, opened
from roost.stores.copies.target import CopyTarget, Filling, Table

Report = Callable[[str, int, int], object]
"""Called with `Copied` or `Verified`, the number of rows so far, and the number of all rows."""
EVERY = 500
"""Rows between two progress reports."""


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """Rows of a table and their checksum, which are the same in both stores."""

    name: str
    rows: int
    checksum: str


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """A complete copy."""

    target: str
    """Server and database, without secrets."""
    tables: tuple[CopiedTable, ...]
    skipped: tuple[str, ...]
    """Tables of the source that are not of Roost, such as those of a replication tool."""

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables)


class Checksum:
    """Checksum of rows in any order: databases sort texts differently."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def add(self, row: Row) -> None:
        self.rows += 1
        self._sum += int.from_bytes(blake2b(repr(tuple(row)).encode(), digest_size=16).digest())

    def of(self, table: str) -> CopiedTable:
        return CopiedTable(table, self.rows, f"{self._sum % (1 << 128):032x}")


def copy_store(store: Path, url: str, report: Report = lambda *_: None) -> StoreCopy:
    """Copy a store that no process uses to an empty PostgreSQL database.

    The source is not changed. The target is complete when this returns; after an error or a crash it is empty. Raise
    Unavailable with the reason if one of them cannot be used.
    """
    with opened(store) as source:
        target = CopyTarget(url)
        try:
            with target.filled() as filling:
                tables = filling.tables()
                names = [table.name for table in tables]
                progress = _Progress(report, sum(map(source.count, names)))
                copied = [_copy(source, filling, table, progress) for table in tables]
                _verify(filling, tables, copied, progress)
        finally:
            target.release()
        skipped = tuple(name for name in source.tables() if name not in names)
    return StoreCopy(target.name, tuple(copied), skipped)


def _copy(source: SourceTables, filling: Filling, table: Table, progress: _Progress) -> CopiedTable:
    checksum = Checksum()
    rows = source.rows(table.name, table.columns)
    filling.write(table, progress.counted("Copied", _summed(rows, checksum)))
    filling.analyze(table)
    return checksum.of(table.name)


def _verify(filling: Filling, tables: list[Table], copied: list[CopiedTable], progress: _Progress) -> None:
    """Read everything back. Raise Unavailable if a table differs from the source."""
    progress.done = 0
    for table, expected in zip(tables, copied, strict=True):
        checksum = Checksum()
        for _ in progress.counted("Verified", _summed(filling.read(table), checksum)):
            pass
        if (found := checksum.of(table.name)) != expected:
            raise Unavailable(
                f"the table {table.name!r} of the copy differs from the source ({found.rows:,} rows with the checksum"
                f" {found.checksum}, expected {expected.rows:,} with {expected.checksum}); nothing was copied"
            )


def _summed(rows: Iterator[Row], checksum: Checksum) -> Iterator[Row]:
    for row in rows:
        checksum.add(row)
        yield row


class _Progress:
    def __init__(self, report: Report, whole: int) -> None:
        self._report = report
        self._whole = whole
        self.done = 0

    def counted(self, verb: str, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            yield row
            self.done += 1
            if self.done % EVERY == 0:
                self._report(verb, self.done, self._whole)
