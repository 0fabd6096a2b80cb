"""Accounts, sign-in links and metrics with real processes: what one node does, all know."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

import roost
from roost.client import RemoteService
from tests.cluster.processes import Cluster, NodeProcess, cluster
from tests.conftest import eventually
from tests.forks import run
from tests.servers import fresh_store

pytestmark = [pytest.mark.postgres, pytest.mark.journey]

AGENTS = 9


def test_what_one_node_does_to_accounts_counts_on_all(tmp_path: Path, postgres: str) -> None:
    with fresh_store(postgres) as store, cluster(tmp_path, store, "a", "b", "c") as made:
        check_link(made)
        with made.nodes["a"].connect() as service:
            eventually(lambda: len(service.monitor.metrics().nodes) == 3)
            service.users.add("ann", "bob")
        check_disabled_user(made)
        check_revoked_token(made)


def check_link(made: Cluster) -> None:
    """Use a link of one node on others."""
    parts = urlsplit(command(made, made.nodes["a"], "link"))
    path = f"{parts.path}?{parts.query}"
    assert [enter(made.nodes[name], path) for name in ("b", "c", "a")] == [True, False, False]


def enter(node: NodeProcess, path: str) -> bool:
    """Follow the link in a new browser; return whether it is signed in then."""
    with httpx.Client(base_url=node.url, trust_env=False) as browser:
        browser.get(path)
        return browser.get("/api/v1/me").status_code == 200


def check_disabled_user(made: Cluster) -> None:
    """Disable bob on one node while agents of bob work on several."""
    token = command(made, made.nodes["a"], "tokens", "create", "test", ROOST_USER="bob")
    with made.nodes["a"].connect() as admin, roost.connect(made.nodes["b"].url, token) as bob:
        for number in range(AGENTS):
            bob.agents.create("bob", f"d{number}", profile="waiting")
            bob.tasks.send("bob", f"agent:d{number}", "work")
        eventually(lambda: sum(running(admin)) == AGENTS)
        assert sum(count > 0 for count in running(admin)) > 1
        admin.users.disable("ann", "bob")
        eventually(lambda: sum(running(admin)) == 0, 5)
        admin.users.enable("ann", "bob")
        eventually(lambda: sum(running(admin)) == AGENTS)


def running(service: RemoteService) -> list[float]:
    """Return how many envelopes agents work on, for each node."""
    nodes = service.monitor.metrics().nodes
    return [node.metrics["roost_running"].value for node in nodes if node.metrics is not None]


def check_revoked_token(made: Cluster) -> None:
    """Revoke a token on one node while it is used on another."""
    with made.nodes["b"].connect() as service:
        created = service.tokens.create("ann", "short")
        used = {"Authorization": f"Bearer {created.secret}"}
        with httpx.Client(base_url=made.nodes["c"].url, headers=used, trust_env=False) as program:
            assert program.get("/api/v1/me").status_code == 200
            service.tokens.revoke("ann", created.token.token_id)
            eventually(lambda: program.get("/api/v1/me").status_code == 401, 5)


def command(made: Cluster, node: NodeProcess, *arguments: str, **variables: str) -> str:
    """Return what a command prints on the machine of a node."""
    line = [sys.executable, "-m", "roost", *arguments, "--config", str(made.config)]
    environment = {**os.environ, "ROOST_DATA": str(node.folder), **variables}
    return str(run(line, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout).strip()
