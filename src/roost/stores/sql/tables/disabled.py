"""Users whose account is disabled: nothing acts for them."""

from __future__ import annotations


def is_disabled(owner: str) -> str:
    """Return the SQL condition that the account of a user is disabled. `owner`: a column with its table."""
    return f"EXISTS (SELECT 1 FROM accounts WHERE accounts.user_id = {owner} AND accounts.disabled IS NOT NULL)"
