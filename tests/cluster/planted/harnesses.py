"""Harnesses that find planted bugs: seeds of the simulation, and tests that are called as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from roost.hosts.threads import ThreadHost
from roost.stores.engine import Engine
from roost.testing import ClusterFaults
from roost.wiring import database
from tests.contracts.conftest import Driven
from tests.contracts.interleaving import Interleaving
from tests.contracts.sql import test_fences
from tests.contracts.sql.test_fences import OF_AGENTS, OF_TALKS, TAKEOVERS_OF_AGENTS, TAKEOVERS_OF_TALKS
from tests.runtime.cluster.conftest import Nodes
from tests.servers import fresh_store, new_store
from tests.testing.cluster_team import simulate

SEEDS = range(60)


@dataclass
class Bench:
    """Servers for the harnesses."""

    folder: Path
    postgres: Callable[[], str]
    """Returns the URL of a server, which is started when it is needed first."""
    seeds: Sequence[int] = SEEDS
    last_seed: int = 0

    @contextmanager
    def store(self) -> Iterator[Driven]:
        path = self.folder / "harness.db"
        path.unlink(missing_ok=True)
        host = ThreadHost()
        made = Driven(Engine(host, database(new_store(path), host.clock.now), queued=10_000))
        try:
            yield made
        finally:
            made.engine.close()

    @contextmanager
    def sides(self) -> Iterator[Interleaving]:
        with fresh_store(self.postgres()) as url:
            made = Interleaving(url)
            try:
                yield made
            finally:
                made.close()

    @contextmanager
    def nodes(self) -> Iterator[Nodes]:
        with fresh_store(self.postgres()) as url:
            made = Nodes(url)
            try:
                yield made
            finally:
                for service in made.services:
                    service.close()


Harness = Callable[[Bench], object]


def on_a_store(test: Callable[[Driven], object]) -> Harness:
    """Call a test with a SQLite store."""

    def run(bench: Bench) -> None:
        with bench.store() as store:
            test(store)

    return run


def on_two_connections(test: Callable[..., object], *args: Any) -> Harness:
    """Call a test with two connections to PostgreSQL, which it drives in all orders."""

    def run(bench: Bench) -> None:
        with bench.sides() as sides:
            test(sides, *args)

    return run


def fenced(write: str, takeover: str) -> Harness:
    """Drive a write of a run and the takeover of its agent, or of its talk, in all orders."""
    of, name = write.split()
    writes, takeovers = (OF_AGENTS, TAKEOVERS_OF_AGENTS) if of == "agent" else (OF_TALKS, TAKEOVERS_OF_TALKS)
    test = test_fences.test_no_write_of_an_old_epoch_is_committed_after_the_takeover
    return on_two_connections(test, writes[name], takeovers[takeover])


def in_one_process(test: Callable[..., object], *args: Any, patched: bool = False) -> Harness:
    """Call a test with nodes in one process, on PostgreSQL; if `patched`, also with a `MonkeyPatch`."""

    def run(bench: Bench) -> None:
        with bench.nodes() as nodes, pytest.MonkeyPatch.context() as patch:
            test(nodes, *args, *([patch] if patched else []))

    return run


def simulated(test: Callable[..., object], *args: Any) -> Harness:
    """Call a test of the simulation."""
    return lambda _: test(*args)


def seeds(**chances: float) -> Harness:
    """Play the story of a team with these faults, with one seed after the other."""
    faults = ClusterFaults(**chances)

    def run(bench: Bench) -> None:
        for seed in bench.seeds:
            bench.last_seed = seed
            simulate(seed, faults)

    return run
