"""Event loop that waits on a lock until its first descriptor is registered.

A worker's loop is often woken by other threads and often watches no descriptor. Waiting on a lock instead of a
selector needs no system call to wake it and no descriptors, and does not release the GIL in each iteration. With the
first descriptor it becomes an ordinary loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import selectors
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")


class _LazySelector(selectors.BaseSelector):
    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.gate.acquire()
        self.real: selectors.BaseSelector | None = None
        self.idle = False
        self.turns = 0

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
        self.turns += 1
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


class _OwnThreads(Executor):
    """Executor without a pool: each call has its own daemon thread."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # raised where the result is awaited, as in a pool
                future.set_exception(error)

        threading.Thread(target=run, name="roost-executor", daemon=True).start()
        return future


_OWN = _OwnThreads()


class LazyLoop(asyncio.SelectorEventLoop):
    """Standard loop with a few overridden methods, some private; `tests/hosts` checks that it behaves the same."""

    _csock: Any
    _closed: bool
    _debug: bool
    _ready: deque[asyncio.Handle]

    def __init__(self) -> None:
        self.lazy = _LazySelector()
        self._ssock: Any = None
        self._csock = None
        super().__init__(self.lazy)

    @property
    def is_idle(self) -> bool:
        """Return whether the loop waits for work; it then runs the next call first."""
        return self.lazy.idle

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Schedule a callback as the standard loop does, without its three nested calls: this is the hottest path."""
        if self._debug or self._closed:
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run a function on its own daemon thread if no executor is given, so that a blocking function neither delays
        others nor the end of the program."""
        return super().run_in_executor(_OWN if executor is None else executor, func, *args)

    def _make_self_pipe(self) -> None:
        """Do nothing: the pipe is created with the first descriptor."""

    def _close_self_pipe(self) -> None:
        if self._csock is not None:
            super()._close_self_pipe()  # type: ignore[misc]

    def _write_to_self(self) -> None:
        if self._csock is not None:
            super()._write_to_self()  # type: ignore[misc]
            return
        try:
            self.lazy.gate.release()
        except RuntimeError:
            return  # already woken

    def _add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:
        self._become_ordinary()
        return super()._add_reader(fd, callback, *args)  # type: ignore[misc]

    def _add_writer(self, fd: Any, callback: Any, *args: Any) -> Any:
        self._become_ordinary()
        return super()._add_writer(fd, callback, *args)  # type: ignore[misc]

    def _become_ordinary(self) -> None:
        if self._csock is None and self.lazy.real is None:
            self.lazy.real = selectors.DefaultSelector()
            super()._make_self_pipe()  # type: ignore[misc]
            self._write_to_self()  # keep a wake-up that just arrived by the lock
