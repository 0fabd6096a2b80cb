"""Public form of a meeting for users and programs: plain texts, times and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

from roost.core.meetings.games import games
from roost.core.meetings.games.games import Games
from roost.core.meetings.games.registry import GAMES
from roost.core.meetings.log.bodies import EntryId
from roost.core.meetings.view import floor
from roost.core.meetings.view.permitted import permitted
from roost.core.meetings.view.play import mover
from roost.core.meetings.view.trails import Trail
from roost.core.meetings.view.view import Played, Refused, View, Word

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attendee:
    """Participant or invited; `status`: invited, in, declined, left or kicked."""

    address: str
    status: str
    required: bool
    reason: str = ""
    """Reason why it declined, left or was kicked."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """Message in a meeting. `entry` is its id, the same in every view; `number` is its position."""

    entry: str
    number: int
    sender: str
    text: str
    to: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Refusal:
    """Refused entry, with the reason."""

    entry: str
    sender: str
    kind: str
    reason: str
    text: str = ""
    """Its content: words, a move as JSON, or an address."""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MoveMade:
    """Move in a game that was made; `entry` is its id."""

    entry: str
    player: str
    move: Any
    at: datetime


@dataclass(frozen=True, slots=True)
class MeetingView:
    """Meeting as one of its participants sees it. `words`, `played` and `refused` hold the newest, in order."""

    meeting_id: str
    topic: str
    creator: str
    phase: str
    """calling, running, failed or ended"""
    seen_by: str
    status: str
    """Status of that participant: invited, in, declined, left or kicked."""
    participants: tuple[Attendee, ...]
    present: tuple[str, ...]
    chair: str | None
    moderator: str | None
    floor: str
    speakers: tuple[str, ...]
    """Participants that may speak next, in order of preference."""
    hands: tuple[str, ...]
    words: tuple[Spoken, ...]
    said: int
    """Number of messages."""
    refused: tuple[Refusal, ...]
    game: str | None
    state: Any
    board: str
    """State of the game as text."""
    mover: str | None
    moves: int
    """Number of attempted moves."""
    played: tuple[MoveMade, ...]
    """Newest moves that were made, in order."""
    outcome: str | None
    winner: str | None
    called: datetime | None
    deadline: datetime | None
    began: datetime | None
    over: datetime | None
    reason: str
    """Reason of a failure."""
    minutes: str
    """Minutes written by the participant that ended it."""
    cursor: str
    """Cursor of this view; see `wait`."""
    may: tuple[str, ...] = ()
    """Actions that the rules allow this participant now: `say`, `move`, `end` and so on, as the methods are named."""

    @property
    def is_over(self) -> bool:
        return self.phase in ("failed", "ended")


@dataclass(frozen=True, slots=True)
class MeetingSummary:
    """Meeting in a list. `participant`: the user, or an agent of the user, that takes part."""

    meeting_id: str
    topic: str
    creator: str
    phase: str
    participant: str
    status: str
    called: datetime
    over: datetime | None


@dataclass(frozen=True, slots=True)
class MeetingOverview:
    """Meeting in a list, with its view."""

    meeting_id: str
    summary: MeetingSummary
    view: MeetingView | None
    """View without messages; None if only the minutes are kept, or the game is not known here."""


def plain_summary(summary: MeetingSummary) -> list[str | None]:
    """Return a summary as a JSON value, for `summary_of`."""
    *texts, called, over = (getattr(summary, field.name) for field in fields(summary))
    return [*texts, called.isoformat(), None if over is None else over.isoformat()]


def summary_of(plain: Sequence[str]) -> MeetingSummary:
    meeting_id, topic, creator, phase, participant, status, called, over = plain
    times = datetime.fromisoformat(called), datetime.fromisoformat(over) if over else None
    return MeetingSummary(meeting_id, topic, creator, phase, participant, status, *times)


def shown(view: View, me: str, cursor: str, limit: int, known: Games = GAMES) -> MeetingView:
    call, own = view.call, view.participants.get(me)
    game = known.get(call.game) if call and call.game else None
    outcome = view.outcome
    return MeetingView(
        meeting_id=view.meeting,
        topic=call.topic if call else "",
        creator=view.creator,
        phase=str(view.phase),
        seen_by=me,
        status=str(own.status) if own else "",
        participants=tuple(
            Attendee(participant.address, str(participant.status), participant.required, participant.reason)
            for participant in view.participants.values()
        ),
        present=view.present,
        chair=view.chair,
        moderator=view.moderator if view.rule == "moderator" else None,
        floor=str(view.rule),
        speakers=floor.speakers(view),
        hands=view.floor.hands,
        words=tuple(_newest(view.words, limit)),
        said=len(view.words),
        refused=tuple(map(refusal, _latest(view.refused, limit))),
        game=call.game if call else None,
        state=deepcopy(view.state),
        board=games.drawn(game, view.state),
        mover=mover(view, known),
        moves=view.tries,
        played=tuple(map(_made, _latest(view.played, limit))),
        outcome=outcome.text if outcome else None,
        winner=outcome.winner if outcome else None,
        called=_time(view.called_at),
        deadline=_time(call.deadline) if call else None,
        began=_time(view.began_at),
        over=_time(view.over_at),
        reason=view.reason,
        minutes=view.minutes,
        cursor=cursor,
        may=permitted(view, me, known),
    )


def spoken(word: Word, number: int) -> Spoken:
    return Spoken(name_of(word.entry_id), number, word.author, word.text, word.to, moment(word.at))


def name_of(entry_id: EntryId) -> str:
    return f"{entry_id.author}#{entry_id.number}"


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _newest(words: Trail[Word], limit: int) -> Iterator[Spoken]:
    newest = _latest(words, limit)
    return (spoken(word, number) for number, word in enumerate(newest, len(words) - len(newest) + 1))


def _latest(trail: Trail[T], limit: int) -> list[T]:
    return list(islice(reversed(trail), limit))[::-1]


def _made(played: Played) -> MoveMade:
    return MoveMade(name_of(played.entry_id), played.entry_id.author, deepcopy(played.move), moment(played.at))


def refusal(refused: Refused) -> Refusal:
    at = moment(refused.at)
    return Refusal(name_of(refused.entry_id), refused.author, str(refused.kind), refused.reason, refused.text, at)


def _time(ms: int | None) -> datetime | None:
    return moment(ms) if ms is not None else None
