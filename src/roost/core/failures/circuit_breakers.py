"""Circuit breakers: after repeated failures a provider is not called for a while, then probed once."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.failures.faults import Fault

COUNTED = frozenset({Fault.PROVIDER, Fault.RATE_LIMIT, Fault.BAD_KEY})
"""Faults of the provider. A failure of the brain itself is not counted."""


@dataclass(slots=True)
class Breaker:
    """Circuit breaker of one provider. Open: no calls until `retry_at`; then one probe decides whether it closes."""

    most: int
    pause: float
    failures: int = 0
    retry_at: float | None = None
    probing: float | None = None
    """Start of the probe under way."""

    @property
    def is_open(self) -> bool:
        return self.retry_at is not None

    def allows(self, now: float) -> bool:
        """Return whether a call may start now. If open, one probe at a time; a probe without a result expires."""
        if self.retry_at is None:
            return True
        if now < self.retry_at or (self.probing is not None and now < self.probing + self.pause):
            return False
        self.probing = now
        return True

    def release(self) -> None:
        """Release the probe: the caller never reached the provider."""
        self.probing = None

    def record(self, fault: str | None, now: float) -> bool:
        """Record the result of a call; return whether the breaker opened or closed."""
        was = self.is_open
        if fault is None:
            self.failures, self.retry_at, self.probing = 0, None, None
        elif fault in COUNTED:
            self.failures += 1
            if self.probing is not None or self.failures >= self.most:
                self.retry_at, self.probing = now + self.pause, None
        else:
            self.release()
        return was != self.is_open
