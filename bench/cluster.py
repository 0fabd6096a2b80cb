"""A cluster of three nodes: calls that cross nodes, and how soon others continue the work of a killed one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, bench, percentile
from roost.client import RemoteService
from tests.cluster.processes import Cluster, NodeProcess, cluster
from tests.conftest import eventually
from tests.servers import fresh_store, postgres_server

NAMES = ("a", "b", "c")
AGENTS = 12
REQUESTS, STOPS, KILLS = 200, 40, 8


@bench("cluster")
def measure_cluster(folder: Path) -> Iterator[Figure]:
    with (
        postgres_server() as server,
        fresh_store(server) as store,
        cluster(folder.resolve(), store, *NAMES, lease=12.0) as made,
        made.nodes["a"].connect() as one,
        made.nodes["b"].connect() as other,
    ):
        eventually(lambda: len(one.nodes.list("ann")) == len(NAMES))
        yield from _live_text(one, other)
        yield from _stops(one, other)
        yield from _requests(made, one)
        yield from _kills(made, one)
        yield from _memory(made)


def _live_text(one: RemoteService, other: RemoteService) -> Iterator[Figure]:
    late = chunk_delays(one, other)
    yield Figure("chunk_across_nodes_p50", percentile(late, 50), "ms", len(late), 30.0)


def chunk_delays(one: RemoteService, other: RemoteService) -> list[float]:
    """Return after how many milliseconds each chunk of a talk of one node was read on another."""
    talk = one.create_talk_session("ann", profile="stamped")
    one.add_message("ann", talk, "go")
    late = []
    for change in other.stream_messages("ann", talk):
        if change.message.sender == "agent":
            late += [(time.monotonic() - float(stamp)) * 1000 for stamp in change.text.split()]
    return late


def _stops(one: RemoteService, other: RemoteService) -> Iterator[Figure]:
    talk = one.create_talk_session("ann", profile="burning")
    times = []
    for number in range(STOPS):
        one.add_message("ann", talk, f"stop-{number}")
        eventually(lambda: str(other.get_messages("ann", talk).messages[-1].status) == "streaming")
        receipt = other.stop("ann", talk, wait=10)
        assert receipt.acknowledged is not None
        times.append((receipt.acknowledged - receipt.requested).total_seconds() * 1000)
    yield Figure("stop_across_nodes_p99", percentile(times, 99), "ms", STOPS, 25.0)


def _requests(made: Cluster, one: RemoteService) -> Iterator[Figure]:
    times = request_times(one, agent_elsewhere(made, one), REQUESTS)
    yield Figure("request_across_nodes_p50", percentile(times, 50), "ms", len(times), 3.0)


def agent_elsewhere(made: Cluster, one: RemoteService) -> str:
    """Return an agent that is awake on another node than the agent `asker`."""
    one.agents.create("ann", "asker", profile="asker")
    for number in range(AGENTS):
        one.agents.create("ann", f"d{number}", profile="ponger")
        one.tasks.wait("ann", one.tasks.send("ann", f"agent:d{number}", f"d{number}"), timeout=30)
    request_times(one, "d0", 1)
    places = {words[1]: pid for _, pid, words in made.ledger() if words[0] in ("begin", "asked")}
    return next(name for name, pid in places.items() if name.startswith("d") and pid != places["agent:d0"])


def request_times(one: RemoteService, target: str, count: int) -> list[float]:
    """Have the agent `asker` ask another one; return the milliseconds of each request."""
    done = one.tasks.wait("ann", one.tasks.send("ann", "agent:asker", f"agent:{target} {count}"), timeout=120)
    return [float(text) for text in (done.result or "").split()]


def _kills(made: Cluster, one: RemoteService) -> Iterator[Figure]:
    """Kill a node with a talk that runs there; others run it again."""
    times = []
    for number in range(KILLS):
        node = made.nodes["b" if number % 2 else "c"]
        with node.connect() as killed:
            talk = killed.create_talk_session("ann", profile="burning")
            killed.add_message("ann", talk, f"kill-{number}")
        eventually(lambda: len(_pids(made, f"kill-{number}")) == 1)  # noqa: B023 — called at once
        node.kill()
        start = time.clock_gettime(time.CLOCK_BOOTTIME)
        eventually(lambda: len(_pids(made, f"kill-{number}")) == 2)  # noqa: B023 — called at once
        first = min(when for when, pid, words in made.ledger() if words[1] == f"kill-{number}" and when > start)
        times.append(first - start)
        one.stop("ann", talk, wait=10)
        made.start(node.name)
        eventually(lambda: len(one.nodes.list("ann")) == len(NAMES))
    yield Figure("killed_node_first_turn_elsewhere_p99", percentile(times, 99), "s", KILLS, 1.0)


def _pids(made: Cluster, text: str) -> set[int]:
    return {pid for _, pid, words in made.ledger() if words[1] == text}


def _memory(made: Cluster) -> Iterator[Figure]:
    sizes = [_rss(child) for node in made.nodes.values() for child in _lease_processes(node)]
    yield Figure("lease_process", max(sizes), "MiB", len(sizes), 40.0)


def _lease_processes(node: NodeProcess) -> list[int]:
    return [pid for pid in node.children() if b"lease_process" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def _rss(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20
