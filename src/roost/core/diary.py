"""Diaries: what a brain notes for itself, beside what people see.

A brain that keeps a context of its own (the ADK does) notes what it needs of each turn, in an entry of its own. That is
written when the turn ends, in the same transaction as the answer, so that the two cannot part. Of a turn that is to be
repeated, or whose answer is withdrawn, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Scope(StrEnum):
    """For whom a value is kept: for this talk or lane, for all of the user's, or for everybody's."""

    OWN = "own"
    USER = "user"
    APP = "app"


Values = Mapping[Scope, Mapping[str, str]]
"""By scope and name, as JSON."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a brain has written of one turn: items as a JSON array, and the numbers of the messages that it took in."""

    run_id: str
    content: str
    seqs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a diary lies: `owner` is a talk's id, or an agent's address with one of its lanes.

    What goes with its owner is gone with it; values of users and apps stay.
    """

    owner: str
    lane: str
    user_id: str

    def of(self, scope: Scope, app: str) -> tuple[str, str]:
        """Under what the values of a scope are found."""
        if scope is Scope.OWN:
            return self.owner, self.lane
        return str(scope), app if scope is Scope.APP else f"{app}/{self.user_id}"


@dataclass(frozen=True, slots=True)
class Written:
    """All that one turn writes into its diary. Without an entry: values alone."""

    place: Place
    app: str
    entry: Entry | None
    values: Values = field(default_factory=dict)
