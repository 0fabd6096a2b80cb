"""Decisions of a participant by its view and the time, and checks of its entries."""

from __future__ import annotations

from roost.core.meetings.games.games import Games
from roost.core.meetings.games.registry import GAMES
from roost.core.meetings.log.bodies import Body, Ended, EntryId, Failed, Missed, Passed, Started
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.shapes import MOST_REASON
from roost.core.meetings.view import floor, play, rules
from roost.core.meetings.view.view import ParticipantStatus, Phase, View
from roost.errors import Forbidden

LINGER = 10_000
"""Milliseconds of silence after a game before the meeting ends."""
GRACE = 5_000
"""Milliseconds that each participant waits for the one before it, so that normally one acts."""


def may(view: View, entry: Entry, games: Games = GAMES) -> str | None:
    """Return why an entry would be void after this view, and what to do instead; None if it is valid."""
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
    """Return what this participant should write now, if anything."""
    found = _next_due(view, me, grace)
    return found[1] if found is not None and found[0] <= now else None


def due_at(view: View, me: str, *, grace: int = GRACE) -> int | None:
    """Return when its next entry is due if nothing else happens; 0: now. None: never."""
    found = _next_due(view, me, grace)
    return found[0] if found is not None else None


def obstacle(view: View) -> str | None:
    """Return why the meeting can't start, whatever others answer."""
    creator = view.participants.get(view.creator)
    if creator is not None and not creator.is_in:
        return without_its_creator(view.creator, creator.reason)
    for participant in view.participants.values():
        if participant.required and participant.status in (ParticipantStatus.DECLINED, ParticipantStatus.LEFT):
            because = f": {participant.reason}" if participant.reason else ""
            return f"{participant.address} has {participant.status}{because}"
    return None


def without_its_creator(creator: str, reason: str) -> str:
    """Return the reason of a meeting whose creator left before it started."""
    return f"{creator}, who called the meeting, has left{f': {reason}' if reason else ''}"[:MOST_REASON]


def _next_due(view: View, me: str, grace: int) -> tuple[int, Body] | None:
    if view.call is None or not view.is_in(me):
        return None
    if view.phase is Phase.CALLING:
        return _beginning(view, me, grace, view.call.deadline)
    if view.phase is Phase.RUNNING:
        waits = (_silence(view, me, grace, view.call.bounds.turn), _stall(view, me, grace))
        return _ending(view, me, grace) or min(filter(None, waits), key=lambda wait: wait[0], default=None)
    return None


def _beginning(view: View, me: str, grace: int, deadline: int) -> tuple[int, Body]:
    """Return the decision about the start: the chair decides at once, others in order after the deadline."""
    patience = _patience(view, me, grace)
    at_once = deadline + patience if patience else 0
    if (why := obstacle(view)) is not None:
        return at_once, Failed(why)
    if not view.awaited:
        return at_once, Started()
    return deadline + patience, Failed(f"{', '.join(view.awaited)} did not answer in time")


def _ending(view: View, me: str, grace: int) -> tuple[int, Body] | None:
    """Return the end of a meeting that is full, deserted, or whose game is over."""
    others = [participant for participant in view.participants.values() if participant.address != me]
    is_left = not any(
        participant.status in (ParticipantStatus.IN, ParticipantStatus.INVITED) for participant in others
    ) and any(participant.went or participant.status is ParticipantStatus.KICKED for participant in others)
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
    """Wait for the move of the last player: one that has left loses only when it must move."""
    turn = view.call.bounds.turn if view.call else 0
    return (view.moved_at + turn, Ended()) if mover == me and turn else None


def _silence(view: View, me: str, grace: int, turn: int) -> tuple[int, Body] | None:
    """Skip a participant that has the floor and stays silent."""
    holder = floor.holder(view)
    if holder is None or holder == me or not turn:
        return None
    return view.floor.since + turn + _patience(view, me, grace, besides=holder), Passed(holder)


def _stall(view: View, me: str, grace: int) -> tuple[int, Body] | None:
    """Report a player that does not move, or has left; it loses."""
    mover = play.mover(view)
    if mover is None or mover == me or view.head is None or (late := play.late_at(view, mover)) is None:
        return None
    patience = _patience(view, me, grace, besides=mover)
    return (late or (view.at if patience else 0)) + patience, Missed(view.head)


def _patience(view: View, me: str, grace: int, *, besides: str | None = None) -> int:
    """Return how long to wait for the participants before this one; the chair is the first.

    `besides`: the silent participant, which is not counted.
    """
    return [address for address in view.present if address != besides].index(me) * grace
