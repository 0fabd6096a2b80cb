"""Nodes of a cluster as real processes, with real PostgreSQL and NATS servers on this machine."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

import roost
from roost.client import RemoteService
from roost.errors import RoostError
from tests.cluster.network import Link, Network, network
from tests.conftest import eventually
from tests.forks import Popen, run
from tests.transports.nats_server import NatsServer, nats_server

SECRET = "a secret of this test cluster"
BRAINS = Path(__file__).with_name("brains.py")
PROFILES = (
    *("worker", "ponger", "mailer", "asker", "stamped", "counting", "burning", "waiting", "quick"),
    *("served", "poison", "holding_once", "beating"),
)


@dataclass
class NodeProcess:
    """A `roost node`. Its output is in a file of its folder."""

    name: str
    folder: Path
    process: subprocess.Popen[bytes]
    token: str = ""

    @property
    def output(self) -> str:
        return (self.folder / "output.txt").read_text()

    @property
    def url(self) -> str:
        lines = [line for line in self.output.splitlines() if "running at" in line]
        return lines[-1].split("running at ")[1].split(",")[0].strip() if lines else ""

    def connect(self, patience: float = 30.0) -> RemoteService:
        return roost.connect(self.url, self.token, patience=patience)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def children(self) -> list[int]:
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False)
        return [int(pid) for pid in found.stdout.split()]


@dataclass
class Cluster:
    """Nodes on one database; they share a folder with their brains."""

    folder: Path
    store: str
    nats: NatsServer
    lease: float = 3.0
    nodes: dict[str, NodeProcess] = field(default_factory=dict)
    token: str = ""
    program: Path | None = None
    """Folder with another version of the package, for nodes that are started from now on."""
    starts: Iterator[int] = field(default_factory=count)
    network: Network | None = None
    """Connects each node with its servers by links of its own, which can be cut; None: directly."""
    links: dict[tuple[str, str], Link] = field(default_factory=dict)
    """By node and server, `postgres` or `nats`."""
    environment: dict[str, dict[str, str]] = field(default_factory=dict)
    """Further variables of a node."""
    losing: random.Random | None = None
    """Chooses the messages between nodes that are lost, doubled or delayed; None: none."""

    def start(self, *names: str) -> None:
        """Start nodes and wait until they answer."""
        for node in [self.launch(name) for name in names]:
            eventually(lambda node=node: node.url or node.process.poll() is not None, 90)  # type: ignore[misc]
            assert node.process.poll() is None, node.output
            node.token = self.token = self.token or self.command(node, "tokens", "create", "test").strip()

    def launch(self, name: str) -> NodeProcess:
        """Start a node without waiting for it."""
        folder = self.folder / f"{name}-{next(self.starts)}"
        folder.mkdir()
        with (folder / "output.txt").open("wb") as output:
            process = Popen[bytes](
                [sys.executable, "-m", "roost", "node", "--port", "0", "--config", str(self.config)],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._variables(name), "ROOST_DATA": str(folder), "ROOST_CLUSTER__NAME": name},
                cwd=folder,
            )
        node = self.nodes[name] = NodeProcess(name, folder, process)
        return node

    def _variables(self, name: str) -> dict[str, str]:
        given = self.environment.get(name, {}) | ({"PYTHONPATH": str(self.program)} if self.program else {})
        if self.network is None:
            return given
        if (name, "postgres") not in self.links:
            folder = conninfo_to_dict(self.store)["host"]
            self.links[name, "postgres"] = self.network.link_to_socket(f"{folder}/.s.PGSQL.5432")
            self.links[name, "nats"] = self.network.link_to_port(self.nats.port, self.losing)
        place = f"127.0.0.1:{self.links[name, 'postgres'].port}"
        store = urlunsplit(urlsplit(self.store)._replace(netloc=f"roost@{place}", query=""))
        return given | {
            "ROOST_STORE": store,
            "ROOST_CLUSTER__NATS": f"nats://127.0.0.1:{self.links[name, 'nats'].port}",
        }

    @property
    def config(self) -> Path:
        path = self.folder / "roost.toml"
        if not path.exists():
            (self.folder / "cluster_brains.py").write_text(BRAINS.read_text())
            profiles = "\n".join(f'[profiles.{name}]\nbrain = "cluster_brains:{name}"' for name in PROFILES)
            path.write_text(
                f'store = "{self.store}"\nsecret = "{SECRET}"\nuser = "ann"\n'
                f'[cluster]\nnats = "{self.nats.url}"\nlease = {self.lease}\n{profiles}\n'
            )
        return path

    def command(self, node: NodeProcess, *arguments: str) -> str:
        """Run a command on the machine of a node; return its output."""
        made = run(
            [sys.executable, "-m", "roost", *arguments, "--config", str(self.config)],
            env={**os.environ, "ROOST_DATA": str(node.folder), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return str(made.stdout)

    def ledger(self) -> list[tuple[float, int, list[str]]]:
        """Return what brains have noted: time, process, words."""
        path = self.folder / "ledger.txt"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []  # the last one may not be whole
        return [(float(time), int(pid), words) for time, pid, *words in (line.split() for line in lines)]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.store, autocommit=True) as connection:
            return connection.execute(sql).fetchall()

    def is_whole(self) -> bool:
        """Return whether all nodes answer and know each other."""
        try:
            for node in self.nodes.values():
                with node.connect(patience=1.0) as service:
                    if len(service.nodes.list("ann")) != len(self.nodes):
                        return False
        except (RoostError, OSError):
            return False
        return True

    def stop(self) -> None:
        for node in self.nodes.values():
            with suppress(ProcessLookupError):
                node.send(signal.SIGCONT)
                node.send(signal.SIGTERM)
        for node in self.nodes.values():
            try:
                node.process.wait(20)
            except subprocess.TimeoutExpired:
                node.kill()


@contextmanager
def cluster(
    folder: Path,
    store: str,
    *names: str,
    lease: float = 3.0,
    linked: bool = False,
    environment: dict[str, dict[str, str]] | None = None,
    losing: random.Random | None = None,
) -> Iterator[Cluster]:
    with nats_server(folder) as nats, network() if linked else nullcontext() as links:
        made = Cluster(folder, store, nats, lease, network=links, environment=environment or {}, losing=losing)
        try:
            made.start(*names)
            yield made
        finally:
            made.stop()
