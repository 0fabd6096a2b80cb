"""The memory of the process: when it has more than it may, it takes nothing new from people until it has less."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from roost.errors import LimitReached

if TYPE_CHECKING:
    from roost.core.limits.limits import Limits
    from roost.ports import Host

log = logging.getLogger("roost.memory")


class MemoryGuard:
    """`look` is called by the supervisor, now and then; the rest by any thread."""

    def __init__(self, host: Host, limits: Limits) -> None:
        self._host = host
        self._most = limits.process_mib
        self.problem: str | None = None

    def look(self) -> bool:
        """Return True if it has more than it may."""
        have = self._host.memory() if self._most else None
        before, self.problem = self.problem, None
        if have is not None and have > self._most:
            self.problem = (
                f"the program uses {have:,.0f} MiB of memory, and {self._most:,.0f} are allowed: it takes nothing new"
                " until it has done some of what it has"
            )
        if self.problem is not None and before is None:
            log.error(self.problem)
        elif self.problem is None and before is not None:
            log.info("the program has memory to spare again")
        return self.problem is not None

    def check(self) -> None:
        """Before something new is taken from a person. What agents send each other is not refused: it must go on."""
        if self.problem is not None:
            raise LimitReached(f"{self.problem}; try again in a moment")
