"""Calls of any function, on the loop or on a thread, with a time limit."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from roost.runtime.execution.cancellation import CANCEL_ATTEMPTS, is_discarded

if TYPE_CHECKING:
    from roost.runtime.execution.turn_execution import TurnExecution


class GivenUp(Exception):
    """Raised when a call did not end in time. `runs`: it ignored its cancellation and may still be running."""

    def __init__(self, *, runs: bool) -> None:
        super().__init__("the call did not end in time")
        self.runs = runs


async def call_function(
    execution: TurnExecution, name: str, act: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """Call a coroutine function on the loop, any other function on its own thread of this name."""
    if inspect.iscoroutinefunction(act):
        return await act(*args, **options)
    found: list[Any] = []
    await execution.off_loop(lambda: found.append(act(*args, **options)), name)
    return await found[0] if inspect.isawaitable(found[0]) else found[0]


async def call_within(
    execution: TurnExecution,
    name: str,
    seconds: float,
    act: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Any:
    """Call a function as `call_function` does, in a separate task, which is abandoned if it ignores its cancellation.

    Raises GivenUp if the call did not end in time.
    """
    raised: list[BaseException] = []

    async def call() -> Any:
        try:
            return await call_function(execution, name, act, args, options)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # SystemExit would end the loop; and the error may come too late for the caller
            if isinstance(error, GeneratorExit) and is_discarded(task):
                raise
            raised.append(RuntimeError("it raised GeneratorExit") if isinstance(error, GeneratorExit) else error)

    task = asyncio.get_running_loop().create_task(call())
    try:
        in_time, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            await _cancel(execution, name, task)
    if not task.done() or (task.cancelled() and not in_time):
        raise GivenUp(runs=not task.done())
    if raised:
        raise raised[0]
    return task.result()


async def _cancel(execution: TurnExecution, name: str, task: asyncio.Task[Any]) -> None:
    """Cancel the task, several times if necessary, within a limited time."""
    try:
        for _ in range(CANCEL_ATTEMPTS):
            task.cancel()
            if (await asyncio.wait({task}, timeout=execution.patience / CANCEL_ATTEMPTS))[0]:
                return
    finally:
        if not task.done():
            execution.abandon_task(name, task)
