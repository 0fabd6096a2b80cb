"""Nodes with wrong credentials or untrusted servers do not start, say what to do, and write no secret anywhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from tests.certificates import authority
from tests.cluster.processes import Cluster, NodeProcess
from tests.conftest import eventually
from tests.servers import fresh_store, restartable_postgres
from tests.transports.nats_server import free_port, nats_server

pytestmark = [pytest.mark.postgres, pytest.mark.journey]
PASSWORD, TOKEN = "right-password-1f3a", "right-token-77c2"
WRONG = "wrong-secret-9d0e"


@dataclass
class Secured:
    """Servers with passwords and certificates, and a folder with the authority and another one."""

    made: Cluster
    store: str
    nats: str
    ca: Path
    other_ca: Path

    def start(self, store: str = "", nats: str = "", ca: Path | None = None) -> NodeProcess:
        """Start a node; wait until it answers or has ended."""
        self.made.environment["a"] = {
            "ROOST_STORE": store or self.store,
            "ROOST_CLUSTER__NATS": nats or self.nats,
            "ROOST_CLUSTER__CA": str(ca or self.ca),
        }
        node = self.made.launch("a")
        eventually(lambda: node.url or node.process.poll() is not None, 60)
        return node


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    ca, cert, key = authority(folder)
    (other := folder / "other").mkdir()
    options = ("--tls", "--tlscert", str(cert), "--tlskey", str(key), "--auth", TOKEN)
    with restartable_postgres() as server, nats_server(folder, *options) as nats, ExitStack() as ended:
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute(f"ALTER ROLE roost PASSWORD '{PASSWORD}'".encode())
        for file in (cert, key):
            server.own(Path(shutil.copy(file, server.data)))
        rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
        (server.data / "pg_hba.conf").write_text(rules)
        port = free_port()
        server.listen(port, ssl="on", ssl_cert_file=cert.name, ssl_key_file=key.name)
        url = ended.enter_context(fresh_store(server.url))
        place = f"roost:{PASSWORD}@127.0.0.1:{port}"
        store = urlunsplit(urlsplit(url)._replace(netloc=place, query=f"sslmode=verify-full&sslrootcert={ca}"))
        made = Cluster(folder, url, nats)
        ended.callback(made.stop)
        nats_url = nats.url.replace("nats://", f"tls://{TOKEN}@")
        yield Secured(made, store, nats_url, ca, authority(other)[0])


def written(node: NodeProcess) -> str:
    """Return all that a node has written."""
    return "".join(path.read_text(errors="replace") for path in node.folder.rglob("*") if path.is_file())


def check_secrets(node: NodeProcess) -> None:
    text = written(node)
    assert not [secret for secret in (PASSWORD, TOKEN, WRONG) if secret in text]


def test_a_node_uses_passwords_and_certificates_of_both_servers_and_writes_none(secured: Secured) -> None:
    node = secured.start()
    assert node.process.poll() is None, node.output
    log = node.folder / "roost.log"
    eventually(lambda: "connected to NATS" in log.read_text())
    node.process.terminate()
    assert node.process.wait(30) == 0
    check_secrets(node)


WRONG_STARTS = [
    ("store", "password", "refuses this user: check name, password and rights"),
    pytest.param(
        "store", "authority", "check its certificate, and `sslmode` and `sslrootcert`", marks=pytest.mark.soak
    ),
    ("nats", "password", "refuses these credentials: check"),
    pytest.param("nats", "authority", "certificate verify failed", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("server", "wrong", "words"), WRONG_STARTS)
def test_a_node_that_a_server_refuses_or_that_does_not_trust_it_does_not_start(
    secured: Secured, server: str, wrong: str, words: str
) -> None:
    if server == "store":
        old, new = (PASSWORD, WRONG) if wrong == "password" else (str(secured.ca), str(secured.other_ca))
        node = secured.start(store=secured.store.replace(old, new))
    elif wrong == "password":
        node = secured.start(nats=secured.nats.replace(TOKEN, WRONG))
    else:
        node = secured.start(ca=secured.other_ca)
    assert node.process.poll() == 1, node.output
    assert words in " ".join(node.output.split())
    assert "Traceback" not in node.output
    check_secrets(node)
