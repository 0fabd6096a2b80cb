"""The lease of a node and the process that renews it."""

from __future__ import annotations

import psycopg
import pytest

from roost.brains.profiles import ProfileRegistry
from roost.cluster.child_lease import ChildLease
from roost.cluster.joining import Cluster
from roost.core.cluster.nodes import LeaseTimes
from roost.service import AgentService
from roost.transports.memory import MemoryNetwork, MemoryTransport
from roost.wiring import open_roost
from tests.conftest import QUICK, eventually
from tests.runtime.cluster.brains import echo
from tests.servers import fresh_store

pytestmark = pytest.mark.postgres
TIMES = LeaseTimes(length=2.0, renewal=0.5, margin=0.5, start=60.0)


def test_the_first_lease_lasts_until_the_process_that_renews_it_has_started(postgres: str) -> None:
    leases: list[ChildLease] = []

    with fresh_store(postgres) as url:

        def stored() -> float:
            with psycopg.connect(url, autocommit=True) as connection:
                row = connection.execute("SELECT lease - roost_now() FROM nodes").fetchone()
            return float(row[0]) if row else 0.0

        def lease(node: str, times: LeaseTimes, clock: object) -> ChildLease:
            assert stored() > times.length + 30, "before the child exists"
            leases.append(ChildLease(url, node, times, clock))  # type: ignore[arg-type]
            assert leases[0].remaining() > times.length + 30
            return leases[0]

        cluster = Cluster(lambda host, _: MemoryTransport(host, MemoryNetwork()), times=TIMES, lease=lease)
        with AgentService(open_roost(url, ProfileRegistry({"echo": echo}), QUICK, cluster=cluster)) as service:
            eventually(lambda: leases[0].remaining() <= TIMES.length, 60)
            assert stored() <= TIMES.length
            assert [str(node.state) for node in service.nodes.list("ann")] == ["up"]
