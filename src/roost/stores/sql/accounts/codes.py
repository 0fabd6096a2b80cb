"""One-time codes that are signed: the store only knows which were used."""

from __future__ import annotations

from roost.ports import Tx


def use(tx: Tx, digest: str, until: float, now: float) -> bool:
    """Mark a code as used; return False if it was used before. Entries whose time `until` is over are removed."""
    tx.write("DELETE FROM used_codes WHERE until < :now", {"now": now})
    rows = tx.write(
        "INSERT INTO used_codes (digest, until) VALUES (:digest, :until)"
        " ON CONFLICT (digest) DO NOTHING RETURNING digest",
        {"digest": digest, "until": until},
    )
    return bool(rows)
