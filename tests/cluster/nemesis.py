"""Nemesis of a cluster: injects faults, one after the other, by a seed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import psycopg

from tests.cluster.ledger import Freeze
from tests.cluster.load import NAMES
from tests.cluster.network import REPLIES, REQUESTS, Link
from tests.cluster.processes import Cluster, NodeProcess
from tests.servers import PostgresServer

ALL = (
    "kill_a_node",
    "freeze_a_node",
    "kill_the_child",
    "restart_nats",
    "end_connections",
    "cut_off_from_postgres",
    "cut_off_from_nats",
    "restart_postgres",
)


class Nemesis:
    """Injects the named faults."""

    def __init__(self, made: Cluster, server: PostgresServer, seed: int) -> None:
        self._made = made
        self._server = server
        self._dice = random.Random(seed)
        self.fired: Counter[str] = Counter()
        self.freezes: list[Freeze] = []

    def run(
        self, faults: Sequence[str], pauses: tuple[float, float], seconds: float, is_enough: Callable[[], bool]
    ) -> None:
        """Inject faults for these seconds, until each was injected and it is enough."""
        until = time.monotonic() + seconds
        order: list[str] = []
        while time.monotonic() < until or len(self.fired) < len(faults) or not is_enough():
            order = order or self._dice.sample(faults, len(faults))
            fault = order.pop()
            getattr(self, fault)(self._made.nodes[self._dice.choice(NAMES)])
            self.fired[fault] += 1
            self._wait(*pauses)

    # --- processes -------------------------------------------------------------------------------

    def kill_a_node(self, node: NodeProcess) -> None:
        node.kill()
        self._wait(0.0, 2.0)
        self._made.start(node.name)

    def kill_the_child(self, node: NodeProcess) -> None:
        for pid in node.children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def freeze_a_node(self, node: NodeProcess) -> None:
        """Freeze the process, its child or both, at times for longer than the lease."""
        freeze = self._dice.choice((self._freeze_process, self._freeze_child, self._freeze_both))
        freeze(node, 0.5, 5.0)

    def freeze_the_process(self, node: NodeProcess) -> None:
        """Freeze it for longer than the lease, as the next ones do."""
        self._freeze_process(node, self._made.lease + 1, self._made.lease + 3)

    def freeze_the_child(self, node: NodeProcess) -> None:
        self._freeze_child(node, self._made.lease + 1, self._made.lease + 3)

    def freeze_both(self, node: NodeProcess) -> None:
        self._freeze_both(node, self._made.lease + 1, self._made.lease + 3)

    def _freeze_process(self, node: NodeProcess, *seconds: float) -> None:
        self._freeze([node.process.pid], *seconds)

    def _freeze_child(self, node: NodeProcess, *seconds: float) -> None:
        self._freeze(node.children(), *seconds)

    def _freeze_both(self, node: NodeProcess, *seconds: float) -> None:
        self._freeze([node.process.pid, *node.children()], *seconds)

    def _freeze(self, pids: Sequence[int], *seconds: float) -> None:
        start = _now()
        _send(signal.SIGSTOP, pids)
        self._wait(*seconds)
        _send(signal.SIGCONT, pids)
        self.freezes += [Freeze(pid, start, _now()) for pid in pids]

    # --- servers and network ---------------------------------------------------------------------

    def restart_nats(self, _: NodeProcess) -> None:
        self._made.nats.kill()
        self._wait(0.0, 2.0)
        self._made.nats.restart()

    def restart_postgres(self, _: NodeProcess) -> None:
        self._server.stop()
        self._wait(0.0, 4.0)
        self._server.start()

    def cut_off_from_postgres(self, node: NodeProcess) -> None:
        self._cut(self._made.links[node.name, "postgres"], 0.5, 5.0)

    def cut_off_from_nats(self, node: NodeProcess) -> None:
        self._cut(self._made.links[node.name, "nats"], 0.5, 5.0)

    def flap(self, node: NodeProcess) -> None:
        """Cut a node off from PostgreSQL several times, for a part of the lease."""
        for _ in range(3):
            self._cut(self._made.links[node.name, "postgres"], 0.5, 1.0)
            self._wait(0.5, 1.0)

    def _cut(self, link: Link, *seconds: float) -> None:
        link.cut(*self._dice.choice(((), (REQUESTS,), (REPLIES,))))
        self._wait(*seconds)
        link.heal()

    def end_connections(self, _: NodeProcess) -> None:
        """End half of all connections to the database, also between a commit and its reply."""
        with psycopg.connect(self._made.store, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name LIKE 'roost%' AND datname = current_database() AND pid % 2 = 0"
            )

    def _wait(self, shortest: float, longest: float) -> None:
        threading.Event().wait(self._dice.uniform(shortest, longest))


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _send(number: signal.Signals, pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
