"""Accounts: users who sign in, their roles, invitations, and the audit list."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.core.accounts.pseudonyms import PREFIX as PSEUDONYM
from roost.core.values import checks
from roost.errors import Invalid

INVITATION_LIFE = 7 * 86_400.0
"""Seconds for which the invitation of a new account is valid."""
RESET_LIFE = 86_400.0
"""Seconds for which the invitation of a reset account is valid."""
SESSION_LIFE = 30 * 86_400.0
"""Seconds after which a session ends if it is not used."""
NAME_LENGTH = 64
_NAME = re.compile(rf"[a-z0-9][a-z0-9._@+-]{{0,{NAME_LENGTH - 1}}}")
_OTHERS = re.compile(r"[^a-z0-9._@+-]+")
_DETAIL_LENGTH = 500
_UNKNOWN = "user"
"""Name for somebody whose identity provider suggests none that can be used."""


class Role(StrEnum):
    USER = "user"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Account:
    """Account of a user. A session is valid while `session_epoch` is the one it began with."""

    user_id: str
    role: Role
    created: datetime
    disabled: datetime | None
    has_password: bool
    session_epoch: int


@dataclass(frozen=True, slots=True)
class Invitation:
    """Code with which a user sets a password, once, until it expires; it is shown only here."""

    account: Account
    code: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class SessionState:
    """Current epoch and role of an account: a session with an older epoch is not valid."""

    role: Role
    epoch: int


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Entry of the audit list: a sign-in, or an action of an admin. `address`: that of the client, if known."""

    entry_id: str
    time: datetime
    actor: str
    action: str
    target: str
    address: str
    detail: str


@dataclass(frozen=True, slots=True)
class ExportPart:
    """Part of an export; `after` is the cursor of the next part, and None in the last one."""

    text: str
    after: str | None


def account_name(value: object) -> str:
    """Return the name of a new account. It is a user id that is easy to type, and the same in any case."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise Invalid(
            f"the name {checks.shown(value)} is not valid: use up to {NAME_LENGTH} lower-case letters, digits and"
            " `.`, `_`, `@`, `+`, `-`, beginning with a letter or a digit"
        )
    if value.startswith(PSEUDONYM):
        raise Invalid(f"the name {checks.shown(value)} is not valid: names of deleted users begin like this")
    return value


def typed_name(value: object) -> str:
    """Return the name that somebody types to sign in: without spaces around it, in lower case."""
    return value.strip().lower() if isinstance(value, str) else ""


def free_name(suggested: object, taken: Collection[str]) -> str:
    """Return a valid name that is like the suggested one and not taken."""
    base = _OTHERS.sub("-", typed_name(suggested)).lstrip("._@+-").rstrip("-")[: NAME_LENGTH - 8] or _UNKNOWN
    if base.startswith(PSEUDONYM):
        base = _UNKNOWN
    if base not in taken:
        return base
    return next(name for number in range(2, len(taken) + 3) if (name := f"{base}-{number}") not in taken)


def new_code() -> str:
    return secrets.token_urlsafe(32)


def audit_text(value: object) -> str:
    """Return a text of an audit entry: one line, and short. Nothing is refused, so that everything is recorded."""
    line = "".join(one if one.isprintable() else " " for one in checks.clean(str(value)))
    return line if len(line) <= _DETAIL_LENGTH else f"{line[: _DETAIL_LENGTH - 1]}…"
