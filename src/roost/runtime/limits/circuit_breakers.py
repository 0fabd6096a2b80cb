"""The circuit breakers of all providers that brains ask."""

from __future__ import annotations

import logging

from roost.core.failures.circuit_breakers import Breaker
from roost.core.limits.limits import Limits
from roost.ports import Host, Profile
from roost.runtime.monitoring.fact_stream import FactStream

log = logging.getLogger("roost.breakers")


class CircuitBreakers:
    """Any thread may call. A provider is the first part of a model's name, or else the profile itself."""

    def __init__(self, host: Host, limits: Limits, monitor: FactStream) -> None:
        self._host = host
        self._limits = limits
        self._monitor = monitor
        self._lock = host.lock()
        self._known: dict[str, Breaker] = {}

    def allows(self, profile: Profile) -> bool:
        breaker = self._known.get(profile.provider)
        if breaker is None or not breaker.is_open:
            return True
        with self._lock:
            return breaker.allows(self._host.clock.monotonic())

    def wait(self, profile: Profile) -> float:
        """Return for how many seconds nobody needs to ask again whether they may."""
        breaker = self._known.get(profile.provider)
        due = breaker.retry_at if breaker is not None else None
        return 0.05 if due is None else max(0.05, due - self._host.clock.monotonic())

    def unused(self, profile: Profile) -> None:
        """One who was allowed to ask has not asked, or was stopped before it was known how that ends."""
        breaker = self._known.get(profile.provider)
        if breaker is not None and breaker.is_open:
            with self._lock:
                breaker.unused()

    def record(self, profile: Profile, fault: str | None) -> None:
        """A turn of this profile has ended, well or with this fault."""
        name = profile.provider
        breaker = self._known.get(name)
        if breaker is None:
            if fault is None:
                return
            breaker = self._known.setdefault(name, Breaker(self._limits.breaker_failures, self._limits.breaker_pause))
        with self._lock:
            changed = breaker.record(fault, self._host.clock.monotonic())
        if changed:
            log.warning("the provider %r %s", name, "answers again" if fault is None else "is not asked for a while")
            self._monitor.breaker(name, is_open=fault is not None)

    def open(self) -> list[str]:
        """Return the providers that are not asked just now."""
        return sorted(name for name, is_open in self.all().items() if is_open)

    def all(self) -> dict[str, bool]:
        """Return the providers that have ever failed, and whether they are not asked just now."""
        return {name: breaker.is_open for name, breaker in list(self._known.items())}
