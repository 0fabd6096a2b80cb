"""Transport: messages between the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Transport(Protocol):
    """Any thread may call; no call but `refusal` waits for the network, and none raises.

    A message may be lost, doubled, late or out of order, so receivers also poll the store.
    """

    @property
    def is_up(self) -> bool:
        """Return False while all messages are lost."""
        ...

    @property
    def problem(self) -> str:
        """Return why it is not up, for people; empty if it is."""
        ...

    def refusal(self, seconds: float) -> str:
        """Return why servers refuse this node or are not trusted; empty if they do not, or cannot be reached.

        Wait up to `seconds` for the first attempt to connect.
        """
        ...

    def start(self, node: str, receive: Callable[[bytes], None]) -> None:
        """Receive the messages to this node and to all nodes, one at a time. `receive` must not block."""
        ...

    def send(self, node: str, message: bytes) -> None:
        """Send a message to one node."""
        ...

    def send_all(self, message: bytes) -> None:
        """Send a message to all other nodes."""
        ...

    async def close(self) -> None:
        """Send what was given, for a bounded time, and receive nothing more."""
        ...
