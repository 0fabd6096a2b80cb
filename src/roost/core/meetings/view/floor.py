"""Floor: who may speak next. Each rule depends only on the view, so that all participants agree.

- `free`: everyone present.
- `round_robin`: one after the other, in the order of their invitations, the creator first.
- `raise_hand`: participants with a raised hand, in order, each once.
- `moderator`: the moderator, and the participant that was given the floor, once.
- `mention`: participants mentioned since they last spoke; and the chair, so that the meeting can continue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice

from roost.core.meetings.log.bodies import FloorRule, Said
from roost.core.meetings.view.view import Floor, Phase, View

HELD = (FloorRule.ROUND_ROBIN, FloorRule.RAISE_HAND, FloorRule.MODERATOR)
"""Rules under which one participant holds the floor, and others wait."""


def speakers(view: View) -> tuple[str, ...]:
    """Return who may speak next, in order of preference; nobody unless the meeting is running."""
    return _RULES[view.rule](view) if view.phase is Phase.RUNNING else ()


def holder(view: View) -> str | None:
    """Return the participant that all others wait for, if any."""
    if view.rule is FloorRule.MODERATOR:
        return view.floor.granted if view.phase is Phase.RUNNING else None
    return next(iter(speakers(view)), None) if view.rule in HELD else None


def refusal(view: View, author: str) -> str | None:
    """Return why a participant may not speak now, and what to do; None if it may."""
    if view.rule is FloorRule.FREE or author in speakers(view):
        return None
    if view.rule is FloorRule.ROUND_ROBIN:
        return f"it is the turn of {holder(view)}: wait for yours"
    if view.rule is FloorRule.MENTION:
        return f"only mentioned participants may speak, and {author} was not mentioned: wait for a mention"
    if author in view.floor.hands:
        return f"the hand of {author} is up, and others come first: wait until it has the floor"
    giver = f"{view.moderator} gives the floor" if view.rule is FloorRule.MODERATOR else "hands decide who speaks"
    return f"{giver}: raise a hand, and wait until it is seen"


def after_words(floor: Floor, author: str, said: Said, present: tuple[str, ...]) -> Floor:
    """Return the floor after a message."""
    gone = floor.without(author)
    fresh = (
        address for address in said.to if address in present and address != author and address not in gone.mentioned
    )
    hands = (*gone.hands, author) if said.hand else gone.hands
    return replace(gone, last=author, hands=hands, mentioned=(*gone.mentioned, *dict.fromkeys(fresh)))


def after_pass(floor: Floor, who: str) -> Floor:
    """Return the floor after a skipped turn."""
    return replace(floor.without(who), last=who)


def _round_robin(view: View) -> tuple[str, ...]:
    ring = list(view.participants)
    last = view.floor.last
    start = ring.index(last) + 1 if last is not None and last in ring else 0
    following = (address for address in ring[start:] + ring[:start] if view.is_in(address))
    return tuple(islice(following, 1))


def _raise_hand(view: View) -> tuple[str, ...]:
    return view.floor.hands[:1]


def _moderator(view: View) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (view.floor.granted, view.moderator))))


def _mention(view: View) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, (*view.floor.mentioned, view.chair))))


_RULES: Mapping[FloorRule, Callable[[View], tuple[str, ...]]] = {
    FloorRule.FREE: lambda view: view.present,
    FloorRule.ROUND_ROBIN: _round_robin,
    FloorRule.RAISE_HAND: _raise_hand,
    FloorRule.MODERATOR: _moderator,
    FloorRule.MENTION: _mention,
}
