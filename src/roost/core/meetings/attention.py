"""Attention: whether a participant has something to react to, and why; a function of its view and what it was told.

A brain is asked only then. Each reason has a key, and nobody is asked twice for the same one: whoever keeps silent when
it is asked has said so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from roost.core.meetings import floor
from roost.core.meetings.bodies import FloorRule, Said
from roost.core.meetings.catalogue import GAMES
from roost.core.meetings.entries import Entry, Vector
from roost.core.meetings.games import Games
from roost.core.meetings.play import is_played_out, mover
from roost.core.meetings.view import Phase, Status, View, Word


class Why(StrEnum):
    """What it is asked for, the most pressing first."""

    INVITED = "invited"
    MOVE = "move"
    FLOOR = "floor"
    OPENING = "opening"
    HANDS = "hands"
    OVER = "over"
    MENTIONED = "mentioned"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class Attention:
    """`keys`: of all that it is asked for now, to be kept until the next time. `at_once`: others wait for it."""

    why: Why
    keys: tuple[str, ...]
    at_once: bool


def attention(
    view: View, me: str, heard: Vector, asked: tuple[str, ...], *, is_asked: bool = False, games: Games = GAMES
) -> Attention | None:
    """None: there is nothing to react to. `heard`, `asked`: what it was told, and asked for, so far.

    `is_asked`: whether it is asked about invitations.
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
    if not _listens(view, me):
        return None
    new = unheard(view, me, heard)
    if not new:
        return None
    why = Why.MENTIONED if any(me in word.to for word in new) else Why.WORDS
    return Attention(why, keys, at_once=any(is_person(word.author) for word in new))


def is_pressing(view: View, me: str, asked: tuple[str, ...], new: Iterable[Entry], games: Games = GAMES) -> bool:
    """Whether somebody who is to be asked anyway is to be asked at once, since these came."""
    if any(isinstance(entry.body, Said) and is_person(entry.author) for entry in new):
        return True
    runs = view.phase is Phase.RUNNING and view.is_in(me)
    return runs and any(key not in asked for _, key in _reasons(view, me, games))


def unheard(view: View, me: str, heard: Vector) -> tuple[Word, ...]:
    """The words of others that it was not told yet, in order, wherever among the others they are."""
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


def is_person(address: str) -> bool:
    return address.startswith("user:")


def _invitation(view: View, me: str, asked: tuple[str, ...]) -> Attention | None:
    mine = view.participants.get(me)
    if mine is None or mine.status is not Status.INVITED:
        return None
    key = f"invited {mine.asked}"
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
    """Whoever began it does so also when others were quicker; one who leads it only now does not open it any more."""
    began = view.decided_by is not None and view.decided_by.author == me
    return view.rule is not FloorRule.ROUND_ROBIN and (began or not len(view.words)) and not is_played_out(view)


def _listens(view: View, me: str) -> bool:
    """Whether new words of others are for it to react to."""
    if view.rule is FloorRule.ROUND_ROBIN:
        return False
    if view.rule is FloorRule.MENTION:
        return me in view.floor.mentioned or (me == view.chair and not view.floor.mentioned)
    return me not in view.floor.hands
