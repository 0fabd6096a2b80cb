"""Limit on the RAM of the process: above it, new work of users is refused."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from roost.errors import LimitReached

if TYPE_CHECKING:
    from roost.core.limits.limits import Limits
    from roost.ports import Host

log = logging.getLogger("roost.ram")


class RamGuard:
    """RAM limit. The supervisor calls `update` from time to time; any thread may call `check`."""

    def __init__(self, host: Host, limits: Limits) -> None:
        self._host = host
        self._most = limits.process_mib
        self.problem: str | None = None

    def update(self) -> bool:
        """Measure the RAM; return True if it is above the limit."""
        have = self._host.ram() if self._most else None
        before, self.problem = self.problem, None
        if have is not None and have > self._most:
            self.problem = (
                f"the program uses {have:,.0f} MiB of RAM, and {self._most:,.0f} are allowed: it accepts no new work"
                " until some is done"
            )
        if self.problem is not None and before is None:
            log.error(self.problem)
        elif self.problem is None and before is not None:
            log.info("RAM is below the limit again; new work is accepted")
        return self.problem is not None

    def check(self) -> None:
        """Raise LimitReached for new work of a user. Work between agents is never refused, so that it can finish."""
        if self.problem is not None:
            raise LimitReached(f"{self.problem}; try again in a moment")
