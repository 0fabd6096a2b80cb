"""Circuit breakers of all providers."""

from __future__ import annotations

import logging

from roost.core.failures.circuit_breakers import Breaker
from roost.core.limits.limits import Limits
from roost.ports import Host, Profile
from roost.runtime.monitoring.fact_stream import FactStream

log = logging.getLogger("roost.breakers")


class CircuitBreakers:
    """Circuit breakers by provider: the first part of a model's name, or the profile. Any thread may call."""

    def __init__(self, host: Host, limits: Limits, monitor: FactStream) -> None:
        self._host = host
        self._limits = limits
        self._monitor = monitor
        self._lock = host.lock()
        self._breakers: dict[str, Breaker] = {}

    def allows(self, profile: Profile) -> bool:
        breaker = self._breakers.get(profile.provider)
        if breaker is None or not breaker.is_open:
            return True
        with self._lock:
            return breaker.allows(self._host.clock.monotonic())

    def wait(self, profile: Profile) -> float:
        """Return the seconds until the next call may be allowed."""
        breaker = self._breakers.get(profile.provider)
        due = breaker.retry_at if breaker is not None else None
        return 0.05 if due is None else max(0.05, due - self._host.clock.monotonic())

    def release(self, profile: Profile) -> None:
        """Release the probe of a caller that did not reach the provider."""
        breaker = self._breakers.get(profile.provider)
        if breaker is not None and breaker.is_open:
            with self._lock:
                breaker.release()

    def record(self, profile: Profile, fault: str | None) -> None:
        """Record the end of a turn of this profile, with its fault or None."""
        name = profile.provider
        breaker = self._breakers.get(name)
        if breaker is None:
            if fault is None:
                return
            breaker = self._breakers.setdefault(
                name, Breaker(self._limits.breaker_failures, self._limits.breaker_pause)
            )
        with self._lock:
            changed = breaker.record(fault, self._host.clock.monotonic())
        if changed:
            log.warning("circuit %s for provider %r", "closed" if fault is None else "open", name)
            self._monitor.breaker(name, is_open=fault is not None)

    def open(self) -> list[str]:
        """Return the providers with an open circuit."""
        return sorted(name for name, is_open in self.all().items() if is_open)

    def all(self) -> dict[str, bool]:
        """Return all providers that have failed, and whether their circuit is open."""
        return {name: breaker.is_open for name, breaker in list(self._breakers.items())}
