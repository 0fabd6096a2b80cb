"""A simulated node: one Roost with a machine of its own, which can be frozen, cut off, killed and drained."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from roost.brains.profiles import ProfileRegistry
from roost.core.cluster.nodes import LeaseTimes, NewNode
from roost.core.limits.limits import Limits
from roost.errors import Unavailable
from roost.hosts.pending import HostPending
from roost.hosts.simulated_machines import Machine
from roost.ports import Brain, Loop, Tool
from roost.runtime.cluster.membership import Ending, Membership
from roost.runtime.cluster.mesh import Mesh
from roost.runtime.cluster.store_lease import StoreLease
from roost.runtime.roost import Roost
from roost.service import AsyncAgentService
from roost.stores import migrations
from roost.stores.sql import nodes as nodes_sql
from roost.testing.cluster.store import NodeDatabase, NodeEngine
from roost.transports.memory import MemoryNetwork, MemoryTransport

Call = Callable[[AsyncAgentService], Coroutine[Any, Any, Any]]


@dataclass(frozen=True)
class NodeParts:
    """Parts from which each life of a node is made."""

    brains: Mapping[str, Brain]
    limits: Limits
    tools: Sequence[Tool]
    lease: LeaseTimes
    network: MemoryNetwork


class SimulatedNode:
    """One life of a node. Calls of clients run on a loop of its machine."""

    def __init__(self, name: str, machine: Machine, database: NodeDatabase, parts: NodeParts) -> None:
        self.name = name
        self.machine = machine
        self.database = database
        self.node_id = database.node
        self.ended: Callable[[Ending], None] = lambda _: None
        """Called when the node has to leave: its lease is lost, or it was asked to."""
        self.is_leaving = False
        self._network = parts.network
        self._calls: list[HostPending[Any]] = []
        self._tasks: dict[asyncio.Task[None], None] = {}
        host = machine.host
        store = NodeEngine(host, database, queued=parts.limits.queued_writes)
        profiles = ProfileRegistry(parts.brains)
        joined = _about(self.node_id, name, profiles)
        database.transact(nodes_sql.join, joined, parts.lease.length)
        mesh = Mesh(host, MemoryTransport(host, parts.network), self.node_id)
        lease = StoreLease(host, store, self.node_id, parts.lease)
        self.membership = Membership(host, store, mesh, lease, joined)
        self.membership.listen(lambda ending: self.ended(ending))
        roost = Roost(host, store, profiles, parts.limits, tools=parts.tools, membership=self.membership)
        self.service = AsyncAgentService(roost)
        self._api = host.start_loop("roost-api", _serve, lambda *_: None)

    @property
    def is_frozen(self) -> bool:
        return not self.machine.can_step()

    def call(self, call: Call) -> HostPending[Any]:
        """Start a call on this node; its result fails if the node dies."""
        result: HostPending[Any] = HostPending()
        self._calls.append(result)
        self._api.call(self._start, call, result)
        return result

    def _start(self, call: Call, result: HostPending[Any]) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(call, result))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _answer(self, call: Call, result: HostPending[Any]) -> None:
        try:
            result.set(await call(self.service))
        except Exception as error:  # raised to the client
            result.fail(error)
        finally:
            self._calls.remove(result)

    def leave(self) -> HostPending[Any]:
        """Close the node, as at the end of its process."""
        self.is_leaving = True
        return self.call(lambda service: service.roost.close())

    def die(self) -> None:
        """End what belongs to this life outside of its machine."""
        self._network.nodes.pop(self.node_id, None)
        self._network.cut.discard(self.node_id)
        self.database.cut_power()
        for result in list(self._calls):
            result.fail(Unavailable("the connection was lost: check, or retry with the same key"))


def _about(node: str, name: str, profiles: ProfileRegistry) -> NewNode:
    names = tuple(sorted(one.name for one in profiles.names()))
    return NewNode(node, name, "", version("roost"), names, migrations.known())


async def _serve(loop: Loop) -> None:
    await asyncio.Event().wait()
