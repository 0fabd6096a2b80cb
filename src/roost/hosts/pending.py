"""Results that come later, how a plain thread waits for them without a loop, and how loops are woken."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_Gathered = dict[asyncio.AbstractEventLoop, list[Callable[[], object]]]
_Chain = deque[tuple[asyncio.AbstractEventLoop, list[Callable[[], object]]]]

AT_ONCE = 2
"""Loops that are woken at once; each wakes the next when it runs."""
PATIENCE = 0.02
"""Seconds after which a chain of loops that does not get on is woken as a whole."""


class _Here(threading.local):
    """What this thread is doing."""

    driving = False
    gathered: _Gathered | None = None

    def __init__(self) -> None:
        self.chains: list[tuple[_Chain, int, float]] = []
        """Of loops to wake, begun on this thread: how many were left when one was last woken, and when."""


_here = _Here()


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of the runtime to its end on this plain thread, with or without an event loop on it.

    Nothing but a `Pending` may be awaited inside.
    """
    before = _here.driving
    _here.driving = True
    try:
        while True:
            wait: _Wait[Any] = coroutine.send(None)
            wait.block()
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        _here.driving = before
        coroutine.close()


class Together:
    """Gathers what is called on loops, and wakes each loop once at the end.

    Each wake gives up the interpreter to the loop that wakes; woken one by one, twenty that wait cost
    twenty hand-overs. Woken all at once, a hundred would fight for it: so some are, and wake the others.
    """

    __slots__ = ("_gathered",)
    _gathered: _Gathered

    def __enter__(self) -> None:
        _here.gathered = self._gathered = {}

    def __exit__(self, *_: object) -> None:
        _here.gathered = None
        chain: _Chain = deque(self._gathered.items())
        for _number in range(AT_ONCE):
            _wake_next(chain)
        _here.chains.append((chain, len(chain), time.monotonic()))
        hurry()


def hurry() -> bool:
    """Wake all of a chain that was begun on this thread and does not get on; whether there is more to look after.

    One that was idle when it was to be woken may have begun something else, and does not pass it on.
    """
    now = time.monotonic()
    unfinished = []
    for chain, left, since in _here.chains:
        if len(chain) < left:
            left, since = len(chain), now
        while chain and since < now - PATIENCE:
            _wake_next(chain)
        if chain:
            unfinished.append((chain, left, since))
    _here.chains = unfinished
    return bool(unfinished)


def _wake_next(chain: _Chain) -> None:
    """The next one that is idle, and those before it, which are awake."""
    while True:
        try:
            loop, acts = chain.popleft()
        except IndexError:
            return
        if getattr(loop, "is_idle", False):
            _wake(loop, _call_all, acts, chain)
            return
        _wake(loop, _call_all, acts, None)


def call_on(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Call it on that loop soon, in order; from any thread. Nothing happens if the loop is closed."""
    gathered = _here.gathered
    if gathered is None:
        _wake(loop, act)
    elif loop in gathered:
        gathered[loop].append(act)
    else:
        gathered[loop] = [act]


def _wake(loop: asyncio.AbstractEventLoop, act: Callable[..., object], *args: object) -> None:
    try:
        loop.call_soon_threadsafe(act, *args)
    except RuntimeError:
        return  # it is closed, and whoever is told of that takes over


def _call_all(acts: list[Callable[[], object]], chain: _Chain | None) -> None:
    if chain:
        _wake_next(chain)
    loop = asyncio.get_running_loop()
    for act in acts:
        try:
            act()
        except Exception as error:  # one that fails must not keep the others from being called
            loop.call_exception_handler({"message": "a call from another thread has failed", "exception": error})


class HostPending(Generic[T]):
    """A result set once, from any thread. Relies on `list.append/pop/remove` being atomic, so needs no lock."""

    __slots__ = ("_callbacks", "_error", "_value", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], object]] = []

    def set(self, value: T) -> None:
        if not self.done:
            self._value = value
            self._finish()

    def fail(self, error: BaseException) -> None:
        if not self.done:
            self._error = error
            self._finish()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]

    def __await__(self) -> Generator[Any, Any, T]:
        if not self.done:
            yield from _Wait(self, None).__await__()
        return self.result()

    def within(self, seconds: float) -> Awaitable[bool]:
        return _Wait(self, seconds)

    def call_when_done(self, callback: Callable[[], object]) -> None:
        self._callbacks.append(callback)
        if self.done:
            try:
                self._callbacks.remove(callback)
            except ValueError:
                return  # whoever settled it has taken the callback and calls it
            callback()

    def forget(self, callback: Callable[[], object]) -> None:
        try:
            self._callbacks.remove(callback)
        except ValueError:
            return

    def _finish(self) -> None:
        self.done = True
        callbacks = self._callbacks
        while callbacks:
            try:
                callback = callbacks.pop()
            except IndexError:
                return
            callback()


class _Wait(Generic[T]):
    """Waiting for a pending, with or without a time limit, in both colours."""

    __slots__ = ("_pending", "_seconds")

    def __init__(self, pending: HostPending[T], seconds: float | None) -> None:
        self._pending = pending
        self._seconds = seconds

    def block(self) -> None:
        gate = threading.Lock()
        gate.acquire()
        self._pending.call_when_done(gate.release)
        if not gate.acquire(timeout=-1 if self._seconds is None else max(0.0, min(self._seconds, 1e6))):
            self._pending.forget(gate.release)

    def __await__(self) -> Generator[Any, Any, bool]:
        if _here.driving:
            yield self
            return self._pending.done
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not future.done():
                future.set_result(None)

        def ring() -> None:
            call_on(loop, settle)

        timer = None if self._seconds is None else loop.call_later(self._seconds, settle)
        self._pending.call_when_done(ring)
        try:
            yield from future
        finally:
            if timer is not None:
                timer.cancel()
            if not self._pending.done:
                self._pending.forget(ring)
        return self._pending.done
