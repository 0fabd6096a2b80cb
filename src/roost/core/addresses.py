"""Addresses: `agent:d`, `agent:bob/d` and `user:ann`, wherever someone is named to whom something is sent."""

from __future__ import annotations

import re
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
    kind, colon, rest = text.partition(":")
    if not colon or kind not in ("agent", "user"):
        raise _unclear(text)
    if kind == "user":
        return Address(checks.name(rest, "the user id of an address"))
    user, slash, agent = rest.rpartition("/")
    return Address(checks.name(user, "the owner of an address") if slash else owner, agent_id(agent))


def _unclear(text: object) -> Invalid:
    return Invalid(f"the address {text!r:.80} is not known: use agent:NAME, agent:OWNER/NAME or user:NAME")


def of_key(key: str) -> Address:
    user, _, agent = key.rpartition("/")
    return Address(user, agent)


def agent_id(value: object) -> str:
    if not isinstance(value, str) or not _AGENT_ID.fullmatch(value):
        raise Invalid(f"the agent id {value!r:.80} cannot be used: take letters, digits, `.`, `-` and `_`, at most 100")
    return value


def unknown(agent_id: object) -> NotFound:
    """Someone else's, deleted and never made are answered alike."""
    return NotFound(f"there is no agent {agent_id!r:.120}: it was deleted, or it never existed")
