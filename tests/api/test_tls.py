"""HTTPS: the limits of connections hold before the handshake too, and a renewed certificate is used."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.sync.client import connect

import roost
from roost.api import tls
from roost.api.tls import Certificate
from roost.client import RemoteService
from tests.api.serving import Served, ask, serving
from tests.certificates import authority
from tests.conftest import Open, eventually

LIMITS = roost.Limits(connections_per_address=5, request_timeout=2.0, send_timeout=2.0)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    return authority(tmp_path)


@pytest.fixture
def served(service: Open, files: tuple[Path, Path, Path]) -> Iterator[Served]:
    _, certificate, key = files
    with serving(service(), tls_cert=certificate, tls_key=key, limits=LIMITS) as running:
        yield running


def trusting(authority: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority)


def opened(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), timeout=20)


def test_requests_and_websockets_are_served_over_tls(served: Served, files: tuple[Path, Path, Path]) -> None:
    with served.browser("ann") as ann:
        assert ask(ann, "agents.list").status_code == 200
        large = "x" * 300_000
        talk = served.service.create_talk_session("ann", profile="echo")
        assert ann.post(f"/api/v1/talks/{talk}/messages", json={"content": large}).status_code == 201
        assert large in ann.get(f"/api/v1/talks/{talk}/messages").text
    token = {"Authorization": f"Bearer {served.identity.token}"}
    address = served.url.replace("https", "wss") + "/rpc"
    with connect(address, ssl=trusting(files[0]), additional_headers=token) as client:
        client.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "agent.list", "params": {}}))
        assert json.loads(client.recv(timeout=30))["result"] == []


def test_a_client_trusts_exactly_the_certificate_that_was_announced(
    served: Served, files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = authority(tmp_path / "other")[1]
    address, token = served.url.replace("localhost", "127.0.0.1"), served.identity.token
    with RemoteService(address, token, certificate=files[1].read_text(), patience=5) as remote:
        assert remote.agents.list("ann") == []
    strict = RemoteService(address, token, certificate=other.read_text(), patience=0)
    with strict, pytest.raises(roost.Unavailable, match="is not trusted"):
        strict.agents.list("ann")
    with pytest.raises(roost.Invalid, match="must be in PEM format"):
        RemoteService(address, token, certificate="no certificate")


def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered(
    served: Served, files: tuple[Path, Path, Path]
) -> None:
    context, incoming, outgoing = trusting(files[0]), ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with opened(served) as wire:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                wire.sendall(outgoing.read())
                incoming.write(wire.recv(65536))
        tls.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        wire.sendall(outgoing.read())  # the end of the handshake and the request together
        answer = b""
        while b'"ok"' not in answer:
            incoming.write(wire.recv(65536))
            try:
                answer += tls.read(65536)
            except ssl.SSLWantReadError:
                continue
    assert answer.startswith(b"HTTP/1.1 200")


def test_connections_without_a_handshake_are_counted_and_aborted(served: Served) -> None:
    silent = [opened(served) for _ in range(LIMITS.connections_per_address)]
    eventually(lambda: len(served.connections) == LIMITS.connections_per_address)
    with served.browser("ann") as ann:  # the oldest makes room
        assert ask(ann, "agents.list").status_code == 200
        assert silent[0].recv(1) == b""
    for one in silent:
        one.close()
    eventually(lambda: len(served.connections) == 0)
    with opened(served) as late:
        assert late.recv(1) == b""  # it has sent nothing for `request_timeout`
    eventually(lambda: len(served.connections) == 0)


def test_plain_http_on_the_port_of_https_is_refused(served: Served) -> None:
    with opened(served) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = plain.recv(1000)
    assert b"HTTP" not in received
    eventually(lambda: len(served.connections) == 0)


def test_a_client_that_does_not_read_its_response_is_aborted(served: Served, files: tuple[Path, Path, Path]) -> None:
    talk = served.service.create_talk_session("local", profile="echo")
    for number in range(40):
        served.service.add_message("local", talk, "x" * 500_000, key=f"{number}", busy="queue")
    raw = opened(served)
    with trusting(files[0]).wrap_socket(raw, server_hostname="localhost") as wire:
        head = f"GET /api/v1/talks/{talk}/messages HTTP/1.1\r\nHost: localhost\r\n"
        wire.sendall(f"{head}Authorization: Bearer {served.identity.token}\r\n\r\n".encode())
        eventually(lambda: served.connections.aborted == 1)


def test_a_renewed_certificate_is_used_and_a_broken_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    _, file, key = authority(tmp_path / "old")
    _, new_file, new_key = authority(tmp_path / "new")
    certificate = Certificate(file, key)
    before = certificate.pem
    assert not certificate.read_again()
    shutil.copy(new_file, file)
    assert not certificate.read_again()  # the key is still the old one
    shutil.copy(new_key, key)
    assert certificate.read_again()
    assert certificate.pem != before
    assert not certificate.read_again()
    file.unlink()
    assert not certificate.read_again()


def test_certificates_are_followed_also_after_one_could_not_be_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, file, key = authority(tmp_path)
    certificate, announced = Certificate(file, key), asyncio.Event()
    monkeypatch.setattr(tls, "LOOK_AGAIN", 0.01)
    renewals: list[float] = []

    async def followed() -> None:
        loop = asyncio.get_running_loop()

        def renewed() -> None:
            renewals.append(time.monotonic())
            if len(renewals) == 1:
                file.touch()
                raise OSError("no space left on device")
            loop.call_soon_threadsafe(announced.set)

        following = asyncio.create_task(certificate.follow(renewed))
        file.touch()
        async with asyncio.timeout(30):
            await announced.wait()
        following.cancel()

    asyncio.run(followed())
    assert len(renewals) == 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nowhere.pem", "cannot be read: No such file"),
        ("server.key", "does not hold a certificate and its key: name the key with --tls-key"),
        ("authority.pem", "is not that of the certificate"),
        ("empty.pem", "is not valid"),
        ("", "cannot be read"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path, name: str, told: str) -> None:
    _, _, key = authority(tmp_path)
    (tmp_path / "empty.pem").touch()
    with pytest.raises(roost.Invalid, match=told):
        Certificate(tmp_path / name, key)


def test_a_key_with_a_password_is_refused_without_asking(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as pem

    _, certificate, key = authority(tmp_path)
    loaded = pem.load_pem_private_key(key.read_bytes(), None)
    locked = pem.BestAvailableEncryption(b"password")
    key.write_bytes(loaded.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, locked))
    with pytest.raises(roost.Invalid, match="without a password"):
        Certificate(certificate, key)
