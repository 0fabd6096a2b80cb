"""Connections to NATS: lost, refused, encrypted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roost.hosts.pending import drive
from roost.hosts.threads import ThreadHost
from roost.transports.nats import LARGEST, NatsServers, NatsTransport
from tests.certificates import authority
from tests.conftest import eventually
from tests.transports.nats_server import nats_server

PASSWORD = "kept-secret-here"


@contextmanager
def node(servers: NatsServers, name: str = "a") -> Iterator[tuple[NatsTransport, list[bytes]]]:
    transport = NatsTransport(ThreadHost(), servers, "cluster")
    received: list[bytes] = []
    transport.start(name, received.append)
    try:
        yield transport, received
    finally:
        drive(transport.close())


def test_messages_flow_again_after_the_server_was_killed_and_what_was_sent_meanwhile_is_lost(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server:
        servers = NatsServers((server.url,))
        with node(servers) as (a, _), node(servers, "b") as (b, received):
            for _ in range(3):
                eventually(lambda: a.is_up and b.is_up)
                a.send("b", b"up")
                eventually(lambda: received)
                server.kill()
                eventually(lambda: not a.is_up and not b.is_up)
                assert "cannot be used" in eventually(lambda: a.problem)
                a.send("b", b"down")
                server.restart()
                assert received == [b"up"]
                received.clear()
            assert a.dropped == 3


def test_a_node_that_starts_before_the_server_connects_later(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server:
        server.kill()
        with node(NatsServers((server.url,))) as (a, _):
            eventually(lambda: "cannot be used" in a.problem)
            server.restart()
            eventually(lambda: a.is_up)
            assert a.problem == ""


def test_the_next_server_is_used_when_one_is_down(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server, node(NatsServers(("nats://127.0.0.1:1", server.url))) as (a, _):
        eventually(lambda: a.is_up)


def test_a_message_that_is_too_large_is_dropped_and_the_connection_stays(tmp_path: Path) -> None:
    with nats_server(tmp_path) as server:
        servers = NatsServers((server.url,))
        with node(servers) as (a, _), node(servers, "b") as (b, received):
            eventually(lambda: a.is_up and b.is_up)
            a.send("b", b"x" * (LARGEST + 1))
            a.send("b", b"x" * LARGEST)
            assert len(eventually(lambda: received)[0]) == LARGEST
            assert a.dropped == 1


def test_wrong_credentials_are_reported_once_and_without_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with nats_server(tmp_path, "--user", "roost", "--pass", "right") as server:
        wrong = server.url.replace("//", f"//roost:{PASSWORD}@")
        with node(NatsServers((wrong,))) as (a, _):
            eventually(lambda: "refuses these credentials" in a.problem)
            assert not a.is_up
        with node(NatsServers((server.url.replace("//", "//roost:right@"),))) as (b, _):
            eventually(lambda: b.is_up)
    assert PASSWORD not in caplog.text + a.problem
    assert caplog.text.count("refuses these credentials") == 1


def test_connections_are_encrypted_and_the_server_is_verified(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ca, cert, key = authority(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    with nats_server(tmp_path, "--tls", "--tlscert", str(cert), "--tlskey", str(key)) as server:
        with node(NatsServers((server.url.replace("nats:", "tls:"),), ca=authority(other)[0])) as (a, _):
            assert "certificate verify failed" in eventually(lambda: a.problem if "cannot" in a.problem else "")
        with node(NatsServers((server.url,), ca=ca)) as (b, _):
            eventually(lambda: b.is_up)
