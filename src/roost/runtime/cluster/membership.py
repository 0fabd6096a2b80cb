"""Membership: this node and the others, its lease, and the work of nodes that have died.

A node that cannot renew its lease stops its work before the lease ends, by a clock of its own. The others then evict
it: its work belongs to nobody, and nothing that it still writes is accepted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Protocol

from roost.core.cluster.nodes import NewNode, Node, NodeLoad, NodeState, place
from roost.errors import Unavailable
from roost.ports import Host, Lease, Loop, Store
from roost.runtime.cluster.mesh import Mesh
from roost.stores.sql import nodes as nodes_sql

log = logging.getLogger("roost.cluster")

LOOK = 0.4
"""Seconds between two looks at the other nodes; up to half as long again, by chance."""
WATCH = 0.5
"""Seconds between two looks at the lease, if it does not end sooner: timers do not run while a machine is suspended."""
PIECE = 5_000
"""Agents that are taken from a dead node at once."""
RELEASE = 0.1
"""Seconds between two searches of a node that drains for work that others can do."""
LEFT_BEHIND = 10.0
"""Seconds between two searches for work of nodes that are gone."""


class Ending(StrEnum):
    """Reason for which a node has to leave."""

    DRAINED = "drained"
    """It was asked to: it finishes its work first."""
    LOST = "lost"
    """It has lost its lease: it must start anew."""


class NodeWork(Protocol):
    """Agents and talks of this node."""

    def load(self) -> NodeLoad: ...

    def stop(self) -> None:
        """Stop everything at once: the lease is lost. Called once."""

    def take_free(self) -> None:
        """Look for free work: other nodes may have left some."""

    def held(self) -> tuple[list[str], list[str]] | None:
        """Return the agents and talks that still run here while this node drains; None if it does not drain yet."""

    def forget_all_but(self, running: Collection[str]) -> None:
        """Forget all talks but these: others may take them."""


class Membership:
    """Has a loop of its own, which runs no brains."""

    def __init__(self, host: Host, store: Store, mesh: Mesh, lease: Lease, joined: NewNode) -> None:
        self._host = host
        self._store = store
        self._lease = lease
        self.mesh = mesh
        self.joined = joined
        self.node = joined.node_id
        self.nodes: tuple[Node, ...] = ()
        """All nodes that have a lease, or had one a moment ago."""
        self._ended: Callable[[Ending], None] = lambda _: None
        self.is_lost = False
        self.draining = False
        self._closing = False
        self._loop: Loop | None = None
        self._bell: asyncio.Event | None = None
        self._searched = 0.0

    def start(self, work: NodeWork) -> None:
        self.mesh.handlers |= {"evicted": partial(self._evicted, work), "freed": work.take_free}
        self._loop = self._host.start_loop("roost-cluster", partial(self._main, work), lambda *_: None)

    def listen(self, ended: Callable[[Ending], None]) -> None:
        """Have `ended` called once, when this node has to leave the cluster."""
        self._ended = ended

    async def drain(self) -> None:
        """Get no more work from others; they take what is free."""
        self.draining = True
        with suppress(Unavailable):  # closing continues
            await self._store.write(nodes_sql.drain, self.node)
        if self._loop is not None:
            self._loop.call(self._ring)

    async def close(self) -> None:
        """Leave the cluster: all work of this node is free."""
        self._closing = True
        if self._loop is not None:
            self._loop.call(self._ring)
            if await self._loop.over.within(5.0):
                self._loop.join()
        await self._lease.close()
        if not self.is_lost:
            with suppress(Unavailable):  # then the lease ends by itself
                await self._store.write(nodes_sql.leave, self.node)
                await self._disown(self.node)
            self.mesh.tell_all("evicted", self.node)
        await self.mesh.close()

    @property
    def others(self) -> list[Node]:
        return [node for node in self.nodes if node.node_id != self.node]

    @property
    def count(self) -> int:
        """Return the number of nodes that may serve requests: also those that drain, or died a moment ago."""
        return max(1, len(self.nodes))

    def is_alive(self, node: str) -> bool:
        return any(one.node_id == node for one in self.nodes)

    def place(self, key: str, profile: str = "") -> str:
        """Return the node that takes a free agent; this one if no other can."""
        return place(self.nodes, key, profile) or self.node

    def now(self) -> float:
        return self._host.clock.now()

    def new_change(self) -> str:
        """Return an id for a change; later changes have greater ones."""
        return self._host.new_id("change")

    @property
    def is_first(self) -> bool:
        """Return whether this node does the housekeeping of the cluster: it is the oldest one."""
        up = [node.node_id for node in self.nodes if node.state is NodeState.UP]
        return not up or up[0] == self.node

    # --- on the loop -----------------------------------------------------------------------------

    async def _main(self, work: NodeWork, loop: Loop) -> None:
        self._bell = asyncio.Event()
        self.mesh.start(loop)
        self._lease.start(work.load)
        watch = asyncio.ensure_future(self._watch(work))
        await self._repeat(work)
        watch.cancel()  # closing does not wait for it

    async def _repeat(self, work: NodeWork) -> None:
        while not self._closing and not self.is_lost:
            try:
                await self._look(work)
            except Unavailable as error:
                log.warning("store unavailable, other nodes are not watched: %s", error)
            except Exception:  # nothing else takes over the work of dead nodes
                log.exception("watch of other nodes failed; continuing")
            await self._pause(RELEASE if self.draining else LOOK * (1 + self._host.jitter() / 2))

    async def _watch(self, work: NodeWork) -> None:
        """Stop all work when the lease could not be renewed. Nothing here waits for the store."""
        while not self._closing and not self.is_lost:
            remaining = self._lease.remaining()
            if remaining <= 0:
                self.is_lost = True
                log.critical("lease could not be renewed; stopping all work of this node", extra={"node": self.node})
                work.stop()
                self._ended(Ending.LOST)
                return
            await asyncio.sleep(min(WATCH, max(0.01, remaining)))

    async def _look(self, work: NodeWork) -> None:
        """Find nodes that have joined, left or died; take the work of dead ones."""
        before = {node.node_id for node in self.nodes}
        self.nodes = tuple(await self._store.read(nodes_sql.listed))
        found = {node.node_id for node in self.nodes}
        own = next((node for node in self.nodes if node.node_id == self.node), None)
        if own is not None and own.state is NodeState.DRAINING and not self.draining:
            self.draining = True
            log.warning("this node was asked to leave the cluster", extra={"node": self.node})
            self._ended(Ending.DRAINED)
        for node in self.others:
            if node.lease.timestamp() <= self._host.clock.now():
                await self._evict(node.node_id, work)
        now = self._host.clock.monotonic()
        if now - self._searched > LEFT_BEHIND:
            self._searched = now
            for gone in await self._store.read(nodes_sql.left_behind):
                await self._disown(gone)
        if before - found:
            work.take_free()
        if self.draining:
            await self._release(work)

    async def _evict(self, node: str, work: NodeWork) -> None:
        if not await self._store.write(nodes_sql.evict, node):
            return  # another node does it
        count = await self._disown(node)
        log.warning("node %s has died; its work is free: %d agents", node, count)
        self.nodes = tuple(one for one in self.nodes if one.node_id != node)
        self.mesh.tell_all("evicted", node)
        work.take_free()

    async def _release(self, work: NodeWork) -> None:
        """Free what has ended while this node drains: others do what comes next."""
        held = work.held()
        freed: int = 0 if held is None else await self._store.write(nodes_sql.release, self.node, *held)
        if held is not None and freed:
            _, running = held
            work.forget_all_but(running)
            self.mesh.tell_all("freed")

    async def _disown(self, node: str) -> int:
        count = 0
        while True:
            count += len(await self._store.write(nodes_sql.disown, node, PIECE))
            if not await self._store.read(nodes_sql.owned, node):
                return count

    def _evicted(self, work: NodeWork, node: str) -> None:
        """Handle the notice that a node is gone, or has nothing left."""
        self.nodes = tuple(one for one in self.nodes if one.node_id != node)
        if self._loop is not None:
            self._loop.call(self._ring)
        work.take_free()

    async def _pause(self, seconds: float) -> None:
        assert self._bell is not None
        self._bell.clear()
        timer = asyncio.get_running_loop().call_later(seconds, self._bell.set)
        try:
            await self._bell.wait()
        finally:
            timer.cancel()

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell.set()


async def join(store: Store, joined: NewNode, seconds: float) -> float:
    """Add this node to the cluster; return the time of the store."""
    return await store.write(nodes_sql.join, joined, seconds)


async def cluster_id(store: Store, new_id: str) -> str:
    """Return the id that all nodes of this store share; `new_id` if they have none yet."""
    return await store.write(nodes_sql.cluster_id, new_id)
