"""Servers that send what they should not, and programs that use one client in every way at once."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import roost
from roost.client import AsyncRemoteService, RemoteService, connect
from roost.client import http as client_http
from tests.api.serving import Served
from tests.client.conftest import Dial
from tests.client.test_http import HEAD, answering
from tests.conftest import eventually

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
MESSAGE = (
    b'{"message":{"seq":1,"sender":"agent","status":"complete","created":"2030-01-01T00:00:00Z"},'
    b'"text":"%b","offset":0,"cursor":"c1"}'
)
END = b"event: end\ndata: {}\n\n"
ME = b'{"userId":"ann","scopes":["*"],"role":null}'


def event(text: bytes) -> bytes:
    return b"event: change\nid: c1\ndata: " + MESSAGE % text + b"\n\n"


def answer(body: bytes, head: bytes = HEAD) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


# --- servers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"[]", b"null", b'"x"', b'{"userId":5}', b"{}", b"[" * 100_000, b"\xff\xfe", b"nan"])
def test_a_reply_of_another_kind_is_unavailable(dial: Dial, body: bytes) -> None:
    calls: list[Callable[[RemoteService], object]] = [
        lambda s: s.me(),
        lambda s: s.agents.get("ann", "d"),
        lambda s: s.get_messages("ann", "talk_1"),
    ]
    for call in calls:
        with answering(answer(body)) as (url, _), dial(url, "secret-token") as remote:
            with pytest.raises(roost.Unavailable, match="is not a Roost") as refused:
                call(remote)
            assert "secret-token" not in str(refused.value)


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"message":1}', b"\xff\xfe"])
def test_an_event_of_another_kind_is_unavailable(dial: Dial, data: bytes) -> None:
    with (
        answering(STREAM + b"event: change\ndata: " + data + b"\n\n") as (url, _),
        dial(url, "token") as remote,
        pytest.raises(roost.Unavailable, match="is not a Roost"),
    ):
        list(remote.stream_messages("ann", "talk_1"))


def test_half_an_event_is_read_again_and_not_twice(dial: Dial) -> None:
    whole = event(b"hello") + END
    with (
        answering(STREAM + whole[:60], STREAM + b": ping\n\nretry: 5\n\nevent: other\ndata: x\n\n" + whole) as (url, _),
        dial(url, "token") as remote,
    ):
        assert [change.text for change in remote.stream_messages("ann", "talk_1")] == ["hello"]


def test_a_large_event_is_read_and_a_boundless_one_refused(dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"x" * 10 * 1024 * 1024
    with answering(STREAM + event(text) + END) as (url, _), dial(url, "token") as remote:
        assert [len(change.text) for change in remote.stream_messages("ann", "talk_1")] == [len(text)]
    monkeypatch.setattr("roost.client.network.LARGEST_EVENT", 100_000)
    with (
        answering(STREAM + event(text)) as (url, _),
        dial(url, "token", patience=0) as remote,
        pytest.raises(roost.Unavailable),
    ):
        list(remote.stream_messages("ann", "talk_1"))


def test_a_stream_of_another_content_type_is_unavailable(dial: Dial) -> None:
    page = answer(b"<html>", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
    with answering(page) as (url, _), dial(url, "token", patience=0) as remote, pytest.raises(roost.Unavailable):
        list(remote.stream_messages("ann", "talk_1"))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(dial: Dial, status: int) -> None:
    with untouched() as elsewhere:
        head = f"HTTP/1.1 {status} Moved\r\nLocation: {elsewhere}/api/v1/me\r\n".encode()
        with answering(answer(b"", head), answer(b"", head)) as (url, _), dial(url, "token") as remote:
            with pytest.raises(roost.Unavailable, match="redirects"):
                remote.me()
            with pytest.raises(roost.Unavailable):
                list(remote.stream_messages("ann", "talk_1"))


@contextmanager
def untouched() -> Iterator[str]:
    """The URL of a server that must not get a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_response_that_never_ends_is_given_up(dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_http, "LONGEST_BODY", 0.05)
    with trickling() as url, dial(url, "token") as remote, pytest.raises(roost.Unavailable, match="takes longer"):
        remote.me()


def test_a_head_that_arrives_byte_by_byte_is_given_up(dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_http, "READ_TIMEOUT", 0.3)
    refused = pytest.raises(roost.Unavailable, match="cannot reach")
    with trickling(b"X-Never: ") as url, dial(url, "token", patience=0) as remote, refused:
        remote.me()


@contextmanager
def trickling(rest: bytes = b"Content-Length: 1000000\r\n\r\n") -> Iterator[str]:
    """A server that sends one byte after the other, without end, after the rest of its head."""
    leaving = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.sendall(HEAD + rest)
                while not leaving.wait(0.01):
                    connection.sendall(b" ")

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        leaving.set()
        thread.join(10)


# --- TLS -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate of localhost, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(private)
    return folder / "cert.pem", folder / "key.pem"


@contextmanager
def secure(certificate: tuple[Path, Path], reply: bytes) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with suppress(OSError), context.wrap_socket(connection, server_side=True) as tls:
                tls.recv(65536)
                tls.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://localhost:{listener.getsockname()[1]}"
        thread.join(10)


