"""A hostile client of `/rpc`: the server stays up, its memory is bounded, and others are answered.

The same with a server in a process of its own is in test_attacks.py.
"""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from tests.api.rpc.connection import Client, opened
from tests.api.serving import Served
from tests.conftest import eventually
from tests.faults.raw_http import answer, request


def answer_time(served: Served) -> float:
    """Return how long another user waits for an answer."""
    with opened(served, "bob") as other:
        client = Client(other)
        start = time.perf_counter()
        assert client.call("agent.list") == []
        return time.perf_counter() - start


def memory() -> float:
    """Return the resident memory of this process, in which the server runs, in MiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) / 256


@contextmanager
def raw_socket(served: Served, user: str) -> Iterator[socket.socket]:
    """A connection whose frames are written by hand."""
    with socket.create_connection(("127.0.0.1", urlsplit(served.url).port or 80), 15) as client:
        key = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + "A" * 22
        client.sendall(request(served, "GET", "/rpc", user, f"{key}=="))
        assert b" 101 " in answer(client)
        yield client


def closing_code(client: socket.socket) -> int | None:
    """Return the code with which the server closes the connection; None if it was reset."""
    received = b""
    with suppress(ConnectionError):
        while data := client.recv(65_536):
            received += data
    place = received.rfind(b"\x88")
    return None if place < 0 else int.from_bytes(received[place + 2 : place + 4])


def test_a_million_bytes_of_broken_frames_have_an_error_each(served: Served) -> None:
    chance, sent, codes = random.Random(7), 0, set()
    with opened(served) as client:
        while sent < 1_000_000:
            frame = chance.randbytes(chance.randint(1, 4_000))
            sent += len(frame)
            client.send(frame if chance.random() < 0.5 else frame.decode("latin-1"))
            codes.add(json.loads(client.recv(timeout=15))["error"]["code"])
        assert codes == {-32700}
        assert Client(client).call("agent.list") == []
    assert answer_time(served) < 1


def test_a_million_bytes_that_are_no_frames_close_their_connections_and_cost_no_memory(served: Served) -> None:
    chance, before = random.Random(11), memory()
    for _ in range(64):
        with raw_socket(served, "ann") as client, suppress(OSError):
            client.sendall(chance.randbytes(16_384))
            client.shutdown(socket.SHUT_WR)
            assert closing_code(client) in (1002, 1007, 1009, None)
    assert answer_time(served) < 5
    assert memory() - before < 64
    eventually(lambda: len(served.connections) == 0)


@pytest.mark.parametrize(
    "data", ["[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000, '{"a":' * 900 + "1" + "}" * 900]
)
def test_deep_nesting_is_refused(served: Served, data: str) -> None:
    with opened(served) as client:
        for text in (
            data,
            f'{{"jsonrpc": "2.0", "id": 1, "method": "event.publish", "params": {{"name": "a", "data": {data}}}}}',
        ):
            client.send(text)
            assert json.loads(client.recv(timeout=15))["error"]["code"] in (-32700, -32600, -32602)
        assert Client(client).call("event.history") == []


def test_a_message_of_64_mebibytes_closes_its_connection_and_costs_no_memory(served: Served) -> None:
    before, part = memory(), b"x" * 2**20
    head = b"\x81\xff" + (64 * 2**20).to_bytes(8) + b"mask"
    with raw_socket(served, "ann") as client:
        client.sendall(head)
        with suppress(ConnectionError):
            for _ in range(64):
                client.sendall(part)
        assert closing_code(client) in (1009, None), "or it was reset while it was sending"
    assert answer_time(served) < 1
    assert memory() - before < 64


def test_half_open_connections_do_not_hinder_others(served: Served) -> None:
    before = memory()
    address = urlsplit(served.url)
    head = f"GET /rpc HTTP/1.1\r\nHost: {address.netloc}\r\nUpgrade: websocket\r\n".encode()
    with ExitStack() as half_open:
        for _ in range(1_000):
            client = half_open.enter_context(socket.create_connection(("127.0.0.1", address.port or 80), 10))
            client.sendall(head)
        assert answer_time(served) < 5
        assert memory() - before < 64
    assert answer_time(served) < 5


def test_clients_that_leave_in_the_middle_of_waits_leave_nothing_behind(served: Served) -> None:
    for _ in range(30):
        client = opened(served)
        for number in range(20):
            client.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": "mail.wait", "params": {"after": "0"}}))
        client.socket.close()
    with opened(served) as remaining:
        waiting = Client(remaining)
        eventually(lambda: "result" in waiting.ask("mail.wait", after="0", timeout=0))
        served.service.mail.send("ann", "user:ann", "news", "words")
        assert [mail["subject"] for mail in waiting.call("mail.wait", after="0")["mail"]] == ["news"]
