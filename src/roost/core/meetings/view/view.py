"""Views: the state of a meeting according to one log, created only by `fold`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from roost.core.meetings.games.games import Outcome
from roost.core.meetings.log.bodies import Called, EntryId, EntryKind, FloorRule, Withheld, text_of
from roost.core.meetings.log.entries import Entry, Vector
from roost.core.meetings.view.trails import Trail


class Phase(StrEnum):
    CALLING = "calling"
    RUNNING = "running"
    FAILED = "failed"
    ENDED = "ended"


class ParticipantStatus(StrEnum):
    INVITED = "invited"
    IN = "in"
    DECLINED = "declined"
    LEFT = "left"
    KICKED = "kicked"


@dataclass(frozen=True, slots=True)
class Participant:
    """Participant or invited. `asked`: the entry that introduced it."""

    address: str
    status: ParticipantStatus
    required: bool
    asked: EntryId
    came: int = 0
    """Number of its entry with which it last joined; 0: never, or with the call."""
    went: int = 0
    """Number of its entry with which it last declined or left."""
    reason: str = ""
    """Reason why it declined, left or was kicked."""

    @property
    def is_in(self) -> bool:
        return self.status is ParticipantStatus.IN


@dataclass(frozen=True, slots=True)
class Floor:
    """Input of the floor rules. `last`: who spoke or passed last; `since`: when the holder got the floor.

    Everyone else named here is present: a participant that leaves loses hand, floor and mentions.
    """

    last: str | None = None
    hands: tuple[str, ...] = ()
    granted: str | None = None
    mentioned: tuple[str, ...] = ()
    since: int = 0

    def without(self, who: str) -> Floor:
        """Return the floor without a participant that has left."""
        hands = tuple(address for address in self.hands if address != who)
        mentioned = tuple(address for address in self.mentioned if address != who)
        return replace(self, hands=hands, mentioned=mentioned, granted=None if self.granted == who else self.granted)


@dataclass(frozen=True, slots=True)
class Going:
    """Departure or return of a participant. `by`: the author of the entry; another one if it was kicked."""

    who: str
    status: ParticipantStatus
    at: int
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """Message. `at`: milliseconds since 1970, by the author's clock."""

    entry_id: EntryId
    at: int
    text: str
    to: tuple[str, ...] = ()

    @property
    def author(self) -> str:
        return self.entry_id.author


@dataclass(frozen=True, slots=True)
class Played:
    """Move that was made. `at`: milliseconds since 1970, by the author's clock."""

    entry_id: EntryId
    at: int
    move: Any


@dataclass(frozen=True, slots=True)
class Refused:
    """Refused entry: void, or withheld. `text`: its content; `at`: as of a message."""

    entry_id: EntryId
    kind: EntryKind
    reason: str
    text: str = ""
    at: int = 0

    @property
    def author(self) -> str:
        return self.entry_id.author


@dataclass(frozen=True, slots=True)
class View:
    """State of a meeting at some entry; times are in milliseconds since 1970.

    `participants` are in the order of their invitations, the creator first. `state` is the state of the game, `head`
    the last move (at first, the start), which the next must answer, and `moved_at` its time; `tries` counts moves with
    refused ones, and `misses` how often the next move was missed.
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
    """Number of skipped turns."""
    outcome: Outcome | None = None
    words: Trail[Word] = field(default_factory=Trail)
    played: Trail[Played] = field(default_factory=Trail)
    refused: Trail[Refused] = field(default_factory=Trail)
    goings: Trail[Going] = field(default_factory=Trail)
    """Departures, and later returns."""
    called_at: int | None = None
    began_at: int | None = None
    over_at: int | None = None
    decided_by: EntryId | None = None
    """Entry that started it, or made it fail."""
    ended_by: EntryId | None = None
    reason: str = ""
    """Reason of a failure."""
    minutes: str = ""
    seen: Vector = field(default_factory=dict)
    """Vector of its entries, void ones included."""
    at: int = 0
    """Time of the last entry."""

    @property
    def present(self) -> tuple[str, ...]:
        return tuple(address for address, participant in self.participants.items() if participant.is_in)

    @property
    def chair(self) -> str | None:
        """Return who may kick and end: the creator, or the first participant present if it has left."""
        return next((address for address, participant in self.participants.items() if participant.is_in), None)

    @property
    def moderator(self) -> str | None:
        """Return who gives the floor: the moderator of the call while present, or else the chair."""
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
        """Return required participants that have not answered, without the creator."""
        asked = (
            participant
            for participant in self.participants.values()
            if participant.required and participant.status is ParticipantStatus.INVITED
        )
        return tuple(participant.address for participant in asked)

    def is_in(self, address: str) -> bool:
        participant = self.participants.get(address)
        return participant is not None and participant.is_in

    def with_participant(self, participant: Participant) -> View:
        return replace(self, participants={**self.participants, participant.address: participant})

    def with_going(self, participant: Participant, entry: Entry) -> View:
        going = Going(participant.address, participant.status, entry.at.ms, entry.author, participant.reason)
        return replace(self.with_participant(participant), goings=self.goings.added(going))

    def with_refused(self, entry: Entry, reason: str) -> View:
        body = entry.body
        if isinstance(body, Withheld):
            refused = Refused(entry.id, body.what, body.reason, body.text, entry.at.ms)
        else:
            refused = Refused(entry.id, entry.kind, reason, text_of(body), entry.at.ms)
        return replace(self, refused=self.refused.added(refused))
