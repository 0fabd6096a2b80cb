"""The user of a request, as the request itself can read."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.accounts.users import Role


@dataclass(frozen=True, slots=True)
class CurrentUser:
    """User who is signed in. `scopes`: those of the API token; `*` without one. `role`: None without an account."""

    user_id: str
    scopes: tuple[str, ...]
    role: Role | None = None
