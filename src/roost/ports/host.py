"""Hosts: time, threads and event loops for the runtime."""

from __future__ import annotations

from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Mapping,
)
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    def now(self) -> float:
        """Return seconds since 1970; may jump."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment; never jumps. For durations."""
        ...


class Pending(Protocol[T]):
    """Result that is set later, once, from any thread.

    Awaited on an event loop, or on a plain thread inside a driven coroutine.
    """

    @property
    def done(self) -> bool: ...

    def set(self, value: T) -> None:
        """Set the result. Only the first `set` or `fail` counts."""
        ...

    def fail(self, error: BaseException) -> None: ...

    def __await__(self) -> Generator[Any, Any, T]: ...

    def within(self, seconds: float) -> Awaitable[bool]:
        """Wait for at most `seconds`; return whether it is done. Raises nothing, cancels nothing."""
        ...


class Bell(Protocol):
    """Bell that wakes one waiter again and again. The waiter clears it, then looks for news, then waits."""

    def ring(self) -> None:
        """End the current wait, or the next one. From any thread."""
        ...

    def clear(self) -> None:
        """Forget that it was rung."""
        ...

    async def within(self, seconds: float) -> bool:
        """Wait for at most `seconds`, unless it was rung since it was cleared; return whether it was."""
        ...

    def close(self) -> None:
        """Release its timer."""
        ...


class Loop(Protocol):
    """Event loop of a worker, as other threads see it."""

    name: str

    @property
    def over(self) -> Pending[None]:
        """Return a result that is set when everything on the loop has ended."""
        ...

    def call(self, act: Callable[..., object], *args: object) -> None:
        """Call a function on that loop soon, in order; from any thread. Does nothing if the loop has ended."""
        ...

    def silence(self) -> float:
        """Return for how many seconds a heartbeat is overdue, and request the next one."""
        ...

    def busy_with(self) -> str | None:
        """Return the name of the task that runs on the loop; if the loop has ended, of the task that ended it."""
        ...

    def abandon(self) -> None:
        """Abandon the loop: request its end without waiting for it."""
        ...

    def join(self) -> None:
        """Wait until its thread has ended; only after `over`."""
        ...


class Pump(Protocol):
    """Caller of one function after each ring, one call at a time."""

    def ring(self) -> None: ...

    def close(self) -> None:
        """Stop, and return when the current call has ended."""
        ...


class Host(Protocol):
    """Host of the runtime: real threads, or one deterministic loop with virtual time."""

    @property
    def clock(self) -> Clock: ...

    def new_id(self, kind: str) -> str:
        """Return a new id `kind_…` that sorts after all earlier ones."""
        ...

    def jitter(self) -> float:
        """Return a random number from 0 to 1."""
        ...

    def load(self) -> float | None:
        """Return the CPU load of the machine since the last call, from 0 to 1; None if unknown."""
        ...

    def ram(self) -> float | None:
        """Return the MiB of memory that this process uses; None if unknown."""
        ...

    def lock(self) -> AbstractContextManager[object]: ...

    def pending(self) -> Pending[Any]: ...

    def bell(self) -> Bell: ...

    def together(self) -> AbstractContextManager[object]:
        """Return a context that batches results and calls: each loop is woken once, at its end."""
        ...

    def pump(self, name: str, step: Callable[[], None]) -> Pump: ...

    def start_loop(
        self,
        name: str,
        main: Callable[[Loop], Coroutine[Any, Any, None]],
        ended: Callable[[Loop, BaseException | None], None],
    ) -> Loop:
        """Run `main` on a new loop. `ended` is called there at its end, with the error if it crashed."""
        ...

    def wait(self, pending: Pending[Any], seconds: float) -> bool:
        """Block a thread of `run_blocking` until the result is set or the time is over; return whether it is set."""
        ...

    def run_blocking(self, name: str, act: Callable[[], None]) -> None:
        """Run a function on its own thread, without waiting for it. `act` must not raise."""
        ...


Tracer = Callable[[str, Mapping[str, Any]], AbstractContextManager[dict[str, Any]]]
"""Context around each run, with its name and attributes; entries of its mapping are reported at the end."""
