"""Cancellation of tasks: who cancelled a task, and whether its loop has discarded it."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

CANCEL_ATTEMPTS = 3
"""Number of times that a task is cancelled before it is abandoned."""


class TaskOwner(Protocol):
    """Agent on whose loop a turn runs."""

    def orphan(self, task: asyncio.Task[Any]) -> None:
        """Register a task that ignores its cancellation."""


def is_cancelled() -> bool:
    """Return True if the current task was cancelled from outside; a brain can raise the same error by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def is_discarded(task: asyncio.Task[Any] | None) -> bool:
    """Return True if a coroutine of this task is being closed together with its loop instead of run.

    Then a GeneratorExit comes from outside; a brain, a step or a tool can raise one as well.
    """
    try:
        return asyncio.current_task() is not task
    except RuntimeError:  # no loop is running
        return True
