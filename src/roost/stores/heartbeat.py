"""A heartbeat: the smallest write that proves that writes are committed."""

from __future__ import annotations

from roost.ports import Tx


def write(tx: Tx, writer: str, now: float) -> None:
    """Note the time under the writer's name; each has a row of its own, so that none waits for another."""
    tx.write(
        "INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        {"name": f"heartbeat of {writer}", "value": str(now)},
    )
