"""Joins a cluster: the node's row in the store, its lease, and the transport to other nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version

from roost.core.cluster.nodes import LeaseTimes, NewNode
from roost.hosts.pending import drive
from roost.hosts.store_clock import StoreClock
from roost.ports import Brains, Clock, Host, Lease, Store, Transport
from roost.runtime.cluster.membership import Membership, cluster_id, join
from roost.runtime.cluster.mesh import Mesh
from roost.runtime.cluster.store_lease import StoreLease
from roost.stores import migrations


@dataclass(frozen=True, slots=True)
class Cluster:
    """Options with which a node joins a cluster."""

    transport: Callable[[Host, str], Transport]
    """Makes the transport on a host, for the cluster with an id."""
    name: str = ""
    url: str = ""
    times: LeaseTimes = field(default_factory=LeaseTimes)
    lease: Callable[[str, LeaseTimes, StoreClock], Lease] | None = None
    """By default the process renews it itself."""

    def join(self, host: Host, store: Store, node: str, brains: Brains) -> Membership:
        """Add this process to the nodes of its store."""
        profiles = tuple(sorted(profile.name for profile in brains.names()))
        joined = NewNode(node, self.name or node, self.url, version("roost"), profiles, migrations.known())
        sent = host.clock.monotonic()
        now = drive(join(store, joined, self.times.first))
        _follow(host.clock, now, sent)
        transport = self.transport(host, drive(cluster_id(store, host.new_id("cluster"))))
        return Membership(host, store, Mesh(host, transport, node), self._lease(host, store, node), joined)

    def _lease(self, host: Host, store: Store, node: str) -> Lease:
        if self.lease is None or not isinstance(host.clock, StoreClock):
            return StoreLease(host, store, node, self.times)
        return self.lease(node, self.times, host.clock)


def _follow(clock: Clock, now: float, sent: float) -> None:
    if isinstance(clock, StoreClock):
        clock.adjust(now, sent, clock.monotonic())
