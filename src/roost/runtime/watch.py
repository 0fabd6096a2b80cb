"""The watch over agents: whether the loops of those that have work still turn."""

from __future__ import annotations

import logging

from roost.core.facts import Name
from roost.runtime.activation import Activation
from roost.runtime.hall import Hall
from roost.runtime.shop import Shop

log = logging.getLogger("roost.watch")


class Watch:
    """Called by the supervisor. Asks only those that have work, twice in the time that a loop may be silent."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        self._looked = 0.0
        self._stuck: set[Activation] = set()

    def look(self) -> None:
        now, longest = self._shop.host.clock.monotonic(), self._shop.limits.silent_loop
        if now - self._looked < longest / 2:
            return
        self._looked = now
        for activation in self._hall.all():
            if activation.begun and not activation.stuck and activation.has_work:
                silence = activation.loop.silence()
                if silence > longest:
                    self._found(activation, silence)
        for activation in list(self._stuck):
            if activation.retired or activation.loop.over.done or activation.loop.silence() <= longest:
                self._freed(activation)

    def _found(self, activation: Activation, silence: float) -> None:
        activation.stuck = True
        self._stuck.add(activation)
        run_id, root = _culprit(activation)
        data = {"run_id": run_id, "seconds": round(silence, 3)}
        log.error(
            "an agent is stuck: its loop has not turned for %.1f s", silence,
            extra={"agent": activation.address, "run": run_id, "root": root},
        )  # fmt: skip
        self._shop.monitor.tell(Name.AGENT_STUCK, activation.address, data, root=root)

    def _freed(self, activation: Activation) -> None:
        activation.stuck = False
        self._stuck.discard(activation)
        log.info("an agent is not stuck any more", extra={"agent": activation.address})
        self._shop.monitor.tell(Name.AGENT_UNSTUCK, activation.address)


def _culprit(activation: Activation) -> tuple[str | None, str]:
    """The run that its loop is inside of, as far as that can be known, and with what that began."""
    inside = (activation.loop.busy_with() or "").partition(" ")[0]
    runs = [*activation.works, *(lane.run for lane in list(activation.talks.lanes.values()) if lane.run is not None)]
    for run in runs:
        if run.run_id == inside or not inside.startswith("run_"):
            return run.run_id, run.root
    return inside or None, ""
