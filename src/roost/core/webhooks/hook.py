"""Hooks: requests of other programs publish events, or give tasks to agents."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from roost.core.values import checks
from roost.core.webhooks import signatures
from roost.errors import Invalid

PATH = "/hooks/"
PREFIX = "hook_"
"""Start of every token, so that it is recognised where it should not be."""
BODY = "{body}"
"""Place of the body in the template of a task."""
MOST_HEADERS = 20
LONGEST_TASK = 100_000
HEADERS = "_headers"
"""Field of an event that has the chosen headers."""
_HEADER = re.compile(r"[a-z0-9-]{1,80}")
_HIDDEN = frozenset(
    {"authorization", "cookie", "proxy-authorization", signatures.SIGNATURE, signatures.GITHUB_SIGNATURE}
)


@dataclass(frozen=True, slots=True)
class Hook:
    """Hook of a user, without its token and its secret."""

    hook_id: str
    user_id: str
    name: str
    event: str | None
    """Event that a request publishes."""
    agent: str | None
    """Agent that gets a task."""
    task: str | None
    """Template of the task."""
    headers: tuple[str, ...]
    """Headers that the event has."""
    is_signed: bool
    """True if requests need a signature."""
    created: datetime


@dataclass(frozen=True, slots=True)
class CreatedHook:
    """New hook with its path and its secret, which are shown only once."""

    hook: Hook
    path: str
    secret: str | None


@dataclass(frozen=True, slots=True)
class VerifiableHook:
    """Hook with its secret, to verify a request."""

    hook: Hook
    secret: str | None

    def verifies(self, headers: Mapping[str, str], body: bytes, now: float) -> bool:
        """Return whether a request is signed as it must be. Names of headers are in lower case."""
        return self.secret is None or signatures.verified(self.secret, headers, body, now)


def new_token() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """Return what is stored of a token. It is random and long: a slow hash would protect nothing more."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def request_id(headers: Mapping[str, str]) -> str | None:
    """Return the id that the sender gave to a request, so that it is accepted once."""
    is_github = signatures.GITHUB_SIGNATURE in headers and signatures.SIGNATURE not in headers
    names = (signatures.GITHUB_ID,) if is_github else (signatures.ID, "idempotency-key")
    given = next((headers[name] for name in names if headers.get(name)), None)
    if given is None or len(given) <= checks.NAME_LENGTH:
        return given
    return hashlib.sha256(given.encode(errors="replace")).hexdigest()


def checked_headers(value: object) -> tuple[str, ...]:
    """Return the names of headers in lower case. Raise Invalid if one holds a secret."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise Invalid(f"the headers must be a list, not {checks.shown(value)}")
    found = tuple(dict.fromkeys(checks.name(name, "the header").lower() for name in value))
    if len(found) > MOST_HEADERS:
        raise Invalid(f"a hook may have {MOST_HEADERS} headers, not {len(found)}")
    for name in found:
        if not _HEADER.fullmatch(name) or name in _HIDDEN:
            raise Invalid(f"the header {name!r:.80} cannot be chosen: use names such as x-github-event")
    return found


def event_data(hook: Hook, body: Any, headers: Mapping[str, str]) -> Any:
    """Return the data of an event: the parsed body, with the chosen headers if there are any."""
    if not hook.headers:
        return body
    fields = body if isinstance(body, dict) else {"body": body}
    return {**fields, HEADERS: {name: headers[name] for name in hook.headers if name in headers}}


def prompt(hook: Hook, text: str) -> str:
    """Return the task of a request: the template with the body as plain text, at its end unless it has a place."""
    template = hook.task or BODY
    return template.replace(BODY, text) if BODY in template else f"{template}\n\n{text}"
