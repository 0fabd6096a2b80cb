"""Actions that a participant may take now: each is tried by the rules that will judge it."""

from __future__ import annotations

from collections.abc import Iterator

from roost.core.meetings.games.games import Games
from roost.core.meetings.games.registry import GAMES
from roost.core.meetings.log.bodies import (
    Accepted,
    Body,
    Declined,
    Ended,
    Failed,
    Granted,
    Invited,
    Joined,
    Kicked,
    Left,
    Passed,
    Raised,
    Said,
)
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.stamps import Stamp
from roost.core.meetings.view import floor, play, rules
from roost.core.meetings.view.view import ParticipantStatus, Phase, View
from roost.errors import Forbidden

NOBODY = ""
"""Address of somebody who was never in the meeting."""


def permitted(view: View, who: str, games: Games = GAMES) -> tuple[str, ...]:
    """Return the actions of a participant that the rules allow now, by the names of the service's methods."""
    if view.call is None or view.is_over:
        return ()
    names = {name: None for name, body in _actions(view, who) if _is_valid(view, who, body, games)}
    return (*names, "move") if play.may_move(view, who, games) else tuple(names)


def _actions(view: View, who: str) -> Iterator[tuple[str, Body]]:
    own = view.participants.get(who)
    is_invited = own is not None and own.status is ParticipantStatus.INVITED
    yield "join", Accepted() if is_invited else Joined()
    yield "decline", Declined()
    yield "say", Said("")
    yield "raise_hand", Raised()
    yield "pass_turn", Passed(floor.holder(view) or NOBODY)
    yield "grant", Granted(who)
    yield "invite", Invited(NOBODY)
    yield "kick", Kicked(_someone_else(view, who))
    yield "leave", Failed("") if view.phase is Phase.CALLING and who == view.creator else Left()
    yield "end", Ended()
    if view.phase is Phase.CALLING:
        yield "cancel", Failed("")


def _someone_else(view: View, who: str) -> str:
    others = (
        participant.address
        for participant in view.participants.values()
        if participant.status in (ParticipantStatus.IN, ParticipantStatus.INVITED)
        and participant.address not in (who, view.creator)
    )
    return next(others, NOBODY)


def _is_valid(view: View, who: str, body: Body, games: Games) -> bool:
    entry = Entry(view.meeting, who, view.seen.get(who, 0) + 1, Stamp(view.at), view.seen, body)
    try:
        rules.after(view, entry, games)
    except Forbidden:
        return False
    return True
