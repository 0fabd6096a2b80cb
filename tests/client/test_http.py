"""Answers as servers and proxies send them: whole, in chunks, until the connection ends; and what is no answer."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

import roost
from roost.client.http import HttpClient
from roost.client.network import AsyncNetwork, BlockingNetwork
from roost.client.outages import NOTED
from roost.hosts.pending import drive

Ask = Callable[[str], Any]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def answering(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives each connection its answer and closes it; its URL, and what it was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                connection, _ = listener.accept()
                with connection, suppress(OSError):  # a client that has seen enough leaves
                    asked.append(connection.recv(65536))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
        thread.join(10)


@pytest.fixture(params=["plain", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    async def once(wire: HttpClient) -> Any:
        try:
            return await wire.ask("GET", "/things", "ann", repeatable=False)
        finally:
            await wire.close()

    if request.param == "plain":
        return lambda url: drive(once(HttpClient(BlockingNetwork, url, "token")))
    return lambda url: asyncio.run(once(HttpClient(AsyncNetwork, url, "token")))


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"Content-Length: 8\r\n\r\n[1, 2.5]",
        HEAD + b"content-length:8\r\nConnection: close\r\n\r\n[1, 2.5]",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n5;x=y\r\n 2.5]\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: Chunked\r\n\r\n8\r\n[1, 2.5]\r\n0\r\nTrailer: x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"Content-Length: 8\r\n\r\n[1, 2.5]",
        b"HTTP/1.0 200 OK\r\nContent-Length: 8\r\n\r\n[1, 2.5]",
    ],
    ids=["length", "to be closed", "chunks", "trailer", "continue", "old"],
)
def test_an_answer_is_read_however_it_is_sent(ask: Ask, answer: bytes) -> None:
    with answering(answer) as (url, asked):
        assert ask(url) == [1, 2.5]
    [request] = asked
    lines = request.decode().split("\r\n")
    assert lines[0] == "GET /api/v1/things HTTP/1.1"
    assert {f"Host: {url.removeprefix('http://')}", "Authorization: Bearer token", "Roost-User: ann"} <= set(lines)


def test_an_answer_without_content_is_nothing(ask: Ask) -> None:
    with answering(b"HTTP/1.1 204 No Content\r\n\r\n") as (url, _):
        assert ask(url) is None


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        HEAD + b"\r\n[1, 2.5]",
        HEAD + b"Content-Length: 9\r\n\r\n[1, 2.5]",
        HEAD + b"Content-Length: -1\r\n\r\n[1, 2.5]",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-8\r\n[1, 2.5]\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n8\r\n[1, 2.5]\r\n",
        HEAD + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
        HEAD + b"X: x\r\n" * 300 + b"\r\n",
    ],
    ids=[
        "nothing",
        "no HTTP",
        "no status",
        "no end",
        "too short",
        "no length",
        "no size",
        "no last chunk",
        "long line",
        "many headers",
    ],
)
def test_what_is_cut_off_or_no_answer_is_unavailable(ask: Ask, answer: bytes) -> None:
    with answering(answer) as (url, _), pytest.raises(roost.Unavailable, match="cannot reach the server"):
        ask(url)


def test_the_wrong_scheme_is_named(ask: Ask) -> None:
    with answering(b"") as (url, _), pytest.raises(roost.Unavailable, match="use https:// if it uses TLS"):
        ask(url)
    with (
        answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as (url, _),
        pytest.raises(roost.Unavailable, match="does not use TLS: use http://"),
    ):
        ask(url.replace("http:", "https:"))


def test_a_long_outage_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    wire = HttpClient(BlockingNetwork, url, "token", patience=NOTED + 2)
    with pytest.raises(roost.Unavailable, match="cannot reach the server"):
        drive(wire.ask("GET", "/things", "ann", repeatable=True))
    drive(wire.close())
    [noted] = [one.getMessage() for one in caplog.records if one.name == "roost.client"]
    assert noted.startswith(f"cannot reach the server at {url}; trying again for ")


def test_an_answer_that_is_too_large_is_refused_before_it_is_read(ask: Ask) -> None:
    with (
        answering(HEAD + b"Content-Length: 999999999999\r\n\r\n") as (url, _),
        pytest.raises(roost.Unavailable, match="too large"),
    ):
        ask(url)


def test_what_is_no_roost_says_so(ask: Ask) -> None:
    with (
        answering(HEAD + b"Content-Length: 6\r\n\r\n<html>") as (url, _),
        pytest.raises(roost.Unavailable, match="is not a Roost"),
    ):
        ask(url)
