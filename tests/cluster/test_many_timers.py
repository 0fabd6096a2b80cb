"""Many timers that are due at once, on three nodes of which one is killed meanwhile: each fires once."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cluster.processes import Cluster, cluster
from tests.conftest import eventually
from tests.servers import fresh_store

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
AGENTS = 100


def create_schedules(made: Cluster, name: str, numbers: range, due: datetime) -> None:
    with made.nodes[name].connect() as service:
        for n in numbers:
            service.schedules.create("ann", f"agent:d{n % AGENTS}", f"s{n}", at=due)


@pytest.mark.soak
@pytest.mark.parametrize("timers", [1_000, 10_000])
@pytest.mark.timeout(400)
def test_timers_that_are_due_at_once_fire_once_each_though_a_node_is_killed(
    tmp_path: Path, postgres: str, timers: int
) -> None:
    with fresh_store(postgres) as store, cluster(tmp_path, store, "a", "b", "c") as made:
        with made.nodes["a"].connect() as service:
            for number in range(AGENTS):
                service.agents.create("ann", f"d{number}", profile="quick")
        due = time.time() + 5 + timers / 100
        third = -(-timers // 3)
        shares = [(name, range(i * third, min(timers, (i + 1) * third))) for i, name in enumerate("abc")]
        with ThreadPoolExecutor(3) as pool:
            for made_all in [
                pool.submit(create_schedules, made, *share, datetime.fromtimestamp(due, UTC)) for share in shares
            ]:
                made_all.result()
        assert time.time() < due, "the machine is too slow for this test"
        fired = "SELECT count(*) FROM tasks"
        eventually(lambda: made.rows(f"{fired} WHERE ended IS NOT NULL")[0][0] > timers // 20, 120)
        made.nodes["b"].kill()
        left = made.rows("SELECT count(*) FROM inbox")
        start = time.monotonic()
        eventually(lambda: made.rows(f"{fired} WHERE status = 'done'") == [(timers,)], 200)
        print(f"{left[0][0]} of {timers} tasks were left at the kill; done {time.monotonic() - start:.1f} s later")
        assert left[0][0] > 0, "the node was killed too late"
        assert made.rows(fired) == [(timers,)]
        texts = Counter(str(row[0]) for row in made.rows("SELECT prompt FROM tasks"))
        assert texts == {f"s{n}": 1 for n in range(timers)}
        assert made.rows("SELECT count(*) FROM dead_letters") == [(0,)]
