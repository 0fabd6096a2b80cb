"""`roost node`, `roost nodes` and `roost drain` on one machine; tests/cluster has a whole cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import command


def test_a_store_of_one_process_has_no_nodes(home: Path) -> None:
    assert "this store belongs to one process" in command("nodes").stdout
    assert command("nodes", "--json").stdout.strip() == "[]"
    refused = command("drain", "somewhere")
    assert (refused.exit_code, refused.stderr) == (1, "roost: there is no node 'somewhere': `roost nodes` lists them\n")


def test_a_node_needs_a_cluster(home: Path) -> None:
    refused = command("node")
    assert refused.exit_code == 1
    assert "add a table [cluster] with `nats` to roost.toml" in refused.stderr


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            'secret = "sixteen letters.."\n[cluster]\nnats = "nats://localhost"',
            "store must be the PostgreSQL database",
        ),
        ('store = "postgresql:///x"\n[cluster]\nnats = "nats://localhost"', "secret must be given in a cluster"),
        ('[cluster]\nnats = "http://localhost"', "must be URLs of NATS servers"),
        ("[cluster]\nnats = []", "must be URLs of NATS servers"),
        ('[cluster]\nnats = "nats://localhost:port"', "must be URLs of NATS servers"),
        ('[cluster]\nname = "one"', "nats"),
        ('[cluster]\nnats = "nats://localhost"\nlease = 0', "lease"),
        ('[cluster]\nnats = "nats://localhost"\nkey = "key.pem"', "cluster.cert must be given too, since"),
        ('[cluster]\nnats = "nats://localhost"\nnots = 1', "nots"),
    ],
)
def test_wrong_settings_of_a_cluster_are_named(home: Path, settings: str, told: str) -> None:
    Path("roost.toml").write_text(settings + "\n")
    refused = command("node")
    assert refused.exit_code == 1
    assert told in refused.stderr, refused.stderr


def test_commands_say_how_to_reach_a_cluster_that_has_no_node_here(home: Path) -> None:
    Path("roost.toml").write_text(
        'store = "postgresql://127.0.0.1:1/x"\nsecret = "sixteen letters.."\n[cluster]\nnats = "nats://localhost"\n'
    )
    refused = command("agents", "ls")
    assert refused.exit_code == 1
    assert "no node of the cluster answers on this machine" in refused.stderr
