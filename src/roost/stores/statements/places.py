"""Places: the rows of meetings, each with where a participant stands, and the logs that belong to them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from roost.core.meetings.bodies import Body, Called, Invited
from roost.core.meetings.entries import Entry, Vector
from roost.core.meetings.seats import Seat
from roost.core.meetings.versions import Version, Versions
from roost.ports import Tx

SYNC = 15.0
"""Seconds without news after which the others are asked; longer and longer while there are none."""
OPEN = "phase IN ('calling', 'running')"
VERSIONS = Versions()

COLUMNS = (
    "participant", "meeting_id", "user_id", "creator", "topic", "phase", "status", "called", "over", "contents",
    "entries", "heard", "asked", "turn", "turns", "timer", "pace", "hops", "root", "key",
)  # fmt: skip
FIELDS = ", ".join(COLUMNS)


@dataclass(slots=True)
class Place:
    """A row of `meetings`: where a participant stands."""

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
    def told(self) -> tuple[Vector, tuple[str, ...]]:
        return _told(self.heard, self.asked)


@lru_cache(maxsize=1_024)
def _told(heard: str, asked: str) -> tuple[Vector, tuple[str, ...]]:
    return json.loads(heard), tuple(json.loads(asked))


class Sitting:
    """A seat, and the row it is kept in."""

    def __init__(self, place: Place, before: Place, seat: Seat, *, is_new: bool) -> None:
        self.place = place
        self.before = before
        self.seat = seat
        self.is_new = is_new
        self.key: tuple[Entry, str] | None = None
        """An entry that was written with a key."""

    @property
    def is_invited(self) -> bool:
        """Whether any entry names it: an empty seat is kept for nobody else."""
        me = self.seat.me
        return any(_names(entry.body, me) for entry in self.seat.log)


def version_of(tx: Tx, place: Place) -> Version:
    """Its log, if it is not at hand from the store."""
    found = VERSIONS.find(place.contents) if place.contents else None
    if found is not None:
        return found
    rows = tx.read(
        "SELECT entry FROM meeting_log WHERE participant = :who AND meeting_id = :meeting",
        {"who": place.participant, "meeting": place.meeting_id},
    )
    return VERSIONS.loaded(place.meeting_id, place.creator, [row[0] for row in rows])


def _names(body: Body, me: str) -> bool:
    if isinstance(body, Called):
        return me in body.required or me in body.optional
    return isinstance(body, Invited) and body.who == me
