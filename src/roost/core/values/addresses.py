"""Addresses of recipients: `agent:d`, `agent:bob/d` and `user:ann`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from roost.core.values import checks
from roost.errors import Invalid, NotFound

_AGENT_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,99}")


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a user, or of an agent that belongs to a user. `text` is its full form."""

    user_id: str
    agent_id: str | None = None

    @property
    def is_agent(self) -> bool:
        return self.agent_id is not None

    @property
    def key(self) -> str:
        """Return the key of an agent in the store. Agent ids contain no slash."""
        return f"{self.user_id}/{self.agent_id}"

    @property
    def text(self) -> str:
        return f"agent:{self.key}" if self.is_agent else f"user:{self.user_id}"


def parse(text: object, owner: str) -> Address:
    """Parse an address. `agent:d` belongs to `owner`, `agent:bob/d` to bob; a bare `d` raises Invalid."""
    if not isinstance(text, str):
        raise _unclear(text)
    return _parsed(text, owner)


@lru_cache(maxsize=10_000)
def _parsed(text: str, owner: str) -> Address:
    kind, _, rest = text.partition(":")
    if kind not in ("agent", "user") or not rest:
        raise _unclear(text)
    if kind == "user":
        return Address(checks.name(rest, "the user id of an address"))
    user, slash, agent = rest.rpartition("/")
    return Address(checks.name(user, "the owner of an address") if slash else owner, agent_id(agent))


def shortened(text: str, user_id: str) -> str:
    """Return the text with the user's own agents in short form, `agent:d`."""
    return _owned(user_id).sub("agent:", text)


@lru_cache(maxsize=1_000)
def _owned(user_id: str) -> re.Pattern[str]:
    """Return a pattern for the user's agents. It does not match `agent:ann/ben/d`, whose owner is `ann/ben`."""
    return re.compile(rf"\bagent:{re.escape(user_id)}/(?=[\w.\-]+(?![\w./\-]))")


def _unclear(text: object) -> Invalid:
    return Invalid(f"the address {checks.shown(text)} is not valid: use agent:NAME, agent:OWNER/NAME or user:NAME")


def of_agent(text: object, owner: str) -> Address:
    """Parse the address of an agent; a bare id is accepted. Raises Invalid for the address of a user."""
    address = parse(f"agent:{text}" if isinstance(text, str) and ":" not in text else text, owner)
    if not address.is_agent:
        raise Invalid(f"{address.text!r:.80} is a user: name an agent, or send mail to reach a user")
    return address


def of_key(key: str) -> Address:
    user, _, agent = key.rpartition("/")
    return Address(user, agent)


def agent_id(value: object) -> str:
    if not isinstance(value, str) or not _AGENT_ID.fullmatch(value):
        raise Invalid(
            f"the agent id {checks.shown(value)} is not valid: use up to 100 letters, digits, `.`, `-` and `_`"
        )
    return value


def agent_ids(values: object) -> tuple[str, ...]:
    """Return checked agent ids. A single text is refused: it would give one id per letter."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise Invalid(f"the agent ids must be a list of texts, not {checks.shown(values)}")
    return tuple(agent_id(value) for value in values)


def unknown(agent_id: object) -> NotFound:
    """Return the error for an unknown agent: the same for one of another owner, deleted or never created."""
    return NotFound(f"there is no agent {checks.shown(agent_id)}: it was deleted, or it never existed")
