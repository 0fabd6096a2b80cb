"""A cluster whose nodes are cut off from the database, one after the other, while they run a turn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, bench
from tests.cluster.ledger import Noted, last_run, overlap, runs
from tests.cluster.processes import Cluster, cluster
from tests.conftest import eventually
from tests.servers import fresh_store, postgres_server

NODES = {name: {"ROOST_LIMITS__ATTEMPTS": "1000"} for name in ("a", "b", "c")}
"""With their variables: each loss of the turn but the first two counts as an attempt."""
CUTS = 100
LEASE = 1.5
"""Seconds, so that a hundred of them take some minutes."""


@bench("cluster-cuts", long=True)
def measure_cuts(folder: Path) -> Iterator[Figure]:
    with (
        postgres_server() as server,
        fresh_store(server) as store,
        cluster(folder.resolve(), store, *NODES, lease=LEASE, linked=True, environment=NODES) as made,
    ):
        with made.nodes["a"].connect() as service:
            eventually(made.is_whole, 60)
            talk = service.create_talk_session("ann", profile="burning")
            service.add_message("ann", talk, "x")
        eventually(lambda: runs(made))
        cuts = [_cut(made) for _ in range(CUTS)]
        found = runs(made)
        times = [min(run.start for run in found if run.start > cut) - cut for cut in cuts]
        yield Figure("overlap_in_100_cuts", overlap(made), "s", CUTS, 0.0)
        yield Figure("cut_node_first_turn_elsewhere", max(times), "s", CUTS, LEASE + 2.0)
        yield Figure("shortest_pause_between_two_nodes", min(map(_pause, found, found[1:])), "s", len(found) - 1)


def _cut(made: Cluster) -> float:
    """Cut off the node that runs the turn until another one has begun it; return when."""
    before = last_run(made)
    [(owner,)] = made.rows("SELECT n.name FROM talks t JOIN nodes n ON n.node_id = t.node")
    others = f"SELECT 1 FROM nodes WHERE state = 'up' AND lease > roost_now() AND name <> '{owner}'"
    eventually(lambda: made.rows(others), 60)  # those that were cut off before start anew
    cut = time.clock_gettime(time.CLOCK_BOOTTIME)
    made.links[str(owner), "postgres"].cut()
    eventually(lambda: last_run(made) != before, 60)
    made.links[str(owner), "postgres"].heal()
    return cut


def _pause(one: Noted, following: Noted) -> float:
    return following.start - one.end
