"""Nodes of a cluster in one process: a real PostgreSQL server, and a network in RAM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from roost.brains.profiles import ProfileRegistry
from roost.cluster.joining import Cluster
from roost.core.cluster.nodes import LeaseTimes
from roost.core.limits.limits import Limits
from roost.ports import Brain, Tool
from roost.runtime.cluster.membership import Membership
from roost.service import AgentService
from roost.transports.memory import MemoryNetwork, MemoryTransport
from roost.wiring import open_roost
from tests.conftest import QUICK, eventually
from tests.servers import fresh_store


@dataclass
class Nodes:
    """A store, a network, and the nodes that were started."""

    url: str
    network: MemoryNetwork = field(default_factory=MemoryNetwork)
    services: list[AgentService] = field(default_factory=list)

    def start(
        self,
        brains: Mapping[str, Brain],
        count: int = 1,
        *,
        times: LeaseTimes | None = None,
        limits: Limits = QUICK,
        tools: Sequence[Tool] = (),
    ) -> list[AgentService]:
        """Start nodes; return them when each knows all of them."""
        for _ in range(count):
            cluster = Cluster(
                lambda host, _: MemoryTransport(host, self.network),
                name=f"node {len(self.services) + 1}",
                times=times or LeaseTimes(),
            )
            node = open_roost(self.url, ProfileRegistry(brains), limits, tools=tools, cluster=cluster)
            self.services.append(AgentService(node))
        eventually(lambda: all(len(_membership(one).nodes) == len(self.services) for one in self.services))
        return self.services[-count:]

    def id_of(self, service: AgentService) -> str:
        return _membership(service).node


def _membership(service: AgentService) -> Membership:
    assert service.roost.membership is not None
    return service.roost.membership


@pytest.fixture
def nodes(postgres: str) -> Iterator[Nodes]:
    with fresh_store(postgres) as url:
        made = Nodes(url)
        try:
            yield made
        finally:
            for service in made.services:
                service.close()


def awake_agent(started: list[AgentService], agent: str, **config: Any) -> tuple[AgentService, list[AgentService]]:
    """Create an agent of ann and give it a task; return the node where it is awake then, and the others."""
    started[0].agents.create("ann", agent, **config)
    started[0].tasks.send("ann", agent, "hello")
    [home] = eventually(lambda: [one for one in started if one.roost.dispatcher.is_awake(f"ann/{agent}")])
    return home, [one for one in started if one is not home]
