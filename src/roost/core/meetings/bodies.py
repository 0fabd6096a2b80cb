"""What an entry of a meeting says: one class a kind."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, get_args


class Kind(StrEnum):
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
    ENDED = "ended"


class FloorRule(StrEnum):
    """Whose turn it is to speak; see `floor`."""

    FREE = "free"
    ROUND_ROBIN = "round_robin"
    RAISE_HAND = "raise_hand"
    MODERATOR = "moderator"
    MENTION = "mention"


class EntryId(NamedTuple):
    """By whom, and the how manieth of theirs."""

    author: str
    number: int

    def __str__(self) -> str:
        return f"entry {self.number} of {self.author}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a meeting may go. `moves` counts those refused too, so that players who find none come to an end.

    `turn`: after so many milliseconds of silence anyone may pass a turn on; 0 for never. A player has as long for a
    move, and has lost when it has missed one so often: `misses`.
    """

    participants: int = 64
    words: int = 10_000
    moves: int = 100
    turn: int = 300_000
    misses: int = 2


# --- the kinds ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Called:
    """The first entry of a meeting, by its creator. `open`: whoever hears of it may join.

    `deadline`: milliseconds since 1970, after which any member may decide how it begins. `setting` is for the game.
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
    """One more, after the call."""

    who: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """Its author comes."""


@dataclass(frozen=True, slots=True)
class Declined:
    """Its author does not come."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    """Its author comes late, or again, or to an open meeting."""


@dataclass(frozen=True, slots=True)
class Left:
    """Its author goes."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Kicked:
    """Another is sent away; what that one wrote and the author of this had not seen is void."""

    who: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """The meeting begins."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The meeting does not take place."""

    reason: str


@dataclass(frozen=True, slots=True)
class Raised:
    """Its author raises a hand."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The moderator gives the floor."""

    who: str


@dataclass(frozen=True, slots=True)
class Passed:
    """The turn of its author, or of one who keeps silent, goes on to the next."""

    who: str


@dataclass(frozen=True, slots=True)
class Said:
    """`to`: who is mentioned. `hand`: the speaker wants to say more after this."""

    text: str
    to: tuple[str, ...] = ()
    hand: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """A change of the shared state. `answers`: the last move its author knew of, or the start."""

    answers: EntryId
    move: Any


@dataclass(frozen=True, slots=True)
class Missed:
    """Whoever is to move has let the time for it go by, or has gone. `answers`: as of a move."""

    answers: EntryId


@dataclass(frozen=True, slots=True)
class Ended:
    """The meeting is over; all that its author had not seen is void. Without `minutes` they are made from the view."""

    minutes: str = ""


Body: TypeAlias = (
    Called | Invited | Accepted | Declined | Joined | Left | Kicked | Started | Failed
    | Raised | Granted | Passed | Said | Moved | Missed | Ended
)  # fmt: skip


def kind_of(body: Body) -> Kind:
    return _KINDS[type(body)]


_KINDS: dict[type[Body], Kind] = {made: Kind(made.__name__.lower()) for made in get_args(Body)}
