"""What profiles have used of their models, by the day."""

from __future__ import annotations

from roost.core.messages import at
from roost.core.usage import Usage
from roost.ports import Tx


def used(tx: Tx, day: str, profile: str) -> int:
    row = tx.one(
        "SELECT tokens FROM spending WHERE day = :day AND profile = :profile", {"day": day, "profile": profile}
    )
    return int(row[0]) if row else 0


def spend(tx: Tx, run_id: str, profile: str, usage: Usage, now: float) -> None:
    """Add what a run has used to what its profile has used on this day; once."""
    if usage.tokens and tx.one("SELECT 1 FROM runs WHERE run_id = :run", {"run": run_id}) is None:
        tx.write(
            "INSERT INTO spending (day, profile, tokens) VALUES (:day, :profile, :tokens)"
            " ON CONFLICT (day, profile) DO UPDATE SET tokens = spending.tokens + excluded.tokens",
            {"day": at(now).date().isoformat(), "profile": profile, "tokens": usage.tokens},
        )
