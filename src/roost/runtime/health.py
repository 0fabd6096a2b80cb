"""Report on the health of this process, with the first problem that needs attention."""

from __future__ import annotations

from roost.core.monitoring.health import Health
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.supervisor import Supervisor

CROWDED_AFTER = 1.0
"""Seconds for which agents may wait for a slot before this is reported as a problem."""


def report(context: RuntimeContext, dispatcher: Dispatcher, supervisor: Supervisor) -> Health:
    return Health(
        len(dispatcher.placement.workers),
        context.limits.talk_workers,
        supervisor.restarts,
        supervisor.down
        or _stuck(context, dispatcher)
        or context.abandoned.problem
        or context.ram.problem
        or _crowded(context, dispatcher)
        or _open_circuits(context),
        context.abandoned.count,
        dispatcher.loops.awake,
        dispatcher.loops.waiting,
    )


def _crowded(context: RuntimeContext, dispatcher: Dispatcher) -> str | None:
    """Return the problem that agents wait too long for a slot, if so."""
    loops = dispatcher.loops
    if loops.short_for < CROWDED_AFTER:
        return None
    agents = "1 agent waits" if loops.waiting == 1 else f"{loops.waiting:,} agents wait"
    return (
        f"{agents} for a slot: all {context.limits.awake_agents:,} are taken (awake_agents); raise it, or"
        " give the agents less to do at once"
    )


def _stuck(context: RuntimeContext, dispatcher: Dispatcher) -> str | None:
    """Return why stuck agents are left where they are, if any are."""
    stuck = sum(not activation.phases.is_retired for activation in list(dispatcher.stuck.values()))
    if not stuck or not context.abandoned.is_full:
        return None
    given_up = context.abandoned.loops
    agents = "1 agent is" if stuck == 1 else f"{stuck} agents are"
    return (
        f"{agents} stuck and cannot be moved to another thread: {given_up} blocked threads have not returned"
        f" (blocked_loops = {context.limits.blocked_loops}); find what blocks in the log, then restart Roost"
    )


def _open_circuits(context: RuntimeContext) -> str | None:
    names = ", ".join(repr(name) for name in context.breakers.open())
    return f"{names} failed repeatedly; the circuit is open, and agents that need it wait" if names else None
