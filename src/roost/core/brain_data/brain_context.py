"""Brain context: entries and values that a brain stores for itself, beside what users see.

A brain with a context of its own (such as the ADK) adds one entry per turn. It is written in the same transaction as
the answer, so that the two always agree. A turn that will be repeated, or whose answer is withdrawn, writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Scope(StrEnum):
    """Scope of a value: this talk or lane, the user, or the app."""

    OWN = "own"
    USER = "user"
    APP = "app"


Values = Mapping[Scope, Mapping[str, str]]
"""Values as JSON, by scope and name."""


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """Entry of one turn: items as a JSON array, and the numbers of the messages they cover."""

    run_id: str
    content: str
    seqs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ContextKey:
    """Key of a brain context: `owner` is the id of a talk, or the address of an agent with one of its lanes.

    Entries are deleted with their owner; values of users and apps stay.
    """

    owner: str
    lane: str
    user_id: str

    def of(self, scope: Scope, app: str) -> tuple[str, str]:
        """Return the key of the values of a scope."""
        if scope is Scope.OWN:
            return self.owner, self.lane
        return str(scope), app if scope is Scope.APP else f"{app}/{self.user_id}"


@dataclass(frozen=True, slots=True)
class ContextWrite:
    """Changes that one turn makes to its context. Without an entry, only values change."""

    place: ContextKey
    app: str
    entry: ContextEntry | None
    values: Values = field(default_factory=dict)
