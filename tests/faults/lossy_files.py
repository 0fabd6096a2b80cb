"""A file layer of SQLite that remembers what was written and not synced, and can undo it: a disk that loses power.

A VFS written with ctypes around SQLite's own one. Each write is passed on, and what it has replaced is kept until the
file is synced. When power is lost such writes are undone, from the newest to one chosen by chance: what a disk with a
cache has after that. Only what goes through `write` and `truncate` counts; the index of the WAL, which is mapped
memory, is made anew by the next process anyway.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import random
import threading
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from typing import Any

OK = 0
ENDED = 9


class IoMethods(Structure):
    pass


class File(Structure):
    _fields_ = (("methods", POINTER(IoMethods)),)


FILE = POINTER(File)
WRITE = CFUNCTYPE(c_int, FILE, c_void_p, c_int, c_int64)
TRUNCATE = CFUNCTYPE(c_int, FILE, c_int64)
SYNC = CFUNCTYPE(c_int, FILE, c_int)
CLOSE = CFUNCTYPE(c_int, FILE)
IoMethods._fields_ = (
    ("version", c_int),
    ("close", CLOSE),
    ("read", c_void_p),
    ("write", WRITE),
    ("truncate", TRUNCATE),
    ("sync", SYNC),
    *((f"rest{number}", c_void_p) for number in range(13)),
)


class Vfs(Structure):
    pass


OPEN = CFUNCTYPE(c_int, POINTER(Vfs), c_void_p, FILE, c_int, POINTER(c_int))
Vfs._fields_ = (
    ("version", c_int),
    ("size", c_int),
    ("longest", c_int),
    ("next", c_void_p),
    ("name", c_char_p),
    ("app", c_void_p),
    ("open", OPEN),
    *((f"rest{number}", c_void_p) for number in range(15)),
)


class LossyFiles:
    """Registered as SQLite's default file layer when it is made; used by one process, which ends when power is lost."""

    def __init__(self) -> None:
        library = ctypes.CDLL(ctypes.util.find_library("sqlite3"))
        library.sqlite3_vfs_find.restype = POINTER(Vfs)
        library.sqlite3_vfs_find.argtypes = [c_char_p]
        library.sqlite3_vfs_register.argtypes = [c_void_p, c_int]
        self._lock = threading.Lock()
        self._opened: dict[int, tuple[str, Any]] = {}
        """By the address of an open file: its path, and SQLite's own methods for it."""
        self._wrapped: dict[int, IoMethods] = {}
        """By the address of such methods: the same with ours in their place."""
        self._unsynced: dict[str, list[tuple[int, bytes, int]]] = {}
        """By file: where something was written, what was there before, and how long the file was."""
        self._syncs = 0
        self._left: int | None = None
        """Writes until power is lost."""
        self._chance = random.Random()
        self._real = library.sqlite3_vfs_find(None).contents
        self._kept = [
            OPEN(self._open),
            CLOSE(self._close),
            WRITE(self._write),
            TRUNCATE(self._truncate),
            SYNC(self._sync),
        ]
        self._vfs = Vfs.from_buffer_copy(self._real)
        self._vfs.name, self._vfs.open, self._vfs.next = b"lossy", self._kept[0], None
        assert library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) == OK

    def lose_power(self, seed: int, writes: int) -> None:
        """End the process after this number of writes; print the number of syncs, and of lost writes."""
        with self._lock:
            self._chance.seed(seed)
            self._left = writes

    def _end(self) -> None:
        lost = 0
        there = {path: writes for path, writes in self._unsynced.items() if os.path.exists(path)}
        for path, writes in there.items():
            count = self._chance.randint(1, len(writes))
            with open(path, "r+b") as file:
                for offset, before, length in reversed(writes[-count:]):
                    file.seek(offset)
                    file.write(before)
                    file.truncate(length)
            lost += count
        os.write(1, f"{self._syncs} {lost}\n".encode())
        os._exit(ENDED)

    def _open(self, _vfs: Any, name: int | None, file: Any, flags: int, out: Any) -> int:
        code: int = self._real.open(ctypes.byref(self._real), name, file, flags, out)
        if code == OK and name is not None and file.contents.methods:
            real = file.contents.methods.contents
            with self._lock:
                path = os.fsdecode(ctypes.string_at(name))
                self._opened[ctypes.addressof(file.contents)] = path, real
                file.contents.methods = ctypes.pointer(self._wrap(real))
        return code

    def _wrap(self, real: IoMethods) -> IoMethods:
        address = ctypes.addressof(real)
        if address not in self._wrapped:
            ours = self._wrapped[address] = IoMethods.from_buffer_copy(real)
            _, ours.close, ours.write, ours.truncate, ours.sync = self._kept
        return self._wrapped[address]

    def _of(self, file: Any) -> tuple[str, Any]:
        return self._opened[ctypes.addressof(file.contents)]

    def _close(self, file: Any) -> int:
        with self._lock:
            _, real = self._opened.pop(ctypes.addressof(file.contents))
        code: int = real.close(file)
        return code

    def _write(self, file: Any, data: int, size: int, offset: int) -> int:
        with self._lock:
            self._remember(file, offset, size)
            code: int = self._of(file)[1].write(file, data, size, offset)
            if self._left is not None:
                self._left -= 1
                if self._left <= 0:
                    self._end()
        return code

    def _truncate(self, file: Any, size: int) -> int:
        with self._lock:
            self._remember(file, size, os.path.getsize(self._of(file)[0]))
            code: int = self._of(file)[1].truncate(file, size)
        return code

    def _sync(self, file: Any, flags: int) -> int:
        with self._lock:
            code: int = self._of(file)[1].sync(file, flags)
            self._unsynced.pop(self._of(file)[0], None)
            self._syncs += 1
        return code

    def _remember(self, file: Any, offset: int, size: int) -> None:
        path = self._of(file)[0]
        length = os.path.getsize(path)
        with open(path, "rb") as there:
            there.seek(offset)
            before = there.read(min(size, max(0, length - offset)))
        self._unsynced.setdefault(path, []).append((offset, before, length))
