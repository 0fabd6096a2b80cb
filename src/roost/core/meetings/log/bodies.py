"""Bodies of entries: one class per kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, get_args


class EntryKind(StrEnum):
    CALLED = "called"
    INVITED = "invited"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    JOINED = "joined"
    LEFT = "left"
    KICKED = "kicked"
    STARTED = "started"
    FAILED = "failed"
    RAISED = "raised"
    GRANTED = "granted"
    PASSED = "passed"
    SAID = "said"
    MOVED = "moved"
    MISSED = "missed"
    WITHHELD = "withheld"
    ENDED = "ended"


class FloorRule(StrEnum):
    """Rule for who may speak; see `floor`."""

    FREE = "free"
    ROUND_ROBIN = "round_robin"
    RAISE_HAND = "raise_hand"
    MODERATOR = "moderator"
    MENTION = "mention"


class EntryId(NamedTuple):
    """Id of an entry: its author, and its number among the author's entries."""

    author: str
    number: int

    def __str__(self) -> str:
        return f"entry {self.number} of {self.author}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a meeting. `moves` includes refused ones, so that a game without legal moves ends.

    `turn`: milliseconds of silence after which anyone may skip a turn; 0 for never. A player has the same time for a
    move, and loses after `misses` missed moves.
    """

    participants: int = 64
    words: int = 10_000
    moves: int = 100
    turn: int = 300_000
    misses: int = 2


# --- the kinds ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Called:
    """First entry of a meeting, by its creator. `open`: anyone may join.

    `deadline`: milliseconds since 1970, after which any member may decide whether it starts. `setting` is for the game.
    """

    topic: str
    deadline: int
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    floor: FloorRule = FloorRule.FREE
    moderator: str | None = None
    game: str | None = None
    setting: Any = None
    open: bool = False
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True)
class Invited:
    """Invitation after the call."""

    who: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """The author accepts the invitation."""


@dataclass(frozen=True, slots=True)
class Declined:
    """The author declines the invitation."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """The author joins late, again, or an open meeting."""


@dataclass(frozen=True, slots=True)
class Left:
    """The author leaves."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Kicked:
    """A participant is removed; its entries that the author had not seen are void."""

    who: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """The meeting starts."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The meeting fails to start."""

    reason: str


@dataclass(frozen=True, slots=True)
class Raised:
    """The author raises a hand."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The moderator gives the floor."""

    who: str


@dataclass(frozen=True, slots=True)
class Passed:
    """The turn of the author, or of a silent participant, is skipped."""

    who: str


@dataclass(frozen=True, slots=True)
class Said:
    """Spoken text. `to`: mentioned participants. `hand`: the speaker wants to say more."""

    text: str
    to: tuple[str, ...] = ()
    hand: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """Move in the game. `answers`: the last move that the author knew, or the start."""

    answers: EntryId
    move: Any


@dataclass(frozen=True, slots=True)
class Missed:
    """The next player has missed its move, or has left. `answers`: as in a move."""

    answers: EntryId


@dataclass(frozen=True, slots=True)
class Withheld:
    """Record of an entry that the rules refused when it was written; it changes nothing.

    The entry itself is not in the log: later entries could make it legal after the author has learned that it was
    refused. `what`: its kind. `run`: the run that wrote it.
    """

    what: EntryKind
    text: str
    reason: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """End of the meeting; entries that the author had not seen are void. Without `minutes`, the view provides them."""

    minutes: str = ""


Body: TypeAlias = (
    Called
    | Invited
    | Accepted
    | Declined
    | Joined
    | Left
    | Kicked
    | Started
    | Failed
    | Raised
    | Granted
    | Passed
    | Said
    | Moved
    | Missed
    | Withheld
    | Ended
)


def kind_of(body: Body) -> EntryKind:
    return _KINDS[type(body)]


def text_of(body: Body) -> str:
    """Return the content of an entry as text: words, a move as JSON, an address, or a reason."""
    if isinstance(body, Moved):
        return json.dumps(body.move, ensure_ascii=False)
    found = (getattr(body, name, "") for name in ("text", "who", "minutes", "reason"))
    return next((text for text in found if text), "")


_KINDS: dict[type[Body], EntryKind] = {made: EntryKind(made.__name__.lower()) for made in get_args(Body)}
