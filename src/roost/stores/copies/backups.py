"""Backups of a SQLite store: copied while it is in use, and put back with a new generation."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from roost.errors import Invalid, Unavailable
from roost.stores import migrations, space
from roost.stores.sqlite import LockFile, SqliteConnection, claim

Report = Callable[[int], object]
"""Called with the number of bytes written so far."""
OPERATIONS = 20_000
"""Virtual machine instructions of SQLite between two progress reports."""


def back_up(store: Path, target: Path, report: Report = bool) -> int:
    """Copy a store to a new file that only its owner may read; return its size in bytes.

    Safe while Roost runs and writes. The copy is one snapshot of the store, checked and fsynced. It gets its name when
    it is complete, so that an interrupted copy is never mistaken for a backup.
    """
    if target.exists():
        raise Invalid(f"{str(target)!r} exists already: name a file that does not, or remove it first")
    if not target.parent.is_dir():
        raise Invalid(f"the folder {str(target.parent)!r} does not exist: create it or name another one")
    with _new_copy(store, target, report) as copy:
        _link(copy, target)
        _sync_folder(target.parent)
        return target.stat().st_size


def restore(backup: Path, store: Path, aside: Path, generation: str, report: Report = bool) -> bool:
    """Restore a store from a backup; return whether there was a store before, which is kept as `aside`.

    Raise Unavailable while a process uses the store. Until the last step, one rename, the store is unchanged.
    """
    if backup.resolve() == store.resolve():
        raise Invalid(f"{str(backup)!r} is the store itself: name the file that `roost backup` has made")
    if not store.parent.is_dir():
        raise Invalid(f"the folder {str(store.parent)!r} does not exist: create it or name another one")
    with owned(store) as existed, _new_copy(backup, store, report) as copy:
        _renew(copy, generation)
        if existed:
            _settle_journal(store, aside)
            _link(store, aside)
        os.replace(copy, store)
        _sync_folder(store.parent)
        return existed


@contextmanager
def _new_copy(source: Path, target: Path, report: Report) -> Iterator[Path]:
    """Yield a checked copy of the source beside the target; remove it afterwards, unless it was renamed."""
    copy = target.with_name(f"{target.name}.partial")
    copy.unlink(missing_ok=True)  # left by an interrupted copy
    try:
        os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        _copy(source, copy, report)
        yield copy
    except sqlite3.Error as error:
        raise Unavailable(f"{str(source)!r} cannot be copied to {str(target)!r}: {error}") from error
    except OSError as error:
        raise Unavailable(f"{str(target)!r} cannot be written: {error.strerror or error}") from error
    finally:
        copy.unlink(missing_ok=True)


def _copy(source: Path, copy: Path, report: Report) -> None:
    if not source.is_file():
        raise Unavailable(f"there is no file {str(source)!r}: name a store or a backup of Roost")
    with closing(_connect(source)) as database:
        refuse_foreign(database, source)

        def progress() -> None:
            with suppress(OSError):
                report(copy.stat().st_size)

        database.set_progress_handler(progress, OPERATIONS)
        if not space.can_shrink(database):
            database.execute(space.INCREMENTAL)  # the mode of the copy; the source stays as it is
        database.execute("VACUUM INTO ?", (str(copy),))
    with closing(_connect(copy)) as database:
        answer = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if answer != "ok":
        raise Unavailable(f"the copy of {str(source)!r} is damaged ({answer}): check the disk, then try again")
    with copy.open("rb") as written:
        os.fsync(written.fileno())
    report(copy.stat().st_size)


def _connect(path: Path) -> sqlite3.Connection:
    """Connect for reading; the last connection that may write removes the journal when it closes."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
    database.execute("PRAGMA busy_timeout = 5000")
    return database


def refuse_foreign(database: sqlite3.Connection, path: Path) -> None:
    try:
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError:
        tables = set()
    if not tables >= {"meta", "talks", "messages"}:
        raise Unavailable(f"{str(path)!r} is not a store of Roost: name one, or a file made by `roost backup`")


@contextmanager
def owned(store: Path) -> Iterator[bool]:
    """Keep every other process out of the store; yield whether the store exists."""
    lock = LockFile(store)
    held = None
    try:
        existed = store.exists()
        held = claim(store) if existed else None
        yield existed
    finally:
        if held is not None:
            os.close(held)
        lock.release()


def _renew(copy: Path, generation: str) -> None:
    """Give the copy a generation of its own, so that cursors from after the backup are recognised."""
    connection = SqliteConnection(copy, lambda: 0.0, read_only=False)
    try:
        migrations.refuse_incompatible(connection, str(copy))
        connection.begin()
        connection.write(
            "INSERT INTO meta (name, value) VALUES ('generation', :value)"
            " ON CONFLICT (name) DO UPDATE SET value = :value",
            {"value": generation},
        )
        connection.commit()
    finally:
        connection.close()


def _settle_journal(store: Path, aside: Path) -> None:
    """Leave no journal under the store's name: SQLite would apply it to the restored file."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(store, isolation_level=None)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for ending in ("-wal", "-shm"):
        journal = store.with_name(store.name + ending)
        if journal.exists():  # a damaged file cannot be checkpointed: keep both
            journal.rename(aside.with_name(aside.name + ending))


def _link(file: Path, name: Path) -> None:
    """Give a file one more name; unlike a rename this never replaces a file. Some file systems do not support it."""
    try:
        os.link(file, name)
    except FileExistsError:
        raise
    except OSError:
        file.rename(name)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
