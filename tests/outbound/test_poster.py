"""The poster over real sockets: bounded in time and size, without redirects, and only to checked addresses."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from roost.core.webhooks.networks import LOOPBACK, NetworkPolicy
from roost.outbound import http_request
from roost.outbound.poster import HttpPoster
from roost.ports import PostResult
from tests.outbound.receiver import receiving, reply

OWN = HttpPoster(NetworkPolicy.of(LOOPBACK))


def post(poster: HttpPoster, url: str, seconds: float = 20.0) -> PostResult:
    return asyncio.run(poster.post(url, {"webhook-id": "msg_1"}, b"{}", seconds))


def test_a_request_arrives_with_its_headers_its_query_and_its_host() -> None:
    with receiving() as receiver:
        assert post(OWN, receiver.url) == PostResult(200)
    [(headers, body)] = receiver.requests
    assert body == b"{}"
    assert headers[":line"] == "POST /in?token=s3cret HTTP/1.1"
    assert (headers["webhook-id"], headers["host"]) == ("msg_1", f"127.0.0.1:{receiver.port}")


def test_a_redirect_is_not_followed() -> None:
    with receiving() as elsewhere:
        location = f"location: http://127.0.0.1:{elsewhere.port}/"
        with receiving(lambda connection: reply(connection, 307, b"", location)) as receiver:
            assert post(OWN, receiver.url).status == 307
    assert (len(receiver.requests), elsewhere.requests) == (1, [])


def test_a_receiver_that_hangs_is_given_up() -> None:
    def hang(_: socket.socket) -> None:
        receiver.released.wait(60)

    with receiving(hang) as receiver:
        started = time.monotonic()
        assert post(OWN, receiver.url, 0.5).error == "no reply within 0.5 s"
        assert time.monotonic() - started < 15


def test_a_receiver_that_answers_byte_by_byte_is_given_up() -> None:
    def trickle(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 500 X\r\ncontent-length: 1000000\r\n\r\n")
        while not receiver.released.wait(0.02):
            connection.sendall(b"x")

    with receiving(trickle) as receiver:
        assert post(OWN, receiver.url, 0.5).error == "no reply within 0.5 s"


def test_of_a_huge_reply_a_little_is_read() -> None:
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 500 X\r\n\r\n")
        with suppress(OSError):
            while True:
                sent.append(connection.send(b"y" * 65_536))

    sent: list[int] = []
    with receiving(flood) as receiver:
        result = post(OWN, receiver.url)
    assert (result.status, result.reply) == (500, "y" * 4096)
    assert sum(sent) < 64 * 1024 * 1024, "the connection was closed"


def test_a_reply_that_is_cut_off_has_its_status() -> None:
    for status in (200, 503):
        head = f"HTTP/1.1 {status} X\r\ncontent-length: 100\r\n\r\nhalf".encode()
        with receiving(lambda connection, head=head: connection.sendall(head)) as receiver:  # type: ignore[misc]
            assert post(OWN, receiver.url) == PostResult(status, reply="" if status == 200 else "half")


@pytest.mark.parametrize("head", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 999999 X\r\n\r\n", b"\x00" * 500_000])
def test_what_is_not_http_is_an_error(head: bytes) -> None:
    with receiving(lambda connection: connection.sendall(head)) as receiver:
        assert post(OWN, receiver.url) == PostResult(error="the host closed the connection, or its reply was not HTTP")


def test_a_port_where_nobody_listens_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert post(OWN, f"http://127.0.0.1:{port}/").error == "no connection to the host"


class Names:
    """Resolver that answers from a list, and another address each time it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


PRIVATE = [
    ["127.0.0.1"],
    ["10.0.0.7"],
    ["169.254.169.254"],
    ["::1"],
    ["::ffff:127.0.0.1"],
    ["fe80::1%eth0"],
    ["8.8.8.8", "127.0.0.1"],
    ["0.0.0.0"],
]


@pytest.mark.parametrize("addresses", PRIVATE)
def test_a_name_of_a_private_address_is_not_reached(addresses: list[str]) -> None:
    with receiving() as receiver:
        poster = HttpPoster(NetworkPolicy(), Names(addresses))
        result = post(poster, f"https://innocent.example:{receiver.port}/")
        assert "not allowed" in str(result.error)
        assert not any(address in str(result.error) for address in addresses), "internal names are not looked up"
    assert receiver.requests == []


def test_a_name_that_changes_its_address_is_resolved_once() -> None:
    names = Names(["127.0.0.1"], ["127.0.0.2"])
    with receiving() as receiver:
        poster = HttpPoster(NetworkPolicy.of(["127.0.0.1/32"]), names)
        assert post(poster, f"http://changing.example:{receiver.port}/") == PostResult(200)
        assert names.asked == ["changing.example"]
        assert "not allowed" in str(post(poster, f"http://changing.example:{receiver.port}/").error)
    [(headers, _)] = receiver.requests
    assert headers["host"] == f"changing.example:{receiver.port}"


def test_a_public_host_needs_https_also_if_its_url_was_stored_before() -> None:
    result = post(HttpPoster(NetworkPolicy(), Names(["8.8.8.8"])), "http://example.com/")
    assert result.error == "a host outside of the allowed networks needs https"


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as proxy, receiving() as receiver:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert post(OWN, receiver.url) == PostResult(200)
    assert (proxy.requests, len(receiver.requests)) == ([], 1)


def certified(folder: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """Return a file with a certificate that signs itself, and the context of a server that has it."""
    key, subject = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    form, no_password = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key").write_bytes(key.private_bytes(encoding, form, no_password))
    (folder / "cert").write_bytes(made.public_bytes(encoding))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    return folder / "cert", context


def test_the_certificate_must_be_that_of_the_name_in_the_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, context = certified(tmp_path, "good.example")
    poster = HttpPoster(NetworkPolicy.of(LOOPBACK), Names(["127.0.0.1"]))
    with receiving(tls=context) as receiver:
        assert (
            post(poster, f"https://good.example:{receiver.port}/").error == "the certificate of the host is not valid"
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        monkeypatch.setattr(http_request, "_tls", ssl.create_default_context)
        assert post(poster, f"https://good.example:{receiver.port}/") == PostResult(200)
        assert (
            post(poster, f"https://evil.example:{receiver.port}/").error == "the certificate of the host is not valid"
        )
    assert len(receiver.requests) == 1


def test_a_name_that_does_not_exist_is_an_error() -> None:
    async def fail(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(-2, "Name or service not known")

    assert post(HttpPoster(NetworkPolicy(), fail), "https://nobody.example/").error == (
        "the name of the host could not be resolved"
    )
