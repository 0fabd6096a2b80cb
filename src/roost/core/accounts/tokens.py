"""API tokens: secrets with which programs act for a user, within scopes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from roost.core.values import checks
from roost.errors import Invalid

PREFIX = "roost_"
"""Start of every token, so that it is recognised where it should not be."""
ALL = "*"
NOUNS = (
    "talks",
    "agents",
    "tasks",
    "schedules",
    "mail",
    "events",
    "meetings",
    "dead_letters",
    "approvals",
    "runs",
    "monitor",
    "webhooks",
    "hooks",
)
"""Namespaces of scopes. Tokens and users are not among them: a token with few scopes must not get more by them."""
ACTIONS = ("read", "write")
LONGEST_LIFE = 10 * 365 * 86_400.0
"""Seconds after which every token with an expiry has expired."""


@dataclass(frozen=True, slots=True)
class ApiToken:
    """Token of a user, without its secret. `expires`: None if it is valid until it is revoked."""

    token_id: str
    user_id: str
    name: str
    scopes: tuple[str, ...]
    created: datetime
    expires: datetime | None = None

    def allows(self, needed: str) -> bool:
        return allows(self.scopes, needed)


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """New token with its secret, which is shown only once."""

    token: ApiToken
    secret: str


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """Return what is stored of a secret. It is random and long: a slow hash would protect nothing more."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def checked_scopes(value: object) -> tuple[str, ...]:
    """Return the scopes of a new token. Raise Invalid if one is not known."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise Invalid(f"the scopes must be a list, not {checks.shown(value)}")
    found = tuple(dict.fromkeys(value))
    if not found:
        raise Invalid("the token must have a scope: use '*' for everything")
    for scope in found:
        if not _is_scope(scope):
            raise Invalid(
                f"the scope {checks.shown(scope)} is not known: use '*', '*:read', or one of {', '.join(NOUNS)}, with"
                " ':read' or ':write' behind it for less"
            )
    return found


def _is_scope(scope: object) -> bool:
    if not isinstance(scope, str):
        return False
    noun, colon, action = scope.partition(":")
    return noun in (ALL, *NOUNS) and (not colon or action in ACTIONS)


def allows(scopes: Sequence[str], needed: str) -> bool:
    """Return whether scopes allow what needs `needed`, such as `talks:read`."""
    noun, _, action = needed.partition(":")
    wide = {ALL, needed} | ({noun, f"{ALL}:{action}"} if noun in NOUNS else set())
    return any(scope in wide for scope in scopes)
