"""Nodes of the cluster: list them, and have one leave. For admins and for the owner of the store."""

from __future__ import annotations

import builtins

from roost.core.cluster.nodes import Node
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import checks
from roost.errors import NotFound
from roost.runtime.context import RuntimeContext
from roost.stores.sql import nodes


class Nodes:
    """Nodes of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context

    async def list(self, user_id: str, *, limit: int = PAGE) -> builtins.list[Node]:
        """Return the nodes of the cluster, oldest first; none if the store belongs to one process."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        return (await self._context.store.read(nodes.listed))[:limit]

    async def drain(self, user_id: str, node_id: str) -> None:
        """Have a node finish its work and leave; the others take over the rest."""
        checks.name(user_id, "the user id")
        checks.name(node_id, "the node id")
        if not await self._context.store.write(nodes.drain, node_id):
            raise NotFound(f"there is no node {node_id!r:.80}: it has left, or it never joined")
