"""A view: a meeting as the entries in one log tell it. It is only ever made by folding them; see `fold`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from roost.core.meetings.bodies import Called, EntryId, FloorRule, Kind
from roost.core.meetings.entries import Entry, Vector
from roost.core.meetings.games import Outcome
from roost.core.meetings.trails import Trail


class Phase(StrEnum):
    CALLING = "calling"
    RUNNING = "running"
    FAILED = "failed"
    ENDED = "ended"


class Status(StrEnum):
    INVITED = "invited"
    IN = "in"
    DECLINED = "declined"
    LEFT = "left"
    KICKED = "kicked"


@dataclass(frozen=True, slots=True)
class Participant:
    """One who is there, was there, or was asked to come. `asked`: by which entry it came to be known."""

    address: str
    status: Status
    required: bool
    asked: EntryId
    came: int = 0
    """The number of its own entry with which it last came; 0: never, or with the call."""
    went: int = 0
    """The number of its own entry with which it last declined or left."""
    reason: str = ""
    """Why it declined, left or was kicked."""

    @property
    def is_in(self) -> bool:
        return self.status is Status.IN


@dataclass(frozen=True, slots=True)
class Floor:
    """What the floor rules look at. `last`: who spoke or passed last; `since`: when the floor came to who has it.

    All others named here are there: whoever goes loses hand, floor and mentions.
    """

    last: str | None = None
    hands: tuple[str, ...] = ()
    granted: str | None = None
    mentioned: tuple[str, ...] = ()
    since: int = 0

    def without(self, who: str) -> Floor:
        """After somebody has gone."""
        hands = tuple(one for one in self.hands if one != who)
        mentioned = tuple(one for one in self.mentioned if one != who)
        return replace(self, hands=hands, mentioned=mentioned, granted=None if self.granted == who else self.granted)


@dataclass(frozen=True, slots=True)
class Word:
    """Something said. `at`: milliseconds since 1970, by the author's clock."""

    entry_id: EntryId
    at: int
    text: str
    to: tuple[str, ...] = ()

    @property
    def author(self) -> str:
        return self.entry_id.author


@dataclass(frozen=True, slots=True)
class Refused:
    """An entry that is void, and why; it stays in the log."""

    entry_id: EntryId
    kind: Kind
    reason: str


@dataclass(frozen=True, slots=True)
class View:
    """A meeting as of some entry; times are in milliseconds since 1970.

    `participants` are in the order in which they became known, the creator first. `state` is what the game makes of
    the moves, `head` the last one of these (at first, the start), which the next must answer, and `moved_at` its time;
    `tries` counts those refused as well, and `misses` how often the next was not made in time.
    """

    meeting: str
    creator: str
    call: Called | None = None
    phase: Phase = Phase.CALLING
    participants: Mapping[str, Participant] = field(default_factory=dict)
    floor: Floor = Floor()
    state: Any = None
    head: EntryId | None = None
    moved_at: int = 0
    tries: int = 0
    misses: int = 0
    passes: int = 0
    """How often a turn went by without a word."""
    outcome: Outcome | None = None
    words: Trail[Word] = field(default_factory=Trail)
    refused: Trail[Refused] = field(default_factory=Trail)
    called_at: int | None = None
    began_at: int | None = None
    over_at: int | None = None
    decided_by: EntryId | None = None
    """The one entry that started it or had it fail."""
    ended_by: EntryId | None = None
    reason: str = ""
    """Why it failed."""
    minutes: str = ""
    seen: Vector = field(default_factory=dict)
    """What this view was made of, void entries included."""
    at: int = 0
    """The time of the last of these."""

    @property
    def present(self) -> tuple[str, ...]:
        return tuple(address for address, one in self.participants.items() if one.is_in)

    @property
    def chair(self) -> str | None:
        """Who may kick and end: the creator, and when that one has gone whoever is first of those who are there."""
        return next((address for address, one in self.participants.items() if one.is_in), None)

    @property
    def moderator(self) -> str | None:
        """Who gives the floor, where somebody does: the one named in the call, while it is there, or else the chair."""
        named = self.participants.get(self.call.moderator) if self.call and self.call.moderator else None
        return named.address if named is not None and named.is_in else self.chair

    @property
    def rule(self) -> FloorRule:
        return self.call.floor if self.call else FloorRule.FREE

    @property
    def is_over(self) -> bool:
        return self.phase in (Phase.FAILED, Phase.ENDED)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Those required who have not answered; the creator is none of them."""
        asked = (one for one in self.participants.values() if one.required and one.status is Status.INVITED)
        return tuple(one.address for one in asked)

    def is_in(self, address: str) -> bool:
        one = self.participants.get(address)
        return one is not None and one.is_in

    def with_participant(self, one: Participant) -> View:
        return replace(self, participants={**self.participants, one.address: one})

    def with_refused(self, entry: Entry, reason: str) -> View:
        return replace(self, refused=self.refused.added(Refused(entry.id, entry.kind, reason)))
