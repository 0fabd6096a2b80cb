"""The floor: who may speak next. Each rule is a function of the view alone, so that all who have it agree.

- `free`: whoever is there.
- `round_robin`: one after the other, in the order in which they became known, the creator first.
- `raise_hand`: those who raised a hand, in the order in which they did, each once.
- `moderator`: the moderator, and whoever was given the floor, once.
- `mention`: those who were mentioned and have not spoken since; and the chair, so that it never stops for good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice

from roost.core.meetings.bodies import FloorRule, Said
from roost.core.meetings.view import Floor, Phase, View

HELD = (FloorRule.ROUND_ROBIN, FloorRule.RAISE_HAND, FloorRule.MODERATOR)
"""The rules under which one participant has the floor, who can keep all others waiting."""


def speakers(view: View) -> tuple[str, ...]:
    """Who may speak next, whoever is most meant first; nobody while the meeting does not run."""
    return _RULES[view.rule](view) if view.phase is Phase.RUNNING else ()


def holder(view: View) -> str | None:
    """The one all others wait for, if there is one."""
    if view.rule is FloorRule.MODERATOR:
        return view.floor.granted if view.phase is Phase.RUNNING else None
    return next(iter(speakers(view)), None) if view.rule in HELD else None


def refusal(view: View, author: str) -> str | None:
    """Why somebody who is there may not speak now, and what to do; None if they may."""
    if view.rule is FloorRule.FREE or author in speakers(view):
        return None
    if view.rule is FloorRule.ROUND_ROBIN:
        return f"it is the turn of {holder(view)}: wait for yours"
    if view.rule is FloorRule.MENTION:
        return f"only those who were mentioned speak, and {author} was not: wait until somebody mentions it"
    if author in view.floor.hands:
        return f"the hand of {author} is up, and others come first: wait until it has the floor"
    giver = f"{view.moderator} gives the floor" if view.rule is FloorRule.MODERATOR else "hands decide who speaks"
    return f"{giver}: raise a hand, and wait until it is seen"


def after_words(floor: Floor, author: str, said: Said, present: tuple[str, ...]) -> Floor:
    """After somebody has spoken."""
    gone = floor.without(author)
    fresh = (one for one in said.to if one in present and one != author and one not in gone.mentioned)
    hands = (*gone.hands, author) if said.hand else gone.hands
    return replace(gone, last=author, hands=hands, mentioned=(*gone.mentioned, *dict.fromkeys(fresh)))


def after_pass(floor: Floor, who: str) -> Floor:
    """After the turn of this one has gone on."""
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
