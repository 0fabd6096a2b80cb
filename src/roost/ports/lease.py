"""Lease: the right of a node to work, renewed in the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from roost.core.cluster.nodes import NodeLoad


class Lease(Protocol):
    """Keeps the lease of this node. Any thread may call; nothing waits for the database."""

    def start(self, load: Callable[[], NodeLoad]) -> None:
        """Renew the lease until it is closed; `load` returns what is reported with each renewal."""
        ...

    def remaining(self) -> float:
        """Return the seconds until this node must have stopped its work; negative if it should have."""
        ...

    async def close(self) -> None:
        """Renew it no more."""
        ...
