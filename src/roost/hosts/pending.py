"""Pending results, waiting for them on threads without a loop, and waking of loops."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_Calls = list[Callable[[], object]]
_Gathered = dict[asyncio.AbstractEventLoop, None]
_Chain = deque[asyncio.AbstractEventLoop]

AT_ONCE = 2
"""Loops that are woken immediately; each wakes the next when it runs."""
GATHERING = 0.002
"""Seconds in which futures are gathered that are settled together."""
PATIENCE = 0.02
"""Seconds after which a stalled chain of loops is woken as a whole."""


class _Here(threading.local):
    """State of this thread."""

    driving = False
    gathered: _Gathered | None = None

    def __init__(self) -> None:
        self.chains: list[tuple[_Chain, int, float]] = []
        """Chains of loops to wake, started on this thread: how many were left at the last wake-up, and its time."""


_here = _Here()


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of the runtime to its end on this thread, whether or not an event loop runs on it.

    The coroutine may only await a `Pending`.
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
    """Batch of calls on loops, which wakes each loop once at the end.

    Each wake-up hands the GIL to the woken loop, so twenty separate ones cost twenty switches. A hundred at once would
    contend for it, so a few are woken, and they wake the others.
    """

    __slots__ = ("_gathered",)
    _gathered: _Gathered

    def __enter__(self) -> None:
        _here.gathered = self._gathered = {}

    def __exit__(self, *_: object) -> None:
        _here.gathered = None
        chain: _Chain = deque(self._gathered)
        for _number in range(AT_ONCE):
            _wake_next(chain)
        _here.chains.append((chain, len(chain), time.monotonic()))
        wake_stalled()


def wake_stalled() -> bool:
    """Wake a stalled chain that was started on this thread; return whether chains are left.

    A loop that was idle may have started other work since, and then does not wake the next one.
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
    """Wake the next idle loop; skip running ones."""
    while True:
        try:
            loop = chain.popleft()
        except IndexError:
            return
        if getattr(loop, "is_idle", False):
            _wake(loop, _run_calls, loop, chain)
            return
        _wake(loop, _run_calls, loop, None)


def call_on(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Call a function on a loop soon, in order, from any thread. Does nothing if the loop is closed."""
    gathered = _here.gathered
    if gathered is not None:
        _calls_of(loop).append(act)
        gathered[loop] = None
    elif not (calls := getattr(loop, "roost_calls", None)):
        _wake(loop, act)
    else:  # calls of a batch whose loop was not woken yet come first
        calls.append(act)
        _wake(loop, _run_calls, loop, None)


def _calls_of(loop: asyncio.AbstractEventLoop) -> _Calls:
    """Return the calls that wait for the loop to be woken. They are kept by loop, so that their order is kept too."""
    try:
        calls: _Calls = loop.roost_calls  # type: ignore[attr-defined]
    except AttributeError:
        calls = vars(loop).setdefault("roost_calls", [])  # atomic, unlike an assignment after a check
    return calls


def _wake(loop: asyncio.AbstractEventLoop, act: Callable[..., object], *args: object) -> None:
    try:
        loop.call_soon_threadsafe(act, *args)
    except RuntimeError:
        return  # closed: its supervisor takes over


def _run_calls(loop: asyncio.AbstractEventLoop, chain: _Chain | None) -> None:
    if chain:
        _wake_next(chain)
    calls = _calls_of(loop)
    due = calls[:]  # later ones come with a wake-up of their own
    del calls[: len(due)]
    for act in due:
        try:
            act()
        except Exception as error:  # one failure must not prevent the other calls
            loop.call_exception_handler({"message": "call from another thread failed", "exception": error})


class _Futures(deque["asyncio.Future[None]"]):
    """Futures of a loop that are settled when it runs next."""

    is_scheduled = False


def settle_soon(future: asyncio.Future[None]) -> None:
    """Settle a future of a loop from any thread: at once, or if several were just settled, after `GATHERING`.

    Each wake-up of a loop by another thread takes several system calls, and a switch of the GIL that the loop waits
    for. With thousands of chunks a second, those of two milliseconds share one.
    """
    loop = future.get_loop()
    if _here.gathered is not None:
        return call_on(loop, partial(_settle, future))
    try:
        due: _Futures = loop.roost_futures  # type: ignore[attr-defined]
    except AttributeError:
        due = vars(loop).setdefault("roost_futures", _Futures())  # atomic, unlike an assignment after a check
    due.append(future)
    if not due.is_scheduled:  # else the loop sees the future: it looks again after it has reset the mark
        due.is_scheduled = True
        _wake(loop, _settle_all, loop, due)
    return None


def _settle_all(loop: asyncio.AbstractEventLoop, due: _Futures) -> None:
    count = 0
    while due:
        _settle(due.popleft())
        count += 1
    if count > 1:
        loop.call_later(GATHERING, _settle_all, loop, due)
        return
    due.is_scheduled = False
    if due:  # added by a thread that has seen the mark
        due.is_scheduled = True
        loop.call_soon(_settle_all, loop, due)


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def is_driving() -> bool:
    """Return whether this thread runs a coroutine without a loop."""
    return _here.driving


class HostPending(Generic[T]):
    """Result that is set once, from any thread. Needs no lock: `list.append/pop/remove` are atomic."""

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

    def block(self, seconds: float) -> bool:
        """Block this thread for at most `seconds`; return whether the result is set."""
        if not self.done:
            _Wait(self, seconds).block()
        return self.done

    def call_when_done(self, callback: Callable[[], object]) -> None:
        self._callbacks.append(callback)
        if self.done:
            try:
                self._callbacks.remove(callback)
            except ValueError:
                return  # the thread that set the result calls it
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
    """Awaitable of a pending, with or without a timeout, for loops and for `drive`."""

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
