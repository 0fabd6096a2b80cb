"""Simulation of a cluster: nodes on one loop, one store and one network, with faults and virtual time from one seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from roost.core.cluster.nodes import LeaseTimes
from roost.core.limits.limits import Limits
from roost.errors import Unavailable
from roost.hosts.simulated import SimulatedHost, Stuck
from roost.hosts.simulated_machines import Machine, SimulatedMachines
from roost.ports import Brain, Tool
from roost.runtime.cluster.membership import Ending
from roost.service import AsyncAgentService
from roost.stores.sql import nodes as nodes_sql
from roost.testing.brains import Given, watched
from roost.testing.clock import Clock
from roost.testing.cluster.client import client
from roost.testing.cluster.faults import MOST_ENDINGS, ClusterChaos, ClusterFaults
from roost.testing.cluster.node import Call, NodeParts, SimulatedNode
from roost.testing.cluster.store import NodeDatabase
from roost.testing.faulty_sqlite import FaultySqlite
from roost.testing.simulation import Simulation, Story
from roost.transports.memory import MemoryNetwork

T = TypeVar("T")

SHORT = LeaseTimes(length=3.0, renewal=1.0, margin=0.5)
"""Lease of a simulated node: a shorter one needs fewer steps."""
LEFT_BEHIND = """
SELECT owned, node FROM (SELECT address AS owned, node FROM agents UNION SELECT talk_id, node FROM talks) AS rows
WHERE node <> '' AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.node_id = rows.node AND n.state <> 'gone')
"""
PATIENCE = 15.0
"""Seconds for which a client waits for an answer of a node."""


@dataclass
class Execution:
    """Time for which a brain ran on a node."""

    life: SimulatedNode
    address: str
    """Agent such as `ann/d`, or the id of a talk."""
    start: float
    end: float | None = None


class ClusterSimulation(Simulation):
    """Several nodes on one store. The same seed gives the same run.

    with ClusterSimulation(seed=7, nodes=3, faults=ClusterFaults.all()) as simulation:
        simulation.play(story, {"parrot": parrot})

    Each call of a `story` goes to a node that the seed chooses. It raises Unavailable if the node dies or does not
    answer, so what the story sends has keys, and calls are repeated with `insist`.
    """

    faults: ClusterFaults

    def __init__(
        self,
        folder: Path | None = None,
        seed: int = 0,
        *,
        nodes: int = 3,
        faults: ClusterFaults | None = None,
        clock: Clock | None = None,
        lease: LeaseTimes = SHORT,
    ) -> None:
        super().__init__(folder, seed, faults=faults or ClusterFaults(), clock=clock)
        self.count = nodes
        self.lease = lease
        self.nodes: dict[str, SimulatedNode] = {}
        """Nodes that are running, by name."""
        self.lives: list[SimulatedNode] = []
        """All nodes that were ever started."""
        self.executions: list[Execution] = []
        self._chaos: ClusterChaos = ClusterChaos(self.faults, seed, self.clock)
        self._store_cuts: dict[str, float] = {}
        self._network = MemoryNetwork(self._chaos.carry)

    def __repr__(self) -> str:
        return f"ClusterSimulation(seed={self.seed!r}, nodes={self.count!r}, faults={self.faults!r})"

    # --- running ---------------------------------------------------------------------------------

    def start(
        self, brains: Mapping[str, Brain], limits: Limits | None = None, tools: Sequence[Tool] = ()
    ) -> AsyncAgentService:
        """Start all nodes; return the service that calls one of them at a time."""
        self.machines = self.host = SimulatedMachines(self._seed_of_life(), clock=self.clock)
        self.machines.crashed = self._crashed
        self.machines.moved = self._chaos.moved
        self._chaos.strike, self._chaos.later = self._strike, self.machines.later
        self.database = FaultySqlite(self.path, self.clock.now, lambda: None, lambda: len(self.turns))
        self._parts = NodeParts(brains, limits or Limits(), tools, self.lease, self._network)
        for number in range(1, self.count + 1):
            self._start_node(f"node {number}")
        self.service = client(self._send)
        return self.service

    def play(
        self, story: Story[T], brains: Mapping[str, Brain], limits: Limits | None = None, tools: Sequence[Tool] = ()
    ) -> T:
        """Run the story on all nodes until it has ended; then without faults, until no work is left."""
        result = self.run(story(self.start(brains, limits, tools)))
        self.rest()
        return result

    def rest(self, within: float = 600.0) -> None:
        """Disable faults, and run until no work is left, and no agent belongs to a node that is gone."""
        self._store_cuts.clear()
        self._network.cut.clear()
        super().rest(within)
        latest = self.clock.monotonic() + within
        while left := self.rows(LEFT_BEHIND):
            if self.clock.monotonic() > latest:
                raise self.explain(Stuck(f"these belong to nodes that are gone after {within:g} s: {left[:3]}"))
            self.advance(1.0)

    @property
    def boundaries(self) -> Counter[str]:
        """Return how often a node crashed at each boundary of a commit, such as `before settle`."""
        return self._chaos.boundaries

    async def _send(self, call: Call) -> Any:
        if not self.nodes:
            raise Unavailable("no node is running: try again")
        node = self._chaos.dice.choice(list(self.nodes.values()))
        answer = node.call(call)
        if not await answer.within(PATIENCE):
            raise Unavailable(f"{node.name} does not answer: check, or retry with the same key")
        return await answer

    # --- nodes -----------------------------------------------------------------------------------

    def _start_node(self, name: str) -> None:
        if self._is_store_cut(name):  # the process ends with an error, and is started again
            self._restart(name)
            return
        assert self.database is not None
        host = SimulatedHost(self._chaos.dice.getrandbits(32), clock=self.clock)
        ends_backends = self.seed % 2 == 0
        database = NodeDatabase(self.database, host.new_id("node"), self._chaos, ends_backends=ends_backends)
        database.is_cut = lambda: self._is_store_cut(name)
        machine = self.machines.add(host)
        lives: list[SimulatedNode] = []
        node = SimulatedNode(name, machine, database, self._observed(lives))
        host.tick = self._chaos.tick
        lives.append(node)
        node.ended = lambda ending: self._ended(node, ending)
        self.nodes[name] = node
        self.lives.append(node)

    def _is_store_cut(self, name: str) -> bool:
        return self._store_cuts.get(name, 0.0) > self.clock.monotonic()

    def _observed(self, lives: list[SimulatedNode]) -> NodeParts:
        """Return the parts of a node, with brains whose executions are recorded."""
        running: dict[int, Execution] = {}

        def begun(given: Given) -> None:
            self.turns.append(given)
            address = f"{given.user_id}/{given.agent_id}" if given.agent_id else given.talk_id
            running[id(given)] = execution = Execution(lives[0], address, self.clock.monotonic())
            self.executions.append(execution)

        def over(given: Given) -> None:
            running.pop(id(given)).end = self.clock.monotonic()

        brains = {name: watched(brain, begun, over) for name, brain in self._parts.brains.items()}
        parts = self._parts
        return NodeParts(brains, parts.limits, parts.tools, parts.lease, parts.network)

    def kill(self, name: str, *, notices: bool = True) -> None:
        """Kill a node. `notices`: its child process gives up the lease at once, as long as it lives itself."""
        node = self.nodes.pop(name)
        now = self.clock.monotonic()
        for execution in self.executions:
            if execution.life is node and execution.end is None:
                execution.end = now
        node.die()
        self.machines.remove(node.machine)
        if notices:
            node.database.transact(nodes_sql.give_up, node.node_id)

    def crash_node(self, name: str) -> None:
        """Kill a node, with or without notice; it starts again later."""
        self.kill(name, notices=self._chaos.dice.random() < 0.5)
        self._restart(name)

    def _crashed(self, machine: Machine) -> None:
        self.crash_node(next(one.name for one in self.nodes.values() if one.machine is machine))

    def _restart(self, name: str) -> None:
        self.machines.later(self._chaos.dice.uniform(0.1, 3.0), partial(self._start_node, name))

    def _ended(self, node: SimulatedNode, ending: Ending) -> None:
        """Close a node that has lost its lease or was asked to leave, and start it again."""
        if not node.is_leaving:
            left = node.leave()
            left.call_when_done(partial(self._left, node))

    def _left(self, node: SimulatedNode) -> None:
        """The process has ended; the step that has called this is the last one of it."""
        self.machines.later(0.0, partial(self._replace, node))

    def _replace(self, node: SimulatedNode) -> None:
        if self.nodes.get(node.name) is node:
            self.kill(node.name, notices=False)
            self._restart(node.name)

    # --- faults ----------------------------------------------------------------------------------

    def _strike(self, fault: str) -> None:
        if not self.nodes:
            return
        dice = self._chaos.dice
        node = dice.choice(list(self.nodes.values()))
        if fault in ("node_killed", "node_drained"):
            if self._chaos.endings >= MOST_ENDINGS:
                return
            self._chaos.endings += 1
        match fault:
            case "node_killed":
                self.crash_node(node.name)
            case "node_drained":
                self.drain(node.name)
            case "node_frozen":
                node.machine.freeze(dice.uniform(0.1, 2 * self.lease.length))
            case "network_cut":
                self._network.cut.add(node.node_id)
                self.machines.later(dice.uniform(0.1, 5.0), partial(self._network.cut.discard, node.node_id))
            case "store_cut":
                self._store_cuts[node.name] = self.clock.monotonic() + dice.uniform(0.1, 2 * self.lease.length)

    def drain(self, name: str) -> None:
        """Ask a node to leave; it starts again when it has left."""
        self._ended(self.nodes[name], Ending.DRAINED)

    def crash(self) -> None:
        """Cut the power of all nodes and of the store."""
        for name in list(self.nodes):
            self.kill(name, notices=False)
        super().crash()
