"""Asking servers that may be anything: absent, slow, endless, hostile."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.connections.local_servers import LONGEST_NAME, find, names_in, places
from roost.connections.providers import PROVIDERS, ProviderInfo, try_key
from roost.errors import Invalid, Unavailable

KEY = "sk-canary-0123456789"
Act = Callable[[socket.socket], None]
Serve = Callable[[Act], int]


def reply(body: str, status: str = "200 OK", headers: str = "") -> Act:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body.encode())}\r\n{headers}\r\n"
    return lambda peer: peer.sendall((head + body).encode())


def raw(data: bytes) -> Act:
    return lambda peer: peer.sendall(data)


def hang(peer: socket.socket) -> None:
    with suppress(OSError):
        peer.settimeout(5)
        peer.recv(1)  # until the other side gives up


def endless(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        peer.sendall(b" " * 65_536)


@pytest.fixture
def asked() -> list[bytes]:
    return []


@pytest.fixture
def serve(asked: list[bytes]) -> Iterator[Serve]:
    """Start a server that does one thing with each connection; return its port."""
    listening: list[socket.socket] = []

    def started(act: Act) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        listening.append(server)

        def run() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = server.accept()
                    with peer, suppress(OSError):
                        asked.append(peer.recv(65_536))
                        act(peer)

        threading.Thread(target=run, daemon=True).start()
        return int(server.getsockname()[1])

    yield started
    for server in listening:
        server.close()


def test_servers_are_found_in_order_beside_those_that_hang_or_talk_nonsense(serve: Serve) -> None:
    models = '{"data": [{"id": "a"}, {"id": "b"}, {"id": "a"}, {"id": "x\\u001b[31m"}, {"id": 5}, "c"]}'
    acts = [hang, raw(b"garbage\r\n\r\n"), reply("<html>"), endless, reply("[" * 100_000), raw(b""), reply("{}")]
    ports = [serve(act) for act in (*acts, reply(models), reply("", "500 No"), reply('{"data": [{"id": "z"}]}'))]
    began = time.monotonic()
    found = find([(f"server {number}", port) for number, port in enumerate(ports)], timeout=0.6)
    assert time.monotonic() - began < 1.5
    assert [(server.name, server.models) for server in found] == [("server 7", ("a", "b")), ("server 9", ("z",))]
    assert found[0].url == f"http://127.0.0.1:{ports[7]}/v1"


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.just("id"), one))
)
def test_only_short_printable_names_are_taken(listed: object) -> None:
    for name in names_in({"data": listed}):
        assert name.isprintable()
        assert 0 < len(name.strip()) == len(name) <= LONGEST_NAME


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("127.0.0.1:11500", 11500),
        ("http://localhost:11501", 11501),
        ("0.0.0.0:11502", 11502),
        ("[::1]:11503", 11503),
        ("example.com:80", 11434),
        ("10.0.0.1:11500", 11434),
        ("127.0.0.1:99999999", 11434),
        ("[", 11434),
        ("", 11434),
    ],
)
def test_only_ports_of_this_machine_are_asked(host: str, port: int) -> None:
    assert dict(places({"OLLAMA_HOST": host}))["Ollama"] == port


def at(port: int, name: str = "openai") -> ProviderInfo:
    return replace(PROVIDERS[name], url=f"http://127.0.0.1:{port}/v1/models")


@pytest.mark.parametrize(("name", "header"), [("openai", b"Bearer "), ("anthropic", b"X-Api-Key: ")])
def test_a_good_key_is_sent_once_in_its_header(serve: Serve, asked: list[bytes], name: str, header: bytes) -> None:
    try_key(at(serve(reply("{}")), name), KEY)
    assert len(asked) == 1
    assert header + KEY.encode() in asked[0]
    assert KEY.encode() not in asked[0].partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (reply(KEY, "401 Unauthorized"), Invalid, "OpenAI refuses this key"),
        (reply(KEY, "403 Forbidden"), Invalid, "OpenAI refuses this key"),
        (reply(KEY, "500 Broken"), Unavailable, "status 500"),
        (raw(b"\x00\xff"), Unavailable, "cannot be reached"),
        (reply("not JSON " + KEY), Unavailable, "cannot be reached"),
        (hang, Unavailable, "cannot be reached"),
    ],
)
def test_a_key_that_is_not_accepted_is_one_sentence(serve: Serve, act: Act, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        try_key(at(serve(act)), KEY, timeout=0.3)
    assert KEY not in str(raised.value)
    assert raised.value.__suppress_context__


def test_a_redirect_does_not_take_the_key_elsewhere(serve: Serve, asked: list[bytes]) -> None:
    other = serve(reply("{}"))
    with pytest.raises(Unavailable, match="status 302"):
        try_key(at(serve(reply("", "302 Found", f"Location: http://127.0.0.1:{other}/\r\n"))), KEY)
    assert len(asked) == 1


def test_a_key_whose_limit_is_reached_is_accepted(serve: Serve, asked: list[bytes]) -> None:
    try_key(at(serve(reply("{}", "429 Too Many Requests"))), KEY)  # raises nothing
    assert len(asked) == 1
