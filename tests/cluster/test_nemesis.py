"""A cluster under faults that a seed chooses: nothing acknowledged is lost, and nothing is handled twice."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.checks import check
from tests.cluster.load import NAMES, Load
from tests.cluster.nemesis import ALL, Nemesis
from tests.cluster.processes import cluster
from tests.cluster.test_clocks import HOUR, wrong
from tests.servers import fresh_store, restartable_postgres

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
OPERATIONS = 1_000
"""Operations that have to succeed in the long form."""


@dataclass(frozen=True)
class Programme:
    """Faults of a run, and the pause after each of them."""

    faults: tuple[str, ...] = ALL
    pauses: tuple[float, float] = (0.3, 1.5)
    loses_notices: bool = False
    has_wrong_clocks: bool = False


PROGRAMMES = {
    "everything": Programme(),
    "kills": Programme(("kill_a_node",), (2.0, 10.0)),
    "children": Programme(("kill_the_child",), (1.0, 5.0)),
    "freezes": Programme(("freeze_the_process", "freeze_the_child", "freeze_both")),
    "cuts": Programme(("cut_off_from_postgres", "cut_off_from_nats", "flap")),
    "outages": Programme(("restart_postgres", "restart_nats", "end_connections"), (3.0, 8.0)),
    "clocks": Programme(has_wrong_clocks=True),
    "lossy": Programme(("kill_a_node", "cut_off_from_nats"), (2.0, 5.0), loses_notices=True),
}
LONG = [
    *(("everything", seed) for seed in range(1, 7)),
    *((name, seed) for name in ("kills", "children", "freezes") for seed in (1, 2)),
    *((name, 1) for name in ("cuts", "outages", "clocks", "lossy")),
]


@pytest.mark.parametrize(
    ("name", "seed", "seconds", "operations"),
    [
        ("everything", 0, 5.0, 0),
        *(pytest.param(*one, 60.0, OPERATIONS, marks=pytest.mark.soak) for one in LONG),
    ],
)
@pytest.mark.timeout(600)
def test_what_was_acknowledged_is_done_once_whatever_fails(
    tmp_path: Path, name: str, seed: int, seconds: float, operations: int
) -> None:
    programme = PROGRAMMES[name]
    with (
        restartable_postgres() as server,
        fresh_store(server.url) as store,
        cluster(
            tmp_path,
            store,
            *NAMES,
            linked=True,
            losing=random.Random(seed) if programme.loses_notices else None,
            environment={"a": wrong(HOUR), "b": wrong(-HOUR)} if programme.has_wrong_clocks else None,
        ) as made,
    ):
        load, nemesis = Load(made, seed), Nemesis(made, server, seed)
        load.prepare(seconds)
        with load.running():
            nemesis.run(programme.faults, programme.pauses, seconds, lambda: load.operations >= operations)
        print(f"faults: {dict(nemesis.fired)}")
        assert nemesis.fired.keys() == set(programme.faults)
        assert not programme.loses_notices or sum(link.lost for link in made.links.values()) > 30
        check(load, nemesis.freezes)
