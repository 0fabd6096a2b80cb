"""In-memory network for protocol tests, which loses, duplicates, delays, reorders and partitions by a seed."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from roost.testing.clock import Clock

P = TypeVar("P", bound=Hashable)
M = TypeVar("M")


class Network(Generic[P, M]):
    """Network between parties. The same seed and the same calls give exactly the same deliveries.

    network = Network(seed=1, lose=0.1)
    network.join("ann", lambda sender, message: ...)     # may send
    network.send("bob", "ann", "hello")
    network.run()

    Messages between two parties arrive in order unless `reorder` or `double` says otherwise.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        lose: float = 0.0,
        double: float = 0.0,
        delay: tuple[float, float] = (0.0, 0.01),
        reorder: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        self.lose = lose
        self.double = double
        self.delay = delay
        self.reorder = reorder
        self.clock = clock or Clock()
        self.sent = self.lost = self.doubled = self.arrived = 0
        self._dice = random.Random(f"network {seed}")
        self._parties: dict[P, Callable[[P, M], object]] = {}
        self._underway: list[tuple[float, int, P, P, M]] = []
        self._number = 0
        self._latest: dict[tuple[P, P], float] = {}
        self._cut: set[tuple[P, P]] = set()

    def join(self, party: P, hear: Callable[[P, M], object]) -> None:
        """Register a party and its receiver. A party that joins again replaces its receiver."""
        self._parties[party] = hear

    def leave(self, party: P) -> None:
        """Remove a party; messages in transit to it are lost."""
        self._parties.pop(party, None)

    def send(self, sender: P, to: P, message: M) -> None:
        self.sent += 1
        self._carry(sender, to, message)
        if self._dice.random() < self.double:
            self.doubled += 1
            self._carry(sender, to, message, again=True)

    def broadcast(self, sender: P, message: M) -> None:
        """Send to all other parties, in the order in which they joined."""
        for party in self._parties:
            if party != sender:
                self.send(sender, party, message)

    # --- cutting ---------------------------------------------------------------------------------

    def cut(self, first: P, second: P, *, both_ways: bool = True) -> None:
        """Partition two parties. Messages in transit are lost on arrival, unless the partition is healed before."""
        self._cut.add((first, second))
        if both_ways:
            self._cut.add((second, first))

    def isolate(self, party: P) -> None:
        for second in self._parties:
            if second != party:
                self.cut(party, second)

    def heal(self, first: P | None = None, second: P | None = None) -> None:
        """Heal all partitions, or those of one party, or the one between two."""
        parties = {party for party in (first, second) if party is not None}
        self._cut = {cut for cut in self._cut if not parties <= set(cut)}

    def is_cut(self, sender: P, to: P) -> bool:
        return (sender, to) in self._cut

    # --- delivering ------------------------------------------------------------------------------

    @property
    def underway(self) -> int:
        return len(self._underway)

    def step(self) -> bool:
        """Deliver the next message, if there is one, and advance the time to its arrival."""
        if not self._underway:
            return False
        due, _, sender, to, message = heapq.heappop(self._underway)
        self.clock.elapsed = max(self.clock.elapsed, due)
        hear = self._parties.get(to)
        if hear is None or self.is_cut(sender, to):
            self.lost += 1
        else:
            self.arrived += 1
            hear(sender, message)
        return True

    def run(self, seconds: float | None = None, *, most: int = 1_000_000) -> None:
        """Deliver until nothing is in transit, or everything that arrives within `seconds`."""
        until = None if seconds is None else self.clock.monotonic() + seconds
        for _ in range(most):
            if not self._underway or (until is not None and self._underway[0][0] > until):
                break
            self.step()
        else:
            raise AssertionError(f"{most:,} messages, and more in transit: the parties are in an endless loop")
        if until is not None:
            self.clock.elapsed = max(self.clock.elapsed, until)

    def _carry(self, sender: P, to: P, message: M, *, again: bool = False) -> None:
        if self._dice.random() < self.lose:
            self.lost += 1
            return
        due = self.clock.monotonic() + self._dice.uniform(*self.delay)
        if again or self._dice.random() < self.reorder:
            due += self._dice.uniform(0.0, max(self.delay[1], 0.001) * 10)
        else:
            due = self._latest[sender, to] = max(due, self._latest.get((sender, to), 0.0))
        self._number += 1
        heapq.heappush(self._underway, (due, self._number, sender, to, message))
