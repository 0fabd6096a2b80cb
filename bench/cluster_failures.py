"""A cluster that loses a node with a thousand agents, drains one, works without NATS, or has nothing to do."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.cluster import agent_elsewhere, chunk_delays, request_times
from bench.figures import Figure, bench
from roost.client import RemoteService
from tests.cluster.processes import Cluster, cluster
from tests.conftest import eventually
from tests.servers import fresh_store, postgres_server

AGENTS = 1_000
OTHERS = ("b", "c")
CALLS = 10
"""Chunks, stops and requests while NATS is down."""
IDLE = 20.0
"""Seconds for which an idle node is watched."""


@bench("cluster-failures")
def measure_failures(folder: Path) -> Iterator[Figure]:
    with postgres_server() as server:
        yield from _killed_with_agents(server, folder / "killed")
        yield from _drained(server, folder / "drained")
        yield from _without_nats(server, folder / "without-nats")


@contextmanager
def _started(server: str, folder: Path, *names: str) -> Iterator[Cluster]:
    folder.mkdir()
    with fresh_store(server) as store, cluster(folder.resolve(), store, *names, lease=12.0) as made:
        yield made


def _create_agents(service: RemoteService, profile: str) -> list[str]:
    """Create agents and give each a task; return the ids of the tasks."""
    for number in range(AGENTS):
        service.agents.create("ann", f"d{number}", profile=profile, idle_timeout=600.0)
    return [service.tasks.send("ann", f"agent:d{number}", f"d{number}") for number in range(AGENTS)]


def _killed_with_agents(server: str, folder: Path) -> Iterator[Figure]:
    """Kill a node on which a thousand agents work, until all of them work on two others."""
    with _started(server, folder, "a") as made:
        killed = made.nodes["a"]
        with killed.connect() as service:
            _create_agents(service, "waiting")
            eventually(lambda: len(_working(made, 0.0)) == AGENTS, 120)
            made.start(*OTHERS)
            eventually(lambda: len(service.nodes.list("ann")) == 3)
        start = time.clock_gettime(time.CLOCK_BOOTTIME)
        killed.kill()
        eventually(lambda: len(_working(made, start)) == AGENTS, 120)
        seconds = max(_working(made, start).values()) - start
        yield Figure("killed_node_1000_agents_working", seconds, "s", AGENTS, 3.0)


def _working(made: Cluster, since: float) -> dict[str, float]:
    """Return when the task of each agent was begun for the first time since."""
    begun: dict[str, float] = {}
    for when, _, (verb, *words) in made.ledger():
        if verb == "begin" and when > since:
            begun.setdefault(words[0], when)
    return begun


def _drained(server: str, folder: Path) -> Iterator[Figure]:
    """Drain a node with a thousand idle agents; then watch what idle nodes need."""
    with _started(server, folder, "a") as made:
        drained = made.nodes["a"]
        with drained.connect() as service:
            for task_id in _create_agents(service, "ponger"):
                service.tasks.wait("ann", task_id, timeout=60)
            made.start(*OTHERS)
            eventually(lambda: len(service.nodes.list("ann")) == 3)
        start = time.monotonic()
        drained.send(signal.SIGTERM)
        drained.process.wait(60)
        yield Figure("drain_1000_idle_agents", time.monotonic() - start, "s", AGENTS, 2.0)
        yield from _idle(made)


def _idle(made: Cluster) -> Iterator[Figure]:
    """Watch what nodes need while nothing happens: processor time with that of the lease process, and transactions."""
    node = made.nodes["b"]
    pids = [node.process.pid, *node.children()]
    eventually(lambda: _cpu(pids, 1.0) < 5.0, 60)  # it has just started
    before = _transactions(made)
    yield Figure("idle_node_cpu", _cpu(pids, IDLE), "%", len(pids), 1.0)
    asked = (_transactions(made) - before) / IDLE / len(OTHERS)
    yield Figure("idle_node_transactions", asked, "/s", len(OTHERS), 5.0)


def _transactions(made: Cluster) -> int:
    query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    return int(made.rows(query)[0][0])


def _cpu(pids: list[int], seconds: float) -> float:
    """Return the processor time of processes, in percent of one core."""
    before = sum(map(_ticks, pids))
    time.sleep(seconds)
    return (sum(map(_ticks, pids)) - before) / os.sysconf("SC_CLK_TCK") / seconds * 100


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def _without_nats(server: str, folder: Path) -> Iterator[Figure]:
    with (
        _started(server, folder, "a", "b") as made,
        made.nodes["a"].connect() as one,
        made.nodes["b"].connect() as other,
    ):
        eventually(lambda: len(one.nodes.list("ann")) == 2)
        target = agent_elsewhere(made, one)
        made.nats.kill()
        for name, times in (
            ("chunk", chunk_delays(one, other)),
            ("stop", _stop_times(one, other)),
            ("request", request_times(one, target, CALLS)),
        ):
            yield Figure(f"{name}_without_nats", max(times) / 1000, "s", len(times), 1.0)


def _stop_times(one: RemoteService, other: RemoteService) -> list[float]:
    """Return the milliseconds from a stop on one node until nothing runs on the other."""
    talk = one.create_talk_session("ann", profile="burning")
    times = []
    for number in range(CALLS):
        one.add_message("ann", talk, f"stop-{number}")
        eventually(lambda: str(other.get_messages("ann", talk).messages[-1].status) == "streaming")
        start = time.monotonic()
        other.stop("ann", talk)
        eventually(lambda: not one.get_messages("ann", talk).running)
        times.append((time.monotonic() - start) * 1000)
    return times
