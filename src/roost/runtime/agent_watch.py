"""Watch over agents: find those whose loop is blocked, and move them to another one."""

from __future__ import annotations

import logging

from roost.core.failures.faults import Fault
from roost.core.monitoring.facts import Name
from roost.runtime.agents.activation import Activation
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher

log = logging.getLogger("roost.watch")

TO_RETURN = 2
"""Multiple of `silent_loop` after which the loop of a stuck agent is replaced. Many loops return by themselves, and a
second CPU-bound thread beside the first would slow down all others again."""


class AgentWatch:
    """Called by the supervisor. Checks agents that have work, twice in the time that a loop may be silent."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._looked = 0.0

    def check(self) -> None:
        now, longest = self._context.host.clock.monotonic(), self._context.limits.silent_loop
        if now - self._looked < longest / 2:
            return
        self._looked = now
        self._check_stuck(longest)
        for activation in self._dispatcher.all():
            if activation.needs_loop:
                silence = activation.loop.silence()
                if silence > longest:
                    self._found(activation, silence)

    def _check_stuck(self, longest: float) -> None:
        for address, activation in list(self._dispatcher.stuck.items()):
            if self._dispatcher.awake(address) is not activation or activation.loop.silence() <= longest:
                self._freed(address)

    def _found(self, activation: Activation, silence: float) -> None:
        run_id, root = _culprit(activation)
        if self._dispatcher.stuck.get(activation.address) is not activation:
            self._dispatcher.stuck[activation.address] = activation
            data = {"run_id": run_id, "seconds": round(silence, 3)}
            log.error(
                "agent is stuck: its loop has been blocked for %.1f s",
                silence,
                extra={"agent": activation.address, "run": run_id, "root": root},
            )
            self._context.facts.record(Name.AGENT_STUCK, activation.address, data, root=root)
        if silence < TO_RETURN * self._context.limits.silent_loop or self._context.abandoned.is_full:
            return
        if self._dispatcher.lose(activation, Fault.BLOCKED, run_id):
            self._context.abandoned.add(activation.loop)

    def _freed(self, address: str) -> None:
        del self._dispatcher.stuck[address]
        log.info("agent is no longer stuck", extra={"agent": address})
        self._context.facts.record(Name.AGENT_UNSTUCK, address)


def _culprit(activation: Activation) -> tuple[str | None, str]:
    """Return the run that blocks the loop, as far as it is known, and the id of its origin."""
    inside = (activation.loop.busy_with() or "").partition(" ")[0]
    runs = [*activation.works, *(lane.run for lane in list(activation.talks.lanes.values()) if lane.run is not None)]
    for run in runs:
        if run.run_id == inside or len(runs) == 1:
            return run.run_id, run.root
    return None, ""
