"""Token usage of profiles by day. Each writer has rows of its own, since all others would wait for it to commit."""

from __future__ import annotations

from roost.core.limits.usage import Usage
from roost.core.talks.messages import at
from roost.ports import Tx


def tokens_used(tx: Tx, day: str, profile: str) -> int:
    """Return the tokens that settled runs of the profile used on that day."""
    row = tx.one(
        "SELECT SUM(tokens) FROM spending WHERE day = :day AND profile = :profile", {"day": day, "profile": profile}
    )
    return int(row[0] or 0) if row else 0


def add_usage(tx: Tx, run_id: str, profile: str, usage: Usage, now: float) -> None:
    """Add a run's usage to that of its profile on this day, once."""
    if usage.tokens and tx.one("SELECT 1 FROM runs WHERE run_id = :run", {"run": run_id}) is None:
        tx.write(
            f"INSERT INTO spending (day, profile, writer, tokens) VALUES (:day, :profile, {tx.writer}, :tokens)"
            " ON CONFLICT (day, profile, writer) DO UPDATE SET tokens = spending.tokens + excluded.tokens",
            {"day": at(now).date().isoformat(), "profile": profile, "tokens": usage.tokens},
        )
