"""Two nodes whose clients write into the same talks, beside one node."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from bench.figures import Figure, bench
from roost.service import AgentService
from tests.runtime.cluster.brains import echo
from tests.runtime.cluster.conftest import Nodes
from tests.servers import fresh_store, postgres_server

TALKS, CLIENTS, SECONDS = 60, 32, 5.0
GOAL = 0.8


@bench("shared-talks")
def shared_talks(folder: Path) -> Iterator[Figure]:
    with postgres_server(durable=True) as server:
        (one, _), (two, deadlocks) = (_measure(server, count) for count in (1, 2))
    yield Figure("posts_on_one_node", one, "posts/s", CLIENTS)
    yield Figure("posts_on_two_nodes_to_one", two / one, "", CLIENTS, GOAL, more_is_better=True)
    yield Figure("deadlocks_of_two_nodes", deadlocks, "", CLIENTS, 0.0)


def _measure(server: str, count: int) -> tuple[float, int]:
    """Return the posts per second through this number of nodes, and the number of deadlocks."""
    with fresh_store(server) as url:
        nodes = Nodes(url)
        try:
            started = nodes.start({"echo": echo}, count)
            talks = [started[0].create_talk_session("ann", profile="echo", busy="queue") for _ in range(TALKS)]
            posts = _post(started, talks)
        finally:
            for service in nodes.services:
                service.close()  # connections report their deadlocks when they are closed
        with psycopg.connect(url) as connection:
            found = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            [(deadlocks,)] = found.fetchall()
        return posts, deadlocks


def _post(nodes: list[AgentService], talks: list[str]) -> float:
    counts = [0] * CLIENTS
    start = time.monotonic()

    def client(number: int) -> None:
        service = nodes[number % len(nodes)]
        while time.monotonic() - start < SECONDS:
            service.add_message("ann", talks[(number * 7 + counts[number]) % TALKS], "hello")
            counts[number] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - start)
