"""Circuit breakers: a provider that fails again and again is not asked for a while, then tried once."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.faults import Fault

COUNTED = frozenset({Fault.PROVIDER, Fault.RATE_LIMIT, Fault.BAD_KEY})
"""Failures that are the provider's; a brain that fails by itself says nothing about others."""


@dataclass(slots=True)
class Breaker:
    """Of one provider. Closed: all may ask. Open: nobody, until `retry_at`; then one, and its luck decides."""

    most: int
    pause: float
    failures: int = 0
    retry_at: float | None = None
    probing: float | None = None
    """Since when one asks although it is open."""

    @property
    def is_open(self) -> bool:
        return self.retry_at is not None

    def allows(self, now: float) -> bool:
        """Whether one may ask now; of an open one, one at a time, and another if that one is never heard of."""
        if self.retry_at is None:
            return True
        if now < self.retry_at or (self.probing is not None and now < self.probing + self.pause):
            return False
        self.probing = now
        return True

    def unused(self) -> None:
        """Whoever was to ask did not get as far as the provider: the next one tries."""
        self.probing = None

    def told(self, fault: str | None, now: float) -> bool:
        """A turn has ended so; whether the breaker has opened or closed by it."""
        was = self.is_open
        if fault is None:
            self.failures, self.retry_at, self.probing = 0, None, None
        elif fault in COUNTED:
            self.failures += 1
            if self.probing is not None or self.failures >= self.most:
                self.retry_at, self.probing = now + self.pause, None
        else:
            self.unused()
        return was != self.is_open
