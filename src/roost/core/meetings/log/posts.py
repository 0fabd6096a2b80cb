"""Posts between participants of a meeting: entries, a digest that asks for missing ones, or both."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from roost.core.meetings.log import digests, entries
from roost.core.meetings.log.digests import Digest
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.shapes import address
from roost.core.values import checks
from roost.errors import Invalid

MOST_ENTRIES = 200
"""Maximum entries in one post; a receiver that lacks more asks again."""
_FIELDS = {"meeting", "creator", "entries", "is_answer", "more", "digest"}


@dataclass(frozen=True, slots=True)
class Post:
    """Post. `is_answer`: it may hold entries of others, since it answers a digest or belongs to an invitation.

    `more`: the receiver lacks further entries. `digest`: digest of the sender, which asks for the rest.
    """

    meeting: str
    creator: str
    entries: tuple[Entry, ...] = ()
    is_answer: bool = False
    more: bool = False
    digest: Digest | None = None


def to_json(post: Post) -> str:
    # Entries are included in their canonical form, since checksums are computed from it.
    plain = json.dumps(
        {
            "meeting": post.meeting,
            "creator": post.creator,
            "is_answer": post.is_answer,
            "more": post.more,
            "digest": None if post.digest is None else digests.to_json(post.digest),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )
    return f'{plain[:-1]},"entries":[{",".join(json.dumps(entries.to_json(entry)) for entry in post.entries)}]}}'


@lru_cache(maxsize=256)
def from_json(text: str) -> Post:
    """Read the output of `to_json`, with a cache. Raises Invalid for anything else."""
    try:
        plain = json.loads(text)
        if not isinstance(plain, dict) or plain.keys() != _FIELDS or not isinstance(plain["entries"], list):
            raise ValueError  # noqa: TRY301
        return Post(
            checks.name(plain["meeting"], "the id of a meeting"),
            address(plain["creator"], "the creator of a meeting"),
            tuple(entries.from_json(entry) for entry in plain["entries"]),
            checks.flag(plain["is_answer"], "is_answer"),
            checks.flag(plain["more"], "more"),
            None if plain["digest"] is None else digests.from_json(plain["digest"]),
        )
    except (ValueError, TypeError, RecursionError):
        raise Invalid(f"a post of a meeting cannot be read: {checks.shown(text)}") from None
