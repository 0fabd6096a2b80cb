"""Passwords: what is allowed, and their hashes by argon2. Hashing takes some 50 ms of CPU time: not on a loop."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from roost.core.values import checks
from roost.errors import Invalid, Unavailable

if TYPE_CHECKING:
    from argon2 import PasswordHasher

SHORTEST = 10
LONGEST = 1_000
MEMORY_KIB = 19_456
ROUNDS = 2
"""With one lane and 19 MiB, what OWASP recommends for argon2id."""


def checked_password(value: object, name: str) -> str:
    """Return a new password in its normal form. Raise Invalid if it is too short, too long, or the name."""
    password = normal(value)
    if not SHORTEST <= len(password) <= LONGEST:
        raise Invalid(f"the password must have {SHORTEST} to {LONGEST:,} characters, not {len(password):,}")
    if password.lower() == name.lower():
        raise Invalid("the password must not be the name of the account")
    return password


def normal(value: object) -> str:
    """Return a password in the form that is hashed: the same for each way to type a character (NFKC)."""
    text = checks.text(value, "the password", most=LONGEST * 4)
    return unicodedata.normalize("NFKC", text)


def hashed(password: str) -> str:
    return _hasher().hash(password)


def matches(password: str, stored: str | None) -> bool:
    """Return whether a password has this hash. Without a hash the same work is done, so that time tells nothing."""
    hasher = _hasher()
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        hasher.verify(_nothing() if stored is None else stored, password)
        return stored is not None
    except (VerificationError, InvalidHashError):
        return False


@cache
def _hasher() -> PasswordHasher:
    try:
        from argon2 import PasswordHasher
    except ImportError as error:
        raise Unavailable("passwords need an extra: pip install 'roost[ui]'") from error
    return PasswordHasher(time_cost=ROUNDS, memory_cost=MEMORY_KIB, parallelism=1)


@cache
def _nothing() -> str:
    return hashed("the hash of no account")
