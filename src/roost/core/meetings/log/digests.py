"""Digests: a short summary of a participant's log, from which others see what it lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from roost.core.meetings.log.shapes import MOST_AUTHORS, MOST_NUMBER, address
from roost.core.values import checks
from roost.errors import Invalid

_CHECKSUM = re.compile("[0-9a-f]{32}")


class Head(NamedTuple):
    """Number of an author's entries, and the checksum of the last one with all it refers to."""

    length: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Digest:
    meeting: str
    creator: str
    heads: Mapping[str, Head]


def to_json(digest: Digest) -> str:
    plain = {"meeting": digest.meeting, "creator": digest.creator, "heads": dict(digest.heads)}
    return json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def from_json(text: str) -> Digest:
    """Read the output of `to_json`. Raises Invalid for anything else."""
    try:
        plain = json.loads(text)
        if not isinstance(plain, dict) or plain.keys() != {"meeting", "creator", "heads"}:
            raise ValueError  # noqa: TRY301
        return Digest(
            checks.name(plain["meeting"], "the id of a meeting"),
            address(plain["creator"], "the creator of a meeting"),
            _heads(plain["heads"]),
        )
    except (ValueError, TypeError, RecursionError):
        raise Invalid(f"a digest of a meeting cannot be read: {checks.shown(text)}") from None


def _heads(value: Any) -> dict[str, Head]:
    if not isinstance(value, dict) or len(value) > MOST_AUTHORS:
        raise ValueError
    return {address(author, "an author"): _head(head) for author, head in value.items()}


def _head(value: Any) -> Head:
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], str):
        raise ValueError
    if not _CHECKSUM.fullmatch(value[1]):
        raise ValueError
    return Head(checks.count(value[0], "how many there are", least=1, most=MOST_NUMBER), value[1])