def test_a_certificate_is_trusted_by_its_file(dial: Dial, certificate: tuple[Path, Path]) -> None:
    with secure(certificate, answer(ME)) as url, dial(url, "token", ca_file=certificate[0]) as remote:
        assert remote.me().user_id == "ann"


def test_an_unknown_certificate_is_refused_at_once(dial: Dial, certificate: tuple[Path, Path]) -> None:
    with (
        secure(certificate, answer(ME)) as url,
        dial(url, "token") as remote,
        pytest.raises(roost.Unavailable, match=r"certificate of https://localhost.* is not trusted.*ca_file"),
    ):
        remote.me()


def test_a_file_without_certificates_is_refused(dial: Dial, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    for name in ("no.pem", "missing.pem"):
        with pytest.raises(roost.Invalid, match="PEM"), dial("https://localhost:1", ca_file=tmp_path / name):
            pass


# --- programs --------------------------------------------------------------------------------------------


def test_one_client_serves_twenty_threads(served: Served) -> None:
    token = served.service.tokens.create("ann", "test").secret

    def converse(number: int) -> str:
        talk = remote.create_talk_session("ann", profile="parrot")
        remote.add_message("ann", talk, f"word{number}")
        return list(remote.stream_messages("ann", talk))[-1].message.content

    with connect(served.url, token) as remote, ThreadPoolExecutor(20) as pool:
        assert list(pool.map(converse, range(40))) == [f"word{number} " for number in range(40)]


@pytest.mark.parametrize(
    "call",
    [
        lambda s, talk: list(s.stream_messages("ann", talk, follow=True)),
        lambda s, talk: next(s.mail.follow("ann")),
        lambda s, talk: s.tasks.wait("ann", s.tasks.send("ann", "d", "never")),
    ],
    ids=["stream", "long poll", "wait"],
)
def test_closing_a_client_ends_what_waits_in_other_threads(
    served: Served, call: Callable[[RemoteService, str], object]
) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")
    served.service.agents.create("ann", "d", start=False)
    before = len(served.connections)
    remote = connect(served.url, served.identity.token)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(call, remote, talk)
        eventually(lambda: len(served.connections) > before)
        remote.close()
        with pytest.raises(roost.Unavailable, match="closed"):
            waiting.result(10)


def test_a_child_of_a_fork_has_connections_of_its_own(served: Served) -> None:
    with connect(served.url, served.identity.token) as remote:
        own, childs = (remote.create_talk_session("ann", profile="parrot") for _ in range(2))
        remote.me()  # on a connection that stays open
        if (child := os.fork()) == 0:  # ends without the clean-up of this process
            status = 1
            with suppress(BaseException):
                status = 0 if reads_only(remote, childs) else 1
            os._exit(status)
        assert reads_only(remote, own)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def reads_only(remote: RemoteService, talk: str) -> bool:
    """Return whether each answer is that of its request."""
    return all(remote.get_session("ann", talk).talk_session_id == talk for _ in range(100))


def test_cancelled_calls_leave_no_task_and_no_socket(served: Served) -> None:
    served.service.agents.create("ann", "d", start=False)
    task = served.service.tasks.send("ann", "d", "never")
    talk = served.service.create_talk_session("ann", profile="parrot")

    async def follow(service: AsyncRemoteService) -> None:
        async for _ in service.stream_messages("ann", talk, follow=True):
            pass

    async def main() -> set[Any]:
        service = roost.aconnect(served.url, served.identity.token)
        doing: list[asyncio.Task[Any]] = [asyncio.create_task(service.tasks.wait("ann", task)) for _ in range(5)]
        doing += [asyncio.create_task(follow(service)) for _ in range(5)]
        await asyncio.to_thread(eventually, lambda: len(served.connections) >= 10)
        for one in doing:
            one.cancel()
        await asyncio.gather(*doing, return_exceptions=True)
        assert all(one.cancelled() for one in doing)
        await service.close()
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(main()) == set()
    gc.collect()  # a socket that was left open would warn, which is an error
    eventually(lambda: len(served.connections) == 0)


def test_closing_an_async_client_ends_what_waits(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")

    async def main() -> BaseException:
        service = roost.aconnect(served.url, served.identity.token)
        stream = service.stream_messages("ann", talk, follow=True)
        reading = asyncio.ensure_future(anext(stream))
        await asyncio.to_thread(eventually, lambda: len(served.connections) >= 1)
        await service.close()
        [error] = await asyncio.gather(reading, return_exceptions=True)
        assert isinstance(error, BaseException)
        return error

    assert "closed" in str(asyncio.run(main()))


def test_an_async_client_can_be_closed_at_every_step_of_a_request(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")

    async def closed_after(steps: int) -> BaseException:
        service = roost.aconnect(served.url, served.identity.token)
        reading = asyncio.ensure_future(anext(service.stream_messages("ann", talk, follow=True)))
        for _ in range(steps):
            await asyncio.sleep(0)
        await service.close()
        [error] = await asyncio.wait_for(asyncio.gather(reading, return_exceptions=True), 30)
        assert isinstance(error, BaseException)
        return error

    async def main() -> set[str]:
        return {str(await closed_after(steps)) for steps in range(60)}

    assert asyncio.run(main()) == {"this client is closed"}
    gc.collect()  # a socket that was left open would warn, which is an error
