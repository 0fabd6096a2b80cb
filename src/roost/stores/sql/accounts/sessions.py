"""Sessions that were ended in a single browser."""

from __future__ import annotations

from roost.ports import Tx
from roost.stores.sql.accounts import audit
from roost.stores.sql.accounts.audit import Action


def end(tx: Tx, digest: str, until: float, by: Action) -> None:
    """End a session. `until`: when its cookie has expired in any case. Older entries are removed."""
    tx.write("DELETE FROM ended_sessions WHERE until < :now", {"now": by.now})
    tx.write(
        "INSERT INTO ended_sessions (digest, until) VALUES (:digest, :until) ON CONFLICT (digest) DO NOTHING",
        {"digest": digest, "until": until},
    )
    audit.add(tx, by, by.actor)
