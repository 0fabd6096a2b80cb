"""Posts: what travels between participants of a meeting: entries, a digest that asks for what is missing, or both."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from roost.core import checks
from roost.core.meetings import digests, entries
from roost.core.meetings.digests import Digest
from roost.core.meetings.entries import Entry
from roost.core.meetings.shapes import address
from roost.errors import Invalid

MOST_ENTRIES = 200
"""Entries in one post; whoever lacks more asks again."""
_FIELDS = {"meeting", "creator", "entries", "is_answer", "more", "digest"}


@dataclass(frozen=True, slots=True)
class Post:
    """`is_answer`: may hold others' entries, since they were asked for or belong to an invitation.

    `more`: there are more that whoever gets this lacks. `digest`: what the sender has; it asks for the rest.
    """

    meeting: str
    creator: str
    entries: tuple[Entry, ...] = ()
    is_answer: bool = False
    more: bool = False
    digest: Digest | None = None


def to_json(post: Post) -> str:
    # The entries have their one way of being written: it is put in as it is, since it is what checksums are made of.
    plain = json.dumps(
        {
            "meeting": post.meeting, "creator": post.creator, "is_answer": post.is_answer, "more": post.more,
            "digest": None if post.digest is None else digests.to_json(post.digest),
        },
        ensure_ascii=False, separators=(",", ":"),
    )  # fmt: skip
    return f'{plain[:-1]},"entries":[{",".join(json.dumps(entries.to_json(one)) for one in post.entries)}]}}'


@lru_cache(maxsize=256)
def from_json(text: str) -> Post:
    """What `to_json` wrote; anything else is refused as Invalid. The same post goes to many, and is read once."""
    try:
        plain = json.loads(text)
        if not isinstance(plain, dict) or plain.keys() != _FIELDS or not isinstance(plain["entries"], list):
            raise ValueError  # noqa: TRY301
        return Post(
            checks.name(plain["meeting"], "the id of a meeting"),
            address(plain["creator"], "the creator of a meeting"),
            tuple(entries.from_json(one) for one in plain["entries"]),
            checks.flag(plain["is_answer"], "is_answer"),
            checks.flag(plain["more"], "more"),
            None if plain["digest"] is None else digests.from_json(plain["digest"]),
        )
    except (ValueError, TypeError, RecursionError):
        raise Invalid(f"a post of a meeting cannot be read: {checks.shown(text)}") from None
