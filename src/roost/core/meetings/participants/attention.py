"""Attention: whether a participant must react, and why; a function of its view and what it was given.

A brain is called only then. Each reason has a key, and a brain is called once per key, even if it stays silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from roost.core.meetings.games.games import Games
from roost.core.meetings.games.registry import GAMES
from roost.core.meetings.log.bodies import EntryKind, FloorRule, Said
from roost.core.meetings.log.entries import Entry, Vector
from roost.core.meetings.view import floor
from roost.core.meetings.view.play import is_played_out, mover
from roost.core.meetings.view.view import ParticipantStatus, Phase, Refused, View, Word

ASKED_FOR = frozenset(
    {
        EntryKind.SAID,
        EntryKind.MOVED,
        EntryKind.RAISED,
        EntryKind.GRANTED,
        EntryKind.INVITED,
        EntryKind.KICKED,
        EntryKind.LEFT,
        EntryKind.ENDED,
    }
)
"""Entries that only a brain writes. Others are also written automatically, by several at once, and one counts."""
MOST_REFUSED = 2
"""Maximum consecutive turns about refusals alone, so that a brain that is always refused stops."""
_REFUSED = "refused "


class Why(StrEnum):
    """Reason why a brain is called, most urgent first."""

    INVITED = "invited"
    MOVE = "move"
    FLOOR = "floor"
    OPENING = "opening"
    HANDS = "hands"
    OVER = "over"
    REFUSED = "refused"
    MENTIONED = "mentioned"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class Attention:
    """Result of `attention`. `keys`: current reasons, kept until the next call. `at_once`: others are waiting."""

    why: Why
    keys: tuple[str, ...]
    at_once: bool


def attention(
    view: View, me: str, heard: Vector, asked: tuple[str, ...], *, is_asked: bool = False, games: Games = GAMES
) -> Attention | None:
    """Return why a participant must react; None if it need not. `heard`, `asked`: what it got, and was asked for.

    `is_asked`: whether its brain decides about invitations.
    """
    if view.call is None or view.is_over:
        return None
    if not view.is_in(me):
        return _invitation(view, me, asked) if is_asked else None
    if view.phase is not Phase.RUNNING:
        return None
    reasons = dict(_reasons(view, me, games))
    keys = tuple(reasons.values())
    found = next((why for why, key in reasons.items() if key not in asked), None)
    if found is not None:
        return Attention(found, keys, at_once=True)
    if (key := _refusal_key(view, me, heard, asked)) is not None:
        return Attention(Why.REFUSED, (*keys, key), at_once=True)
    if not _listens(view, me):
        return None
    new = unheard(view, me, heard)
    if not new:
        return None
    why = Why.MENTIONED if any(me in word.to for word in new) else Why.WORDS
    return Attention(why, keys, at_once=any(is_person(word.author) for word in new))


def is_pressing(view: View, me: str, asked: tuple[str, ...], new: Iterable[Entry], games: Games = GAMES) -> bool:
    """Return whether a pending call of a brain becomes urgent because of these entries."""
    if any(isinstance(entry.body, Said) and is_person(entry.author) for entry in new):
        return True
    runs = view.phase is Phase.RUNNING and view.is_in(me)
    return runs and any(key not in asked for _, key in _reasons(view, me, games))


def unheard(view: View, me: str, heard: Vector) -> tuple[Word, ...]:
    """Return the messages of others that it has not been given yet, in order."""
    later = {author for author, count in view.seen.items() if author != me and count > heard.get(author, 0)}
    found: list[Word] = []
    for word in reversed(view.words) if later else ():
        author = word.author
        if author in later:
            if word.entry_id.number > heard.get(author, 0):
                found.append(word)
            else:  # an author's own are in the order of their numbers
                later.discard(author)
                if not later:
                    break
    return tuple(reversed(found))


def refusals(view: View, me: str, heard: Vector) -> tuple[Refused, ...]:
    """Return its own entries that were refused since its last turn, in order."""
    known = heard.get(me, 0)
    if view.seen.get(me, 0) <= known:
        return ()
    own = (refused for refused in view.refused if refused.author == me and refused.entry_id.number > known)
    return tuple(refused for refused in own if refused.kind in ASKED_FOR)


def _refusal_key(view: View, me: str, heard: Vector, asked: tuple[str, ...]) -> str | None:
    """Return the key of a turn about refusals; None if there are none, or after `MOST_REFUSED` such turns in a row."""
    count = next((int(key.removeprefix(_REFUSED)) for key in asked if key.startswith(_REFUSED)), 0)
    if count >= MOST_REFUSED or not refusals(view, me, heard):
        return None
    return f"{_REFUSED}{count + 1}"


def is_person(address: str) -> bool:
    return address.startswith("user:")


def _invitation(view: View, me: str, asked: tuple[str, ...]) -> Attention | None:
    participant = view.participants.get(me)
    if participant is None or participant.status is not ParticipantStatus.INVITED:
        return None
    key = f"invited {participant.asked}"
    return None if key in asked else Attention(Why.INVITED, (key,), at_once=True)


def _reasons(view: View, me: str, games: Games) -> Iterator[tuple[Why, str]]:
    if mover(view, games) == me:
        yield Why.MOVE, f"move after {view.head}"
    if view.rule in floor.HELD and floor.holder(view) == me:
        yield Why.FLOOR, f"floor since {view.floor.since} after {len(view.words)} and {view.passes}"
    first = view.moderator if view.rule is FloorRule.MODERATOR else view.chair
    if me == first and _may_open(view, me):
        yield Why.OPENING, f"opening by {view.decided_by}"
    if view.rule is FloorRule.MODERATOR and me == view.moderator and view.floor.hands and not view.floor.granted:
        yield Why.HANDS, f"hands of {' '.join(view.floor.hands)} after {len(view.words)}"
    if view.call is not None and view.call.game and me == view.chair and is_played_out(view):
        yield Why.OVER, f"over after {view.head}"


def _may_open(view: View, me: str) -> bool:
    """Return whether it opens the meeting: the creator does, even if others spoke first; a later chair does not."""
    began = view.decided_by is not None and view.decided_by.author == me
    return view.rule is not FloorRule.ROUND_ROBIN and (began or not len(view.words)) and not is_played_out(view)


def _listens(view: View, me: str) -> bool:
    """Return whether it reacts to new messages of others."""
    if view.rule is FloorRule.ROUND_ROBIN:
        return False
    if view.rule is FloorRule.MENTION:
        return me in view.floor.mentioned or (me == view.chair and not view.floor.mentioned)
    return me not in view.floor.hands
