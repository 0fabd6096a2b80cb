"""PostgreSQL beside SQLite, in the same run: turns, messages, requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from bench.agents import one_way_per_second
from bench.figures import Figure, bench
from bench.messages import requests_on
from bench.talks import turns_per_second
from tests.servers import fresh_database, postgres_server

GOAL = 0.5
"""Speed on PostgreSQL, as a part of that on SQLite."""


MEASUREMENTS: dict[str, tuple[str, int, Callable[[str], float]]] = {
    "turns": ("turns/s", 2_000, lambda url: turns_per_second(url, 2_000)[0]),
    "one_way": ("msg/s", 10_000, lambda url: one_way_per_second(url, 20)[0]),
    "requests": ("rt/s", 2_000, lambda url: requests_on(url, 500, 20)[1]),
}


@bench("postgres")
def postgres(folder: Path) -> Iterator[Figure]:
    """The server is on the same machine, and waits for its disk."""
    with postgres_server(durable=True) as server:
        for name, (unit, count, measure) in MEASUREMENTS.items():
            with fresh_database(server) as url:
                on_postgres = measure(url)
            ratio = on_postgres / measure(f"sqlite:///{folder}/{name}.db")
            yield Figure(f"{name}_on_postgres", on_postgres, unit, count)
            yield Figure(f"{name}_on_postgres_to_sqlite", ratio, "", count, GOAL, more_is_better=True)
