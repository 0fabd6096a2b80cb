"""Heartbeats: the smallest write that proves that writes are committed, and one that proves that there is space."""

from __future__ import annotations

from hashlib import sha256

from roost.ports import Tx

ROOM = 65_536
"""Characters of a heartbeat that needs new pages."""


def write(tx: Tx, writer: str, now: float) -> None:
    """Note the time under the writer's name; each has a row of its own, so that none waits for another.

    It replaces a row, so it may succeed on a full disk.
    """
    tx.write(
        "INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        {"name": f"heartbeat of {writer}", "value": str(now)},
    )


def write_with_room(tx: Tx, writer: str, now: float) -> None:
    """Write a heartbeat that also needs new pages. They are free again when it is committed."""
    row = {"name": f"room of {writer}", "value": _incompressible(now)}
    tx.write("INSERT INTO meta (name, value) VALUES (:name, :value)", row)
    tx.write("DELETE FROM meta WHERE name = :name", {"name": row["name"]})
    write(tx, writer, now)


def _incompressible(now: float) -> str:
    """Return a text that PostgreSQL cannot store in a few bytes."""
    return "".join(sha256(f"{now} {number}".encode()).hexdigest() for number in range(ROOM // 64))
