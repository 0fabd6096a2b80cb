"""Nodes: the processes that share one database, each with a lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from zlib import crc32


class NodeState(StrEnum):
    UP = "up"
    DRAINING = "draining"
    """It finishes its work and gets no more."""
    GONE = "gone"
    """It has left, or its lease has ended and others have taken over its work."""


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """Load that a node reports with each renewal of its lease."""

    awake: int = 0
    """Agents that are awake there."""
    room: int = 0
    """Agents that it could wake in addition."""
    cpu: float | None = None
    """CPU load of its machine, from 0 to 1."""
    clock_error: float = 0.0
    """Seconds by which its time may differ from that of the database."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Times of a lease in seconds."""

    length: float = 12.0
    renewal: float = 4.0
    """Time between two renewals."""
    margin: float = 2.0
    """A node that cannot renew stops its work this long before others may take it over."""
    start: float = 10.0
    """Additional time of the first lease, in which the process that renews it starts. A new node owns nothing yet."""

    @property
    def first(self) -> float:
        return self.length + self.start


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node when it joins: what others need to know of it."""

    node_id: str
    name: str
    url: str
    version: str
    profiles: tuple[str, ...]
    schema: int
    """Version of the store's schema that its program knows."""


@dataclass(frozen=True, slots=True)
class Node:
    """One process of a cluster. Its id is new at each start; its name is chosen by people."""

    node_id: str
    name: str
    url: str
    version: str
    profiles: tuple[str, ...]
    state: NodeState
    started: datetime
    lease: datetime
    """Time at which others take over its work, unless it renews the lease before."""
    load: NodeLoad


def place(nodes: Sequence[Node], key: str, profile: str = "") -> str:
    """Return the node that takes a free agent: of two that its key chooses, the one with more room.

    All nodes that see the same others choose alike. Return an empty text if none that is up has the profile.
    """
    up = [node for node in nodes if node.state is NodeState.UP and (not profile or profile in node.profiles)]
    if not up:
        return ""
    chosen = sorted(up, key=lambda node: crc32(f"{node.node_id} {key}".encode()))[:2]
    return max(chosen, key=lambda node: node.load.room).node_id


def application_name(node_id: str) -> str:
    """Return the name under which the connections of a node appear in PostgreSQL."""
    return f"roost-{node_id}"


def announcement(node_id: str) -> str:
    """Return the name of the row in `meta` that says how to reach a node, or the one process of a store."""
    return f"owner:{node_id}" if node_id else "owner"
