"""A hostile client of `/rpc`: the server stays up, its memory is bounded, and others are answered."""

from __future__ import annotations

import json
import random
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed

from tests.api.rpc.connection import Client, opened
from tests.api.serving import Served
from tests.conftest import eventually


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
    before = memory()
    text = "x" * (64 * 2**20)
    with opened(served) as client, pytest.raises(ConnectionClosed) as closed:
        client.send(text)
        client.recv(timeout=30)
    assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
    del text
    assert answer_time(served) < 1
    assert memory() - before < 64


def test_half_open_connections_do_not_hinder_others(served: Served) -> None:
    address = urlsplit(served.url)
    head = f"GET /rpc HTTP/1.1\r\nHost: {address.netloc}\r\nUpgrade: websocket\r\n".encode()
    with ExitStack() as half_open:
        for _ in range(200):
            client = half_open.enter_context(socket.create_connection(("127.0.0.1", address.port or 80), 10))
            client.sendall(head)
        assert answer_time(served) < 1
    assert answer_time(served) < 1


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
