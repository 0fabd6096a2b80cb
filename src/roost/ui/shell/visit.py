"""Visit: who looks at a page, and of which service."""

from __future__ import annotations

from dataclasses import dataclass

from roost.service import AgentService


@dataclass(frozen=True, slots=True)
class Visit:
    """User of a page, and the service behind it."""

    service: AgentService
    user: str
    is_operator: bool = False
    """True for the local user, who runs the program and may see its code."""
    stream: str | None = None
    """URL of the live stream, if there is one."""
    has_accounts: bool = False
    can_sign_out: bool = True
