"""Calls of any function, on the loop or on a thread, with a time limit."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from roost.runtime.execution.turn_execution import PRESSES, is_discarded

if TYPE_CHECKING:
    from roost.runtime.execution.turn_execution import TurnExecution


class GivenUp(Exception):
    """It did not end in time. `runs`: it did not heed that it was cancelled, and may still be running."""

    def __init__(self, *, runs: bool) -> None:
        super().__init__("it has not ended in time")
        self.runs = runs


async def do(
    execution: TurnExecution, name: str, act: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """Call a coroutine function here, anything else on a thread of its own, which bears the name."""
    if inspect.iscoroutinefunction(act):
        return await act(*args, **options)
    found: list[Any] = []
    await execution.off_loop(lambda: found.append(act(*args, **options)), name)
    return await found[0] if inspect.isawaitable(found[0]) else found[0]


async def do_within(
    execution: TurnExecution,
    name: str,
    seconds: float,
    act: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Any:
    """The same in a task of its own, which is left to itself if it does not heed that it is cancelled.

    Raises GivenUp if it did not end in time.
    """
    raised: list[BaseException] = []

    async def doing() -> Any:
        try:
            return await do(execution, name, act, args, options)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # SystemExit too, which would end the loop; and nobody may be there to hear
            if isinstance(error, GeneratorExit) and is_discarded(task):
                raise
            raised.append(RuntimeError("it raised GeneratorExit") if isinstance(error, GeneratorExit) else error)

    task = asyncio.get_running_loop().create_task(doing())
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
    """More than once if need be, and for a bounded time."""
    try:
        for _ in range(PRESSES):
            task.cancel()
            if (await asyncio.wait({task}, timeout=execution.patience / PRESSES))[0]:
                return
    finally:
        if not task.done():
            execution.leave_running(name, task)
