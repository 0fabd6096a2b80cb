"""What a participant should do now, by its view and the time; and whether what it wants to do is lawful."""

from __future__ import annotations

from roost.core.meetings import floor, play, rules
from roost.core.meetings.bodies import Body, Ended, EntryId, Failed, Missed, Passed, Started
from roost.core.meetings.catalogue import GAMES
from roost.core.meetings.entries import Entry
from roost.core.meetings.games import Games
from roost.core.meetings.view import Phase, Status, View
from roost.errors import Forbidden

LINGER = 10_000
"""Milliseconds of silence after the end of a game, in which something can still be said about it."""
GRACE = 5_000
"""Milliseconds that each leaves to the one before it to act: so there is normally one who does."""


def may(view: View, entry: Entry, games: Games = GAMES) -> str | None:
    """None, or why the entry would be void and what to do instead; it is judged as the next after this view."""
    expected = view.seen.get(entry.author, 0) + 1
    if entry.number != expected:
        return f"{entry.id} is not the next of its author, which is number {expected}: look again, then write it"
    if any(not entry.knew(EntryId(author, count)) for author, count in view.seen.items() if author != entry.author):
        return f"{entry.id} was written without having seen all of this view: look again, then write it"
    try:
        rules.after(view, entry, games)
    except Forbidden as refusal:
        return str(refusal)
    return None


def due(view: View, me: str, now: int, *, grace: int = GRACE) -> Body | None:
    """What this participant should write now, if anything."""
    found = _next_due(view, me, grace)
    return found[1] if found is not None and found[0] <= now else None


def due_at(view: View, me: str, *, grace: int = GRACE) -> int | None:
    """When something will be due if nothing else happens; 0: it is. None: never."""
    found = _next_due(view, me, grace)
    return found[0] if found is not None else None


def obstacle(view: View) -> str | None:
    """Why the meeting can't begin, whoever else answers."""
    creator = view.participants.get(view.creator)
    if creator is not None and not creator.is_in:
        return f"{view.creator}, who called the meeting, has left"
    for one in view.participants.values():
        if one.required and one.status in (Status.DECLINED, Status.LEFT):
            because = f": {one.reason}" if one.reason else ""
            return f"{one.address} has {one.status}{because}"
    return None


def _next_due(view: View, me: str, grace: int) -> tuple[int, Body] | None:
    if view.call is None or not view.is_in(me):
        return None
    if view.phase is Phase.CALLING:
        return _beginning(view, me, grace, view.call.deadline)
    if view.phase is Phase.RUNNING:
        waits = (_silence(view, me, grace, view.call.bounds.turn), _stall(view, me, grace))
        return _ending(view, me, grace) or min(filter(None, waits), key=lambda one: one[0], default=None)
    return None


def _beginning(view: View, me: str, grace: int, deadline: int) -> tuple[int, Body]:
    """The chair decides at once, and the others one after the other past the deadline, should the chair be lost."""
    patience = _patience(view, me, grace)
    at_once = deadline + patience if patience else 0
    if (why := obstacle(view)) is not None:
        return at_once, Failed(why)
    if not view.awaited:
        return at_once, Started()
    return deadline + patience, Failed(f"{', '.join(view.awaited)} did not answer in time")


def _ending(view: View, me: str, grace: int) -> tuple[int, Body] | None:
    """A meeting in which no more can be said, or that all others have left, or whose game is over, is over."""
    others = [one for one in view.participants.values() if one.address != me]
    is_left = not any(one.status in (Status.IN, Status.INVITED) for one in others) and any(
        one.went or one.status is Status.KICKED for one in others
    )
    is_played = view.call is not None and view.call.game is not None and play.is_played_out(view)
    if not rules.is_full(view) and not is_left and not is_played:
        return None
    patience = _patience(view, me, grace)
    if not rules.is_full(view) and not is_left:
        return view.at + LINGER + patience, Ended()
    if not rules.is_full(view) and (mover := play.mover(view)) is not None:
        return _alone_at_play(view, me, mover)
    return (view.at + patience if patience else 0), Ended()


def _alone_at_play(view: View, me: str, mover: str) -> tuple[int, Body] | None:
    """Whoever has gone loses when it is to move, and may be back by then: that the move is made is waited for."""
    turn = view.call.bounds.turn if view.call else 0
    return (view.moved_at + turn, Ended()) if mover == me and turn else None


def _silence(view: View, me: str, grace: int, turn: int) -> tuple[int, Body] | None:
    """Whoever has the floor and keeps silent is passed over."""
    holder = floor.holder(view)
    if holder is None or holder == me or not turn:
        return None
    return view.floor.since + turn + _patience(view, me, grace), Passed(holder)


def _stall(view: View, me: str, grace: int) -> tuple[int, Body] | None:
    """Whoever is to move and does not, or has gone, is told so, and loses."""
    mover = play.mover(view)
    if mover is None or mover == me or view.head is None or (late := play.late_at(view, mover)) is None:
        return None
    patience = _patience(view, me, grace)
    return (late or (view.at if patience else 0)) + patience, Missed(view.head)


def _patience(view: View, me: str, grace: int) -> int:
    """How long one leaves it to those before it; the chair is the first of those who are there."""
    return view.present.index(me) * grace
