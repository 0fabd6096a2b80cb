"""Calls of a blocking function on a thread of its own, awaited on the loop of a turn."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

from roost.errors import BrainFailed
from roost.ports import Host, Loop
from roost.runtime.limits.abandoned_threads import Thread


async def call_on_thread(host: Host, loop: Loop, name: str, thread: Thread, act: Callable[[], object]) -> None:
    """Run a function on a new thread and raise its error. A cancelled call does not end the thread."""
    finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def finish(error: BaseException | None) -> None:
        if finished.done():
            return
        if error is None:
            finished.set_result(None)
        else:
            finished.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            act()
        except (asyncio.CancelledError, Exception) as raised:
            # A future does not accept StopIteration.
            error = _wrapped(raised) if isinstance(raised, StopIteration) else raised
        except BaseException as raised:
            error = _wrapped(raised)
        thread.returned()
        loop.call(finish, error)

    context = contextvars.copy_context()  # for the span and the log of the turn
    host.run_blocking(name, lambda: context.run(run))
    await finished


def _wrapped(raised: BaseException) -> BrainFailed:
    """Return an error with the traceback of an exception that cannot be raised on the loop."""
    error = BrainFailed(f"it raised {type(raised).__name__}")
    error.__cause__ = raised
    return error
