"""Time, threads and loops: what the runtime asks its host for."""

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
        """Seconds since 1970, as people's clocks show them; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never jumps. For durations."""
        ...


class Pending(Protocol[T]):
    """A result that comes later, set once from any thread.

    Awaited on an event loop, or, inside a driven coroutine, waited for on a plain thread.
    """

    @property
    def done(self) -> bool: ...

    def set(self, value: T) -> None:
        """The first `set` or `fail` counts; later ones change nothing."""
        ...

    def fail(self, error: BaseException) -> None: ...

    def __await__(self) -> Generator[Any, Any, T]: ...

    def within(self, seconds: float) -> Awaitable[bool]:
        """Wait so long at the most; whether it is done. Raises nothing, cancels nothing."""
        ...


class Loop(Protocol):
    """A worker's event loop, as others see it."""

    name: str

    @property
    def over(self) -> Pending[None]:
        """Set when everything on it has ended."""
        ...

    def call(self, act: Callable[..., object], *args: object) -> None:
        """Call it on that loop soon, in order; from any thread. Nothing happens if the loop has ended."""
        ...

    def silence(self) -> float:
        """For how many seconds a sign of life has been awaited in vain. Asks for the next one."""
        ...

    def busy_with(self) -> str | None:
        """The name of the task the loop is inside of right now; of one that has ended, who has ended it."""
        ...

    def abandon(self) -> None:
        """Give it up: it is told to end when it can, and nobody waits for it."""
        ...

    def join(self) -> None:
        """Once it is over: return when nothing of it is left."""
        ...


class Pump(Protocol):
    """Something that calls one function whenever it was rung, one call at a time."""

    def ring(self) -> None: ...

    def close(self) -> None:
        """Return when the call under way has ended; none follows."""
        ...


class Host(Protocol):
    """What the runtime runs on: real threads, or one deterministic loop with virtual time."""

    @property
    def clock(self) -> Clock: ...

    def new_id(self, kind: str) -> str:
        """A new id `kind_…`, after all that were made here before."""
        ...

    def jitter(self) -> float:
        """A random number from 0 to 1."""
        ...

    def load(self) -> float | None:
        """The share of the machine's processors in use since it was last asked, from 0 to 1; None: not known."""
        ...

    def memory(self) -> float | None:
        """MiB of memory that this process has; None: not known."""
        ...

    def lock(self) -> AbstractContextManager[object]: ...

    def pending(self) -> Pending[Any]: ...

    def together(self) -> AbstractContextManager[object]:
        """Whatever is set, and called on loops, inside of it reaches each loop in one go at its end."""
        ...

    def pump(self, name: str, step: Callable[[], None]) -> Pump: ...

    def start_loop(
        self,
        name: str,
        main: Callable[[Loop], Coroutine[Any, Any, None]],
        ended: Callable[[Loop, BaseException | None], None],
    ) -> Loop:
        """Run `main` on a new loop. `ended` is called there when it is over, with its error if it crashed."""
        ...

    def run_blocking(self, name: str, act: Callable[[], None]) -> None:
        """Run it on a thread of its own, which nobody waits for. `act` raises nothing."""
        ...


Tracer = Callable[[str, Mapping[str, Any]], AbstractContextManager[dict[str, Any]]]
"""Around each run, if there is one: its name and attributes. What is put into its mapping is told at the end."""
