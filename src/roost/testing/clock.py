"""Clock that tests advance."""

from __future__ import annotations

from datetime import UTC, datetime

from roost.hosts.virtual_time import VirtualClock


class Clock(VirtualClock):
    """Clock that stands still until it is advanced. It starts at 08:00 UTC on 15 January 2027.

    `now()` is wall-clock time, `monotonic()` the time that has passed. It may be the clock of a `Simulation`, where
    work that became due runs in the next run.
    """

    def advance(self, seconds: float) -> None:
        """Advance the time."""
        if seconds < 0:
            raise ValueError("time cannot go backwards: use `jump` to set the wall clock back")
        self.elapsed += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward, or back (`jump(-3600)`); no time passes."""
        self.shift += seconds

    def set(self, when: datetime | float) -> None:
        """Set the wall clock; no time passes."""
        target = when.timestamp() if isinstance(when, datetime) else when
        self.shift += target - self.now()

    @property
    def time(self) -> datetime:
        """Return the wall-clock time in UTC."""
        return datetime.fromtimestamp(self.now(), UTC)
