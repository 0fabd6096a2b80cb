"""Journals as a whole: gone with the talk or the agent they belong to."""

from __future__ import annotations

from roost.ports import Tx


def forget_journal(tx: Tx, holder: str) -> None:
    for table in ("steps", "approvals"):
        tx.write(f"DELETE FROM {table} WHERE holder = :holder AND holder <> ''", {"holder": holder})
