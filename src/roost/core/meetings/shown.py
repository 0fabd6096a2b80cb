"""A meeting as it is shown to people and programs: plain texts, times and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from roost.core.meetings import floor
from roost.core.meetings.bodies import EntryId
from roost.core.meetings.catalogue import GAMES
from roost.core.meetings.games import Games
from roost.core.meetings.play import mover
from roost.core.meetings.trails import Trail
from roost.core.meetings.view import Refused, View, Word


@dataclass(frozen=True, slots=True)
class Attendee:
    """One who is there, was there, or was asked to come; `status`: invited, in, declined, left or kicked."""

    address: str
    status: str
    required: bool
    reason: str = ""
    """Why it declined, left or was kicked."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """Something said. `entry` names it, the same in every view; `number`: its place among all words."""

    entry: str
    number: int
    sender: str
    text: str
    to: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that counts for nobody, and why."""

    entry: str
    sender: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class MeetingView:
    """A meeting as one of its participants sees it. `words` and `refused` are the newest of them, in order."""

    meeting_id: str
    topic: str
    creator: str
    phase: str
    """calling, running, failed or ended"""
    seen_by: str
    status: str
    """Of whoever sees it so: invited, in, declined, left or kicked."""
    participants: tuple[Attendee, ...]
    present: tuple[str, ...]
    chair: str | None
    moderator: str | None
    floor: str
    speakers: tuple[str, ...]
    """Who may speak next, whoever is most meant first."""
    hands: tuple[str, ...]
    words: tuple[Spoken, ...]
    said: int
    """How many words there are."""
    refused: tuple[Refusal, ...]
    game: str | None
    state: Any
    board: str
    """The state of the game as a text."""
    mover: str | None
    moves: int
    """How many were tried."""
    outcome: str | None
    winner: str | None
    called: datetime | None
    deadline: datetime | None
    began: datetime | None
    over: datetime | None
    reason: str
    """Why it failed."""
    minutes: str
    """Those that were written by whoever ended it."""
    cursor: str
    """Stands for all that is seen; see `wait`."""

    @property
    def is_over(self) -> bool:
        return self.phase in ("failed", "ended")


@dataclass(frozen=True, slots=True)
class MeetingSummary:
    """A meeting in a list. `participant`: who of the user's takes part in it, the user first."""

    meeting_id: str
    topic: str
    creator: str
    phase: str
    participant: str
    status: str
    called: datetime
    over: datetime | None


def shown(view: View, me: str, cursor: str, limit: int, games: Games = GAMES) -> MeetingView:
    call, mine = view.call, view.participants.get(me)
    game = games.get(call.game) if call and call.game else None
    outcome = view.outcome
    return MeetingView(
        view.meeting, call.topic if call else "", view.creator, str(view.phase), me, str(mine.status) if mine else "",
        tuple(Attendee(one.address, str(one.status), one.required, one.reason) for one in view.participants.values()),
        view.present, view.chair, view.moderator if view.rule == "moderator" else None, str(view.rule),
        floor.speakers(view), view.floor.hands, tuple(_newest(view.words, limit)), len(view.words),
        tuple(reversed([_refusal(one) for one in islice(reversed(view.refused), limit)])),
        call.game if call else None, deepcopy(view.state), game.drawn(view.state) if game else "", mover(view, games),
        view.tries, outcome.text if outcome else None, outcome.winner if outcome else None, _time(view.called_at),
        _time(call.deadline) if call else None, _time(view.began_at), _time(view.over_at), view.reason, view.minutes,
        cursor,
    )  # fmt: skip


def spoken(word: Word, number: int) -> Spoken:
    return Spoken(name_of(word.entry_id), number, word.author, word.text, word.to, moment(word.at))


def name_of(entry_id: EntryId) -> str:
    return f"{entry_id.author}#{entry_id.number}"


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _newest(words: Trail[Word], limit: int) -> Iterator[Spoken]:
    newest = list(islice(reversed(words), limit))
    first = len(words) - len(newest) + 1
    return (spoken(word, number) for number, word in enumerate(reversed(newest), first))


def _refusal(one: Refused) -> Refusal:
    return Refusal(name_of(one.entry_id), one.entry_id.author, str(one.kind), one.reason)


def _time(ms: int | None) -> datetime | None:
    return moment(ms) if ms is not None else None
