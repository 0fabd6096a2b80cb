"""Nodes of two versions on one database: the new one is started node by node, under load."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

import roost
from roost.stores import migrations
from tests.cluster.checks import check
from tests.cluster.load import NAMES, Load
from tests.cluster.processes import Cluster, cluster
from tests.cluster.test_nemesis import OPERATIONS
from tests.conftest import eventually
from tests.servers import fresh_store

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
KNOWN = migrations.known()
EXPAND = f"""-- oldest: {KNOWN}

ALTER TABLE talks ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';
ALTER TABLE inbox ADD COLUMN weight BIGINT NOT NULL DEFAULT 0;
CREATE INDEX messages_by_run ON messages (run_id);
UPDATE agents SET config = config;
CREATE TABLE colours (name TEXT PRIMARY KEY);
"""
BREAK = "ALTER TABLE inbox RENAME COLUMN busy TO policy;\n"


def program(folder: Path, step: str) -> Path:
    """Make a newer version of the package, which has one more migration; return its folder.

    Compiled modules are copied too: to compile all of them takes a busy machine a minute.
    """
    package = folder / "roost"
    shutil.copytree(Path(roost.__file__).parent, package)
    (package / "stores" / "migrations" / f"{KNOWN + 1:04}_newer.sql").write_text(step)
    return folder


def replace(made: Cluster, name: str, version: Path | None) -> None:
    """Stop a node as an upgrade does, and start it with this version of the program."""
    made.nodes[name].send(signal.SIGTERM)
    assert made.nodes[name].process.wait(60) == 0, made.nodes[name].output
    made.program = version
    made.start(name)


def schema(made: Cluster) -> list[tuple[object, ...]]:
    return made.rows("SELECT value FROM meta WHERE name = 'schema'")


@pytest.mark.parametrize("operations", [100, pytest.param(OPERATIONS, marks=pytest.mark.soak)])
@pytest.mark.timeout(300)
def test_nodes_are_upgraded_one_after_another_under_load(tmp_path: Path, postgres: str, operations: int) -> None:
    newer = program(tmp_path / "newer", EXPAND)
    with fresh_store(postgres) as store, cluster(tmp_path, store, *NAMES, lease=12.0) as made:  # none of them dies
        load = Load(made, seed=0)
        load.prepare(seconds=10.0)
        with load.running():
            eventually(lambda: load.operations > operations / 4, 120)
            replace(made, "a", newer)
            assert schema(made) == [(str(KNOWN + 1),)]
            eventually(lambda: load.operations > operations / 2, 120)
            replace(made, "b", None)  # an old node can be restarted while the upgrade is under way
            for name in ("b", "c"):
                replace(made, name, newer)
            eventually(lambda: load.operations > operations, 120)
        check(load)
        assert made.rows("SELECT count(*), min(schema_version) FROM nodes WHERE state = 'up'") == [(3, KNOWN + 1)]
        assert made.rows("SELECT count(*) FROM inbox WHERE suspect > 0") == [(0,)]
        assert [path for path in tmp_path.glob("*/output.txt") if "Traceback" in path.read_text()] == []


@pytest.mark.soak
@pytest.mark.timeout(120)
def test_a_breaking_version_does_not_start_beside_older_nodes(tmp_path: Path, postgres: str) -> None:
    newer = program(tmp_path / "newer", BREAK)
    with fresh_store(postgres) as store, cluster(tmp_path, store, "a") as made:
        with made.nodes["a"].connect() as service:
            service.agents.create("ann", "d", profile="worker")
            made.program = newer
            refused = made.launch("b")
            assert refused.process.wait(60) == 1
            assert "cannot be migrated, since these nodes run an older Roost" in refused.output
            assert "'a' (" in refused.output
            task = service.tasks.send("ann", "agent:d", "x")
            assert str(service.tasks.wait("ann", task, timeout=60).status) == "done"
        made.nodes["a"].send(signal.SIGTERM)
        assert made.nodes["a"].process.wait(60) == 0
        unchanged = schema(made)
        assert unchanged == [(str(KNOWN),)]
        migrating = made.launch("b")
        eventually(lambda: schema(made) == [(str(KNOWN + 1),)], 60)
        migrating.kill()
        made.program = None
        late = made.launch("c")
        assert late.process.wait(60) == 1
        assert f"newer Roost (schema {KNOWN + 1}, this one knows {KNOWN})" in late.output
