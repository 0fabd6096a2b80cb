"""Runtime context: the ports, the limits and the fact stream that all parts share."""

from __future__ import annotations

from collections.abc import Callable
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
from roost.runtime.monitoring.fact_ring import FactLog
from roost.runtime.monitoring.fact_stream import FactStream
from roost.runtime.toolbox import Toolbox

POLL_OF_NODE = 2.0
"""Longest time in seconds between two polls of the store by a node of a cluster."""
POLL_WITHOUT_NOTICES = 0.25
"""The same for a node that gets no notices from others."""


@dataclass(slots=True)
class RuntimeContext:
    host: Host
    store: Store
    brains: Brains
    limits: Limits
    tools: Toolbox
    facts: FactStream
    breakers: CircuitBreakers
    token_budget: TokenBudget
    budgets: OriginBudgets
    ram: RamGuard
    quota: StorageQuota
    abandoned: AbandonedThreads
    quarantine: Quarantine
    node: str
    """This node of a cluster; empty in a single process."""
    does_chores: Callable[[], bool]
    """Returns whether this process does what one of a cluster does for all."""
    gets_notices: Callable[[], bool]
    """Returns whether notices of other nodes arrive here."""
    recovered: Pending[None]
    """Set when the store has been recovered after a crash."""
    tracer: Tracer | None = None
    redactor: Redactor = field(default_factory=Redactor)
    approval_waiters: dict[str, Pending[None]] = field(default_factory=dict)
    """Runs that wait for an approval, by its id."""
    closing: bool = False
    """True once Roost starts to close: runs that need an approval are suspended at once."""

    def poll_interval(self, seconds: float) -> float:
        """Return the time between two polls of the store: in a cluster shorter, since notices may be lost."""
        if not self.node:
            return seconds
        return min(seconds, POLL_OF_NODE if self.gets_notices() else POLL_WITHOUT_NOTICES)

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
        node: str = "",
        does_chores: Callable[[], bool] = lambda: True,
        gets_notices: Callable[[], bool] = lambda: True,
        fact_log: Callable[[FactStream], FactLog] | None = None,
    ) -> RuntimeContext:
        """Create the limits and the fact stream for these ports."""
        facts = FactStream(host, limits, fact_log)
        return cls(
            host,
            store,
            brains,
            limits,
            tools,
            facts,
            breakers=CircuitBreakers(host, limits, facts),
            token_budget=TokenBudget(host, store),
            budgets=OriginBudgets(host, store, limits),
            ram=RamGuard(host, limits),
            quota=StorageQuota(host, store, limits),
            abandoned=AbandonedThreads(host, limits),
            quarantine=Quarantine(host),
            node=node,
            does_chores=does_chores,
            gets_notices=gets_notices,
            recovered=host.pending(),
            tracer=tracer,
            redactor=redactor or Redactor(),
        )
