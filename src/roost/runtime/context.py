"""Runtime context: the ports, the limits and the fact stream that all parts share."""

from __future__ import annotations

from dataclasses import dataclass, field

from roost.core.limits.limits import Limits
from roost.core.values.secrets import Redactor
from roost.ports import Brains, Host, Pending, Store, Tracer
from roost.runtime.limits.abandoned_threads import AbandonedThreads
from roost.runtime.limits.circuit_breakers import CircuitBreakers
from roost.runtime.limits.origin_budgets import OriginBudgets
from roost.runtime.limits.quarantine import Quarantine
from roost.runtime.limits.ram_guard import RamGuard
from roost.runtime.limits.storage_quota import StorageQuota
from roost.runtime.limits.token_budget import TokenBudget
from roost.runtime.monitoring.fact_stream import FactStream
from roost.runtime.toolbox import Toolbox


@dataclass(slots=True)
class RuntimeContext:
    host: Host
    store: Store
    brains: Brains
    limits: Limits
    tools: Toolbox
    monitor: FactStream
    breakers: CircuitBreakers
    ledger: TokenBudget
    budgets: OriginBudgets
    ram: RamGuard
    quota: StorageQuota
    abandoned: AbandonedThreads
    quarantine: Quarantine
    recovered: Pending[None]
    """Set when the store has been recovered after a crash."""
    tracer: Tracer | None = None
    redactor: Redactor = field(default_factory=Redactor)
    approval_waiters: dict[str, Pending[None]] = field(default_factory=dict)
    """Runs that wait for an approval, by its id."""
    closing: bool = False
    """True once Roost starts to close: runs that need an approval are suspended at once."""

    @classmethod
    def create(
        cls,
        host: Host,
        store: Store,
        brains: Brains,
        limits: Limits,
        tools: Toolbox,
        *,
        tracer: Tracer | None = None,
        redactor: Redactor | None = None,
    ) -> RuntimeContext:
        """Create the limits and the fact stream for these ports."""
        monitor = FactStream(host, limits)
        return cls(
            host,
            store,
            brains,
            limits,
            tools,
            monitor,
            breakers=CircuitBreakers(host, limits, monitor),
            ledger=TokenBudget(host, store),
            budgets=OriginBudgets(host, store, limits),
            ram=RamGuard(host, limits),
            quota=StorageQuota(host, store, limits),
            abandoned=AbandonedThreads(host, limits),
            quarantine=Quarantine(host),
            recovered=host.pending(),
            tracer=tracer,
            redactor=redactor or Redactor(),
        )
