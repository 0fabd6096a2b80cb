"""Time limit of a run. It does not count the time in which the run waits for a person."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from roost.core.failures.faults import Fault
from roost.errors import BrainFailed


class TimeLimit:
    """Limit of `seconds` for one coroutine; used on its loop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)
        self._remaining = 0.0

    async def run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run the coroutine. Raises BrainFailed if it takes longer than the limit."""
        try:
            async with self._timeout:
                await coroutine
        except TimeoutError as error:
            if not self._timeout.expired():
                raise
            raise BrainFailed(f"it took longer than {self._seconds:g} seconds", kind=Fault.TIME) from error

    def hold(self, is_held: bool) -> None:
        """Stop counting, or continue with the remaining time."""
        due, now = self._timeout.when(), asyncio.get_running_loop().time()
        if is_held and due is not None:
            self._remaining = max(0.0, due - now)
            self._timeout.reschedule(None)
        elif not is_held and due is None:
            self._timeout.reschedule(now + self._remaining)
