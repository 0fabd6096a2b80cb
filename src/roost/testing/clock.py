"""A clock that is moved by hand."""

from __future__ import annotations

from datetime import UTC, datetime

from roost.hosts.virtual import VirtualClock


class Clock(VirtualClock):
    """Stands still until it is moved. It begins at 08:00 UTC on 15 January 2027.

    `now()` is what people's clocks show, `monotonic()` how much time has passed. Given to a `Simulation` it is the
    time there: what has become due happens when the simulation runs the next time.
    """

    def advance(self, seconds: float) -> None:
        """So much time passes, at once."""
        if seconds < 0:
            raise ValueError("time does not run backwards: `jump` sets people's clocks back")
        self.elapsed += seconds

    def jump(self, seconds: float) -> None:
        """People's clocks are set forward, or back (`jump(-3600)`); no time passes."""
        self.shift += seconds

    def set(self, when: datetime | float) -> None:
        """People's clocks are set to this; no time passes."""
        wanted = when.timestamp() if isinstance(when, datetime) else when
        self.shift += wanted - self.now()

    @property
    def time(self) -> datetime:
        """What people's clocks show, in UTC."""
        return datetime.fromtimestamp(self.now(), UTC)
