"""Network in RAM between the Roosts of one process, for simulations and tests."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from roost.ports import Host

log = logging.getLogger("roost.transport")

Carry = Callable[[Callable[[bytes], None], bytes], None]
"""Calls a receiver with a message: once, twice, later or not at all."""


def _deliver(receive: Callable[[bytes], None], message: bytes) -> None:
    receive(message)


class MemoryNetwork:
    """Network between nodes; `carry` injects faults."""

    def __init__(self, carry: Carry = _deliver) -> None:
        self.carry = carry
        self.nodes: dict[str, MemoryTransport] = {}
        self.cut: set[str] = set()
        """Nodes that are cut off."""

    def send(self, sender: str, node: str, message: bytes) -> None:
        receiver = self.nodes.get(node)
        if receiver is not None and sender not in self.cut and node not in self.cut:
            self.carry(receiver.put, message)


class MemoryTransport:
    """Messages are received by a pump of the receiver's host, never inside the call that sends them."""

    def __init__(self, host: Host, network: MemoryNetwork) -> None:
        self._host = host
        self._network = network
        self._node = ""
        self._inbox: deque[bytes] = deque()

    @property
    def is_up(self) -> bool:
        return self._network.nodes.get(self._node) is self and self._node not in self._network.cut

    @property
    def problem(self) -> str:
        return "" if self.is_up else "this node is cut off"

    def refusal(self, seconds: float) -> str:
        return ""

    def start(self, node: str, receive: Callable[[bytes], None]) -> None:
        self._node = node
        self._pump = self._host.pump("roost-transport", partial(self._step, receive))
        self._network.nodes[node] = self

    def send(self, node: str, message: bytes) -> None:
        if self.is_up:
            self._network.send(self._node, node, message)

    def send_all(self, message: bytes) -> None:
        for node in list(self._network.nodes):
            if node != self._node:
                self.send(node, message)

    def put(self, message: bytes) -> None:
        self._inbox.append(message)
        self._pump.ring()

    async def close(self) -> None:
        if self.is_up:
            del self._network.nodes[self._node]
        self._inbox.clear()
        if self._node:
            self._pump.close()

    def _step(self, receive: Callable[[bytes], None]) -> None:
        while self._inbox:
            receive_safely(receive, self._inbox.popleft())


def receive_safely(receive: Callable[[bytes], None], message: bytes) -> None:
    try:
        receive(message)
    except Exception:  # the next messages count as well
        log.exception("a message from another node could not be handled")
