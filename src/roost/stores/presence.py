"""Presence of a database file: checks that the open file is still the one with its name.

A file that was removed, moved or replaced can still be written to, and everything written is lost. Checking takes two
system calls, which is much compared to a commit. Nothing is removed, moved or replaced without a change of the folder's
modification time, so that is checked instead: one call, on a descriptor.
"""

from __future__ import annotations

import os
from pathlib import Path

COARSE = 0.05
"""Seconds: a change that is not older may be followed by another one with the same time."""


class Presence:
    """Presence of one file and its journal, which must both be unchanged; used by its writer."""

    def __init__(self, path: Path, file: int) -> None:
        self._path, self._journal_path = str(path), f"{path}-wal"
        self._file = os.fstat(file)
        self._journal: os.stat_result | None = None
        self._folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._seen = -1

    def close(self) -> None:
        os.close(self._folder)

    def is_certain(self, now: float) -> bool:
        """Return whether both exist; cheap while nothing changes in the folder."""
        changed = os.fstat(self._folder).st_mtime_ns
        if changed == self._seen:
            return True
        if not self.is_there():
            self._seen = -1
            return False
        if now - changed / 1e9 > COARSE:
            self._seen = changed
        return True

    def is_there(self) -> bool:
        """Return whether both exist, by looking for them."""
        try:
            return os.path.samestat(os.stat(self._path), self._file) and self._has_journal()
        except OSError:
            return False

    def _has_journal(self) -> bool:
        """Return whether the journal exists: SQLite creates it with the first write and removes it last."""
        if self._journal is None:
            if os.path.exists(self._journal_path):
                self._journal = os.stat(self._journal_path)
            return True
        return os.path.samestat(os.stat(self._journal_path), self._journal)
