"""Work that runs on this node of a cluster, as its membership reports, stops and hands it over."""

from __future__ import annotations

from collections.abc import Collection

from roost.core.cluster.nodes import NodeLoad
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.talks.talks import Talks
from roost.runtime.supervisor import Supervisor


class HostedWork:
    """Agents and talks of this node. `supervisor`: None if nothing runs here."""

    def __init__(self, dispatcher: Dispatcher, talks: Talks, supervisor: Supervisor | None) -> None:
        self._dispatcher = dispatcher
        self._talks = talks
        self._live_talks = dispatcher.live_talks
        self._placement = dispatcher.placement
        self._supervisor = supervisor

    def load(self) -> NodeLoad:
        dispatcher = self._dispatcher
        awake, most = dispatcher.count, dispatcher.context.limits.awake_agents
        return NodeLoad(awake, max(0, most - awake), dispatcher.load)

    def stop(self) -> None:
        """Stop all runs at once: they run on other nodes, and nothing that they write here is accepted."""
        self._talks.closing = True
        self._dispatcher.stop_everything()

    def take_free(self) -> None:
        """Look for work that other nodes have left."""
        self._live_talks.owners.clear()
        if self._supervisor is not None:
            self._supervisor.sweep_soon()

    def held(self) -> tuple[list[str], list[str]] | None:
        """Return the agents and talks that have not ended while this node drains; None before it does."""
        if not self._dispatcher.is_draining:
            return None
        return [one.address for one in self._dispatcher.all()], self._placement.talk_ids()

    def forget_all_but(self, running: Collection[str]) -> None:
        """Forget the talks that others may take now: all but these."""
        self._live_talks.forget_all_but(running)
