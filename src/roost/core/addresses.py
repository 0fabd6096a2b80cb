"""Addresses: `agent:d`, `agent:bob/d` and `user:ann`, wherever someone is named to whom something is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from roost.core import checks
from roost.errors import Invalid, NotFound

_AGENT_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,99}")


@dataclass(frozen=True, slots=True)
class Address:
    """A person, or an agent of a person's. `text` is how it is written in full."""

    user_id: str
    agent_id: str | None = None

    @property
    def is_agent(self) -> bool:
        return self.agent_id is not None

    @property
    def key(self) -> str:
        """What an agent is known by in the store; an agent's id has no slash in it."""
        return f"{self.user_id}/{self.agent_id}"

    @property
    def text(self) -> str:
        return f"agent:{self.key}" if self.is_agent else f"user:{self.user_id}"


def parse(text: object, owner: str) -> Address:
    """`agent:d` is the owner's own, `agent:bob/d` another's; a bare `d` is not taken for either."""
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


def familiar(text: str, user_id: str) -> str:
    """A text for this person: their own agents are named in it as they name them, `agent:d`."""
    return _owned(user_id).sub("agent:", text)


@lru_cache(maxsize=1_000)
def _owned(user_id: str) -> re.Pattern[str]:
    """Not where more follows: `agent:ann/ben/d` belongs to somebody else, `ann/ben`."""
    return re.compile(rf"\bagent:{re.escape(user_id)}/(?=[\w.\-]+(?![\w./\-]))")


def _unclear(text: object) -> Invalid:
    return Invalid(f"the address {checks.shown(text)} is not known: use agent:NAME, agent:OWNER/NAME or user:NAME")


def of_agent(text: object, owner: str) -> Address:
    """Where only an agent can be meant, its bare id will do."""
    address = parse(f"agent:{text}" if isinstance(text, str) and ":" not in text else text, owner)
    if not address.is_agent:
        raise Invalid(f"{address.text!r:.80} is a person: name an agent; to people one writes mail")
    return address


def of_key(key: str) -> Address:
    user, _, agent = key.rpartition("/")
    return Address(user, agent)


def agent_id(value: object) -> str:
    if not isinstance(value, str) or not _AGENT_ID.fullmatch(value):
        raise Invalid(
            f"the agent id {checks.shown(value)} cannot be used: take letters, digits, `.`, `-` and `_`, at most 100"
        )
    return value


def agent_ids(values: object) -> tuple[str, ...]:
    """A text is not taken for a list: it would be an id for each of its letters."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise Invalid(f"the agent ids must be a list of texts, not {checks.shown(values)}")
    return tuple(agent_id(value) for value in values)


def unknown(agent_id: object) -> NotFound:
    """Someone else's, deleted and never made are answered alike."""
    return NotFound(f"there is no agent {checks.shown(agent_id)}: it was deleted, or it never existed")
