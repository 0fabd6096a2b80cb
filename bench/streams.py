"""Many talks at once over HTTP: each is written by its own brain and read by its own client as server-sent events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.fan_out import RATE, SECONDS, WIDTH, many_subscribers
from bench.figures import Figure, bench, percentile

TALKS = 200


@bench("streams")
def streams(folder: Path) -> Iterator[Figure]:
    """Measure from the brain to each client, first with people who arrive one after another, then all at once."""
    for name, arrivals in (("streams", 2.0), ("streams_at_once", 0.0)):
        with many_subscribers(folder / name) as server:
            measured = server.streamed(TALKS, f"{RATE} {SECONDS} {WIDTH}", arrivals)
        count = len(measured.latencies)
        assert count == TALKS * RATE * SECONDS, f"{count} chunks were received"
        yield Figure(f"{name}_chunk_p50", percentile(measured.latencies, 50), "ms", count)
        yield Figure(f"{name}_chunk_p99", percentile(measured.latencies, 99), "ms", count, 60)
        yield Figure(f"{name}_first_chunk_p50", percentile(measured.firsts, 50), "ms", TALKS, 100)
        yield Figure(f"{name}_first_chunk_p99", percentile(measured.firsts, 99), "ms", TALKS)
        yield Figure(f"{name}_server_cpu", server.cpu / count * 1e6, "µs/chunk", count, 120)
        yield Figure(f"{name}_client_cpu", measured.cpu / count * 1e6, "µs/chunk", count)
