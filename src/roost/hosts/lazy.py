"""An event loop that sleeps on a lock until its first descriptor is registered.

A worker's loop is woken by other threads all the time and often watches no descriptor at all. Waiting
on a lock instead of a selector costs no system call to wake it and no descriptors, and does not give
up the interpreter at each turn. With the first descriptor it becomes an ordinary loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import selectors
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any


class _LazySelector(selectors.BaseSelector):
    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.gate.acquire()
        self.real: selectors.BaseSelector | None = None
        self.idle = False

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if self.real is None:
            self.real = selectors.DefaultSelector()
        return self.real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        if self.real is None:
            raise KeyError(fileobj)
        return self.real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if self.real is None:
            raise KeyError(fileobj)
        return self.real.modify(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.idle = timeout is None or timeout > 0
        try:
            if self.real is not None:
                return self.real.select(timeout)
            if self.idle:
                self.gate.acquire(timeout=-1 if timeout is None else min(timeout, 1e6))
            return []
        finally:
            self.idle = False

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {} if self.real is None else self.real.get_map()

    def close(self) -> None:
        if self.real is not None:
            self.real.close()


class LazyLoop(asyncio.SelectorEventLoop):
    """Overrides a few methods of the standard loop, also private; `tests/hosts` holds it to that loop's behaviour."""

    _csock: Any
    _closed: bool
    _debug: bool
    _ready: deque[asyncio.Handle]

    def __init__(self) -> None:
        self._lazy = _LazySelector()
        self._ssock: Any = None
        self._csock = None
        super().__init__(self._lazy)

    @property
    def is_idle(self) -> bool:
        """Whether it waits for anything to do, and so does what it is woken for before anything else."""
        return self._lazy.idle

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:  # fmt: skip
        """As the standard loop does it, without its three calls on the way: it is what a loop does most."""
        if self._debug or self._closed:
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def _make_self_pipe(self) -> None:
        """Made with the first descriptor."""

    def _close_self_pipe(self) -> None:
        if self._csock is not None:
            super()._close_self_pipe()  # type: ignore[misc]

    def _write_to_self(self) -> None:
        if self._csock is not None:
            super()._write_to_self()  # type: ignore[misc]
            return
        try:
            self._lazy.gate.release()
        except RuntimeError:
            return  # rung already

    def _add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:
        self._become_ordinary()
        return super()._add_reader(fd, callback, *args)  # type: ignore[misc]

    def _add_writer(self, fd: Any, callback: Any, *args: Any) -> Any:
        self._become_ordinary()
        return super()._add_writer(fd, callback, *args)  # type: ignore[misc]

    def _become_ordinary(self) -> None:
        if self._csock is None and self._lazy.real is None:
            self._lazy.real = selectors.DefaultSelector()
            super()._make_self_pipe()  # type: ignore[misc]
            self._write_to_self()  # a ring that came by the lock a moment ago is not lost
