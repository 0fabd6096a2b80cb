"""Every transport between nodes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from roost.hosts.pending import drive
from roost.hosts.threads import ThreadHost
from roost.ports import Transport
from roost.transports.memory import MemoryNetwork, MemoryTransport
from roost.transports.nats import NatsServers, NatsTransport
from tests.conftest import eventually
from tests.transports.nats_server import NatsServer, nats_server


class Node:
    """A node that keeps what it receives."""

    def __init__(self, name: str, transport: Transport) -> None:
        self.transport = transport
        self.received: list[bytes] = []
        self.failing: set[bytes] = set()
        """Messages that it fails to handle."""
        transport.start(name, self._receive)
        eventually(lambda: transport.is_up)

    def _receive(self, message: bytes) -> None:
        self.received.append(message)
        if message in self.failing:
            raise RuntimeError("broken")


Join = Callable[[str], Node]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture(params=["memory", "nats"])
def join(request: pytest.FixtureRequest) -> Iterator[Join]:
    """Start nodes of one cluster; they are closed at the end."""
    network = MemoryNetwork()
    with ExitStack() as nodes:

        def joined(name: str) -> Node:
            if request.param == "nats":
                servers = NatsServers((request.getfixturevalue("server").url,))
                transport: Transport = NatsTransport(ThreadHost(), servers, request.node.name.partition("[")[0])
            else:
                transport = MemoryTransport(ThreadHost(), network)
            node = Node(name, transport)
            nodes.callback(lambda: drive(transport.close()))
            return node

        yield joined


def test_a_message_reaches_its_node_and_no_other(join: Join) -> None:
    a, b, c = join("a"), join("b"), join("c")
    a.transport.send("b", b"for b")
    a.transport.send("c", b"for c")
    eventually(lambda: b.received and c.received)
    assert (a.received, b.received, c.received) == ([], [b"for b"], [b"for c"])


def test_a_message_to_all_reaches_all_but_its_sender(join: Join) -> None:
    a, b, c = join("a"), join("b"), join("c")
    a.transport.send_all(b"all")
    b.transport.send("a", b"back")
    eventually(lambda: a.received and b.received and c.received)
    assert (a.received, b.received, c.received) == ([b"back"], [b"all"], [b"all"])


def test_bytes_of_any_kind_and_size_arrive_unchanged_and_in_order(join: Join) -> None:
    a, b = join("a"), join("b")
    messages = [b"", b"\x00\r\n\xff", bytes(range(256)) * 4, b"x" * 500_000, b"last"]
    for message in messages:
        a.transport.send("b", message)
    eventually(lambda: len(b.received) == len(messages))
    assert b.received == messages


def test_messages_of_many_threads_all_arrive_in_the_order_of_each(join: Join) -> None:
    a, b = join("a"), join("b")

    def send(thread: int) -> None:
        for number in range(200):
            a.transport.send("b", b"%d %d" % (thread, number))

    threads = [threading.Thread(target=send, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    eventually(lambda: len(b.received) == 1_600)
    for number in range(8):
        of_thread = [one for one in b.received if one.startswith(b"%d " % number)]
        assert of_thread == [b"%d %d" % (number, count) for count in range(200)]


def test_a_message_to_an_unknown_node_disappears(join: Join) -> None:
    a, b = join("a"), join("b")
    a.transport.send("nobody", b"lost")
    a.transport.send("b", b"next")
    eventually(lambda: b.received)
    assert b.received == [b"next"]


def test_a_receiver_that_fails_receives_the_next_message(join: Join, caplog: pytest.LogCaptureFixture) -> None:
    a, b = join("a"), join("b")
    b.failing = {b"one"}
    a.transport.send("b", b"one")
    a.transport.send("b", b"two")
    eventually(lambda: b"two" in b.received)
    assert b.received == [b"one", b"two"]
    assert "could not be handled" in caplog.text


def test_a_closed_node_receives_nothing_and_its_sends_disappear(join: Join) -> None:
    a, b = join("a"), join("b")
    drive(b.transport.close())
    assert not b.transport.is_up
    a.transport.send("b", b"late")
    b.transport.send("a", b"from a closed node")
    join("c").transport.send("a", b"last")
    eventually(lambda: a.received)
    assert (a.received, b.received) == ([b"last"], [])


def test_a_transport_that_never_started_loses_messages_and_closes() -> None:
    for transport in (
        MemoryTransport(ThreadHost(), MemoryNetwork()),
        NatsTransport(ThreadHost(), NatsServers(("nats://127.0.0.1:1",)), "x"),
    ):
        transport.send("a", b"x")
        transport.send_all(b"x")
        assert not transport.is_up
        assert transport.problem
        drive(transport.close())
