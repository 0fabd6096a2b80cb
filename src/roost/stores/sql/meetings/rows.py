"""Rows of meetings: one for each participant of each meeting, with its log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from roost.core.meetings.games.registry import unknown_game
from roost.core.meetings.log.bodies import Body, Called, Invited
from roost.core.meetings.log.entries import Entry, Vector
from roost.core.meetings.participants.seats import Seat
from roost.core.meetings.participants.versions import Version, Versions
from roost.errors import Unavailable
from roost.ports import Tx
from roost.stores import bulk

SYNC = 15.0
"""Seconds without a new entry after which the others are asked for entries; doubled each time."""
OPEN = "phase IN ('calling', 'running')"
VERSIONS = Versions()

COLUMNS = bulk.columns(
    "participant, meeting_id, user_id, creator, topic, phase, status, called, over, contents, entries, heard, asked,"
    " turn, turns, timer, pace, hops, root, key"
)
FIELDS = ", ".join(COLUMNS)


@dataclass(slots=True)
class ParticipantRow:
    """A row of `meetings`: the status of one participant."""

    participant: str
    meeting_id: str
    user_id: str
    creator: str
    topic: str = ""
    phase: str = "calling"
    status: str = ""
    called: float = 0.0
    over: float | None = None
    contents: str = ""
    entries: int = 0
    heard: str = "{}"
    asked: str = "[]"
    turn: str = ""
    turns: int = 0
    timer: float | None = None
    pace: float = SYNC
    hops: int = 0
    root: str = ""
    key: str | None = None

    @property
    def last_turn(self) -> tuple[Vector, tuple[str, ...]]:
        """Return the entries that the brain was given, and the keys of those it was asked about."""
        return _parsed(self.heard, self.asked)


@lru_cache(maxsize=1_024)
def _parsed(heard: str, asked: str) -> tuple[Vector, tuple[str, ...]]:
    return json.loads(heard), tuple(json.loads(asked))


class LoadedSeat:
    """A seat with the row it is stored in."""

    def __init__(self, row: ParticipantRow, before: ParticipantRow, seat: Seat, *, is_new: bool) -> None:
        self.row = row
        self.before = before
        self.seat = seat
        self.is_new = is_new
        self.key: tuple[Entry, str] | None = None
        """The entry that was written with a key."""

    @property
    def unknown_game(self) -> str | None:
        """Return the game that is not registered here, if so: its log is kept, and no action is possible."""
        return unknown_game(self.seat.log)

    @property
    def is_invited(self) -> bool:
        """Return whether any entry names it: an empty seat is not stored."""
        me = self.seat.me
        return any(_names(entry.body, me) for entry in self.seat.log)


def version_of(tx: Tx, row: ParticipantRow) -> Version:
    """Return its log, from the cache or from the store."""
    found = VERSIONS.find(row.contents) if row.contents else None
    if found is not None:
        return found
    rows = tx.read(
        "SELECT entry FROM meeting_log WHERE participant = :who AND meeting_id = :meeting",
        {"who": row.participant, "meeting": row.meeting_id},
    )
    return VERSIONS.loaded(row.meeting_id, row.creator, [row[0] for row in rows])


def not_registered(game: str) -> Unavailable:
    return Unavailable(
        f"the meeting plays {game!r:.80}, which is not registered in this program: give it as `games=`, or name it"
        " under [games] in roost.toml"
    )


def _names(body: Body, me: str) -> bool:
    if isinstance(body, Called):
        return me in body.required or me in body.optional
    return isinstance(body, Invited) and body.who == me
