"""Faults of a simulated cluster: their chances, and the source that injects them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from roost.hosts.simulated import Crash
from roost.hosts.virtual_time import VirtualClock
from roost.testing.faults import Chaos, Faults

MOST_ENDINGS = 6
"""Maximum number of nodes that end, so that a simulation ends."""
LATEST = 1.5
"""Maximum delay of a message in seconds."""
FREQUENT = frozenset({"renew", "announce", "write"})
"""Operations that are committed so often that a crash there is rare."""
SELDOM = frozenset({"evict", "disown", "drain", "release", "leave"})
"""Operations that are committed so seldom that a crash there is likely."""


@dataclass(frozen=True, repr=False, kw_only=True)
class ClusterFaults(Faults):
    """Chances of the faults of a cluster, in addition to those of one process. `crash` ends one node."""

    message_lost: float = 0.0
    """A message between nodes is lost."""
    message_doubled: float = 0.0
    message_delayed: float = 0.0
    """A message arrives late, and so in another order."""
    commit_crash: float = 0.0
    """A node crashes just before or just after a commit."""
    node_killed: float = 0.0
    """A node is killed; rate per second. So are the next ones."""
    node_frozen: float = 0.0
    """A whole node does nothing for a while, at times for longer than its lease."""
    node_drained: float = 0.0
    """A node is asked to leave, and starts again."""
    network_cut: float = 0.0
    """A node is cut off from the others for a while."""
    store_cut: float = 0.0
    """A node is cut off from the store for a while."""

    @classmethod
    def all(cls) -> ClusterFaults:
        return cls(**_USUAL)

    @classmethod
    def some(cls, seed: int) -> ClusterFaults:
        dice = random.Random(f"which faults of a cluster {seed}")
        return cls(**{name: chance for name, chance in _USUAL.items() if dice.random() < 0.5})

    def __repr__(self) -> str:
        return f"Cluster{super().__repr__()}"


_USUAL = {
    "message_lost": 0.2,
    "message_doubled": 0.1,
    "message_delayed": 0.2,
    "commit_failed": 0.02,
    "commit_unknown": 0.02,
    "commit_crash": 0.02,
    "crash": 0.0005,
    "node_killed": 0.3,
    "node_frozen": 0.3,
    "node_drained": 0.3,
    "network_cut": 0.3,
    "store_cut": 0.3,
}
RATES = ("node_killed", "node_frozen", "node_drained", "network_cut", "store_cut")


class ClusterChaos(Chaos):
    """Source of faults for a whole simulated cluster."""

    def __init__(self, faults: ClusterFaults, seed: int, clock: VirtualClock) -> None:
        super().__init__(faults, seed, clock)
        self.dice = random.Random(f"nodes {seed}")
        self.endings = 0
        """Nodes that were ended by a fault."""
        self.boundaries: Counter[str] = Counter()
        """Crashes by moment and operation, such as `before settle`."""
        self.strike: Callable[[str], object] = bool
        """Called with the name of a fault that a node has to suffer now."""
        self.later: Callable[[float, Callable[[], object]], object] = lambda _, act: act()
        self._times = {name: self._next(name) for name in RATES}

    def carry(self, receive: Callable[[bytes], None], message: bytes) -> None:
        """Carry a message between nodes: once, twice, later or not at all."""
        if self._happens("message_lost"):
            return
        for _ in range(1 + self._happens("message_doubled")):
            if self._happens("message_delayed"):
                self.later(self.dice.uniform(0.0, LATEST), partial(receive, message))
            else:
                receive(message)

    def commit_crash(self, moment: str, operations: Collection[str]) -> None:
        chance = self._chances["commit_crash"] / 2
        if not SELDOM.isdisjoint(operations):
            chance *= 15
        elif FREQUENT.issuperset(operations):
            chance /= 30
        if chance and self.endings < MOST_ENDINGS and self.dice.random() < chance:
            self.happened["commit_crash"] += 1
            self.endings += 1
            self.boundaries.update(f"{moment} {name}" for name in sorted(operations))
            raise Crash

    def tick(self) -> None:
        """Crash the node that takes this step, if its time has come."""
        if self._crash_in is None or self.endings >= MOST_ENDINGS:
            return
        self._crash_in -= 1
        if self._crash_in <= 0:
            self.happened["crash"] += 1
            self.endings += 1
            self._crash_in = self._next("crash")
            raise Crash

    def moved(self) -> None:
        """Bring about the faults whose time has come."""
        self._moved()

    def _bring_about(self, name: str) -> None:
        self.strike(name)
