"""Suspension of everything that runs for a user whose account is disabled, until it is enabled."""

from __future__ import annotations

from collections.abc import Collection

from roost.ports import Tx
from roost.stores import bulk
from roost.stores.sql.sleep.conditions import check_meetings


def disabled(tx: Tx, users: Collection[str]) -> list[str]:
    """Return those of the users whose account is disabled."""
    sql = "SELECT user_id FROM accounts WHERE disabled IS NOT NULL AND user_id IN"
    return sorted({str(row[0]) for row in bulk.read(tx, sql, sorted(users))})


def busy_talks(tx: Tx, user_id: str, limit: int) -> list[str]:
    """Return the talks of a user in which a message waits or is being answered."""
    rows = tx.read(
        "SELECT talk_id FROM talks WHERE user_id = :user AND (waiting > 0 OR answer_seq > 0) LIMIT :limit",
        {"user": user_id, "limit": limit},
    )
    return [row[0] for row in rows]


def rejoin_meetings(tx: Tx, user_id: str) -> None:
    """Have the agents of a user ask for what they have missed in meetings."""
    rows = tx.read(
        "SELECT address FROM agents WHERE user_id = :user AND EXISTS (SELECT 1 FROM meetings"
        " WHERE participant = 'agent:' || agents.address AND status = 'in') ORDER BY address",
        {"user": user_id},
    )
    check_meetings(tx, [row[0] for row in rows], 0.0)
