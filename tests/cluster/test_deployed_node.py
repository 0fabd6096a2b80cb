"""A node that is deployed as in `deploy/cluster`: by variables only, behind a proxy, after the first account."""

from __future__ import annotations

import signal
from http.client import HTTPConnection
from pathlib import Path

import pytest
import yaml

from roost.settings import Settings
from tests.cli.running import roost, up
from tests.conftest import eventually
from tests.servers import ROOT, fresh_database
from tests.transports.nats_server import nats_server

pytestmark = [pytest.mark.postgres, pytest.mark.journey]

COMPOSE = yaml.safe_load((ROOT / "deploy" / "cluster" / "compose.yaml").read_text())


def status(port: int, path: str) -> int:
    """Ask as a probe of Kubernetes does, by an address that is no name of the server."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"Host": f"10.1.2.3:{port}"})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_a_node_starts_after_the_first_account_is_ready_and_stops_in_its_time(tmp_path: Path, postgres: str) -> None:
    with fresh_database(postgres) as store, nats_server(tmp_path, "--auth", "t0ken") as nats:
        common = {"ROOST_STORE": store, "ROOST_SECRET": "s" * 40, "ROOST_URL": "https://roost.example.org"}
        cluster = {"ROOST_CLUSTER__NAME": "node-1", "ROOST_CLUSTER__NATS": nats.url.replace("//", "//t0ken@")}
        options = ("--host", "0.0.0.0", "--behind-proxy")
        refused = roost(tmp_path, "node", *options, "--port", "0", **common, **cluster)
        assert (refused.returncode, "users add" in refused.stderr) == (1, True), refused.stderr
        added = roost(tmp_path, "users", "add", "ann", "--admin", **common)
        assert (added.returncode, "https://roost.example.org/" in added.stdout) == (0, True), added.stderr
        with up(tmp_path, *options, command="node", **common, **cluster, ROOST_TRUSTED_PROXIES="10.0.0.0/8") as node:
            eventually(lambda: status(node.port, "/readyz") == 200)
            assert status(node.port, "/healthz") == 200
            node.process.send_signal(signal.SIGTERM)
            limit = float(COMPOSE["services"]["node-1"]["stop_grace_period"].removesuffix("s"))
            assert node.process.wait(limit) == 0
            assert limit > 2 * Settings().limits.drain
