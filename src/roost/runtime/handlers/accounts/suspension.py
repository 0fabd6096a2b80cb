"""Suspension: while an account is disabled, no agent, talk, schedule or webhook acts for its user.

The store hands over no work of such users. This stops what is running at the moment when an account is disabled.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from contextlib import suppress

from roost.errors import NotFound
from roost.runtime.cluster.mesh import Mesh
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.talks.talks import Talks
from roost.stores.sql.accounts import suspension

BATCH = 200
MOST = 1_000
"""Users per check."""


class Suspensions:
    """Stops what runs for a user. Unfinished work of agents stays in their inboxes, and is repeated later.

    In a cluster, each node stops the agents that are awake there: other nodes are notified.
    """

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher, talks: Talks, mesh: Mesh | None = None) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._talks = talks
        self._mesh = mesh
        self._last = ""
        """Last user of the last check."""
        if mesh is not None:
            mesh.handlers["suspended"] = self._stop_agents

    async def stop(self, user_id: str) -> None:
        """Stop the awake agents and the talks of a user."""
        if self._mesh is not None:
            self._mesh.tell_all("suspended", user_id)
        self._stop_agents(user_id)
        while found := await self._context.store.read(suspension.busy_talks, user_id, BATCH):
            for talk_id in found:
                with suppress(NotFound):
                    await self._talks.stop(user_id, talk_id)

    async def check(self) -> None:
        """Stop what runs here for disabled users; the notice of another node may have been lost."""
        running = self._running_talks()
        users = {*self._agents().values(), *running.values()}
        if not users:
            return
        for user_id in await self._context.store.read(suspension.disabled, self._next(users)):
            self._stop_agents(user_id)
            for talk_id in [talk_id for talk_id, owner in running.items() if owner == user_id]:
                with suppress(NotFound):
                    await self._talks.stop(user_id, talk_id)

    def _next(self, users: Collection[str]) -> list[str]:
        """Return up to `MOST` of the users, in the order of their names: those after the ones of the last check."""
        names = sorted(users)
        start = bisect_right(names, self._last)
        chosen = [*names[start:], *names[:start]][:MOST]
        self._last = chosen[-1]
        return chosen

    def _stop_agents(self, user_id: str) -> None:
        for address, owner in self._agents().items():
            if owner == user_id:
                self._dispatcher.stop_agent(address)

    def _agents(self) -> dict[str, str]:
        """Return the users of the agents that are awake here, by address."""
        return {one.address: one.address.rpartition("/")[0] for one in self._dispatcher.all()}

    def _running_talks(self) -> dict[str, str]:
        """Return the users of the talks that are answered here, by talk."""
        placement = self._dispatcher.placement
        lives = self._dispatcher.live_talks.in_use(placement.talk_ids())
        runs = {talk_id: placement.run_of(talk_id) for talk_id in lives}
        return {talk_id: lives[talk_id].owner for talk_id, run in runs.items() if run is not None and not run.fenced}
