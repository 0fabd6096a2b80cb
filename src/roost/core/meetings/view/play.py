"""Games in a view: whose move it is, and the effects of moves and missed moves."""

from __future__ import annotations

from dataclasses import replace

from roost.core.meetings.games import games
from roost.core.meetings.games.games import Games
from roost.core.meetings.games.registry import GAMES
from roost.core.meetings.log.bodies import EntryId, Missed, Moved
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.view.view import ParticipantStatus, Phase, Played, View
from roost.errors import Forbidden

GONE = (ParticipantStatus.DECLINED, ParticipantStatus.LEFT, ParticipantStatus.KICKED)


def is_played_out(view: View) -> bool:
    """Return whether the game is over, or its maximum number of moves is reached."""
    return view.outcome is not None or (view.call is not None and view.tries >= view.call.bounds.moves)


def mover(view: View, known: Games = GAMES) -> str | None:
    """Return the next player, if the game is running and names one."""
    game = known.get(view.call.game) if view.call and view.call.game else None
    if game is None or view.phase is not Phase.RUNNING or is_played_out(view):
        return None
    return games.mover(game, view.state)


def late_at(view: View, who: str) -> int | None:
    """Return when the next player's time is over; 0 if it has left. None: never."""
    participant = view.participants.get(who)
    if participant is not None and participant.status in GONE:
        return 0
    turn = view.call.bounds.turn if view.call else 0
    return view.moved_at + turn if turn else None


def moved(view: View, entry: Entry, body: Moved, known: Games) -> View:
    name = _check(view, body.answers)
    state, outcome = games.play(known, name, view.state, entry.author, body.move)
    return replace(
        view,
        state=state,
        outcome=outcome,
        head=entry.id,
        tries=view.tries + 1,
        moved_at=entry.at.ms,
        misses=0,
        played=view.played.added(Played(entry.id, entry.at.ms, body.move)),
    )


def missed(view: View, entry: Entry, body: Missed, known: Games) -> View:
    """Return the view after a missed move: the player gets another chance, or loses."""
    name = _check(view, body.answers)
    who = mover(view, known)
    if who is None:
        raise Forbidden("no player has to move: no move can be missed")
    late = late_at(view, who)
    if late is None or entry.at.ms < late:
        raise Forbidden(f"{who} still has time for its move: wait for it")
    after = replace(view, head=entry.id, moved_at=entry.at.ms, misses=view.misses + 1)
    if view.call is not None and late and after.misses < view.call.bounds.misses:
        return after
    return replace(after, outcome=games.forfeit(known, name, view.state, who))


def may_move(view: View, who: str, known: Games = GAMES) -> bool:
    """Return whether a participant may move now: the next player, or anyone present if the game names none."""
    is_on = view.phase is Phase.RUNNING and view.call is not None and view.call.game is not None
    return is_on and not is_played_out(view) and view.is_in(who) and mover(view, known) in (who, None)


def _check(view: View, answers: EntryId) -> str:
    """Return the game, if a move may answer this entry."""
    if view.call is None or view.call.game is None:
        raise Forbidden("this meeting has no game: post a message instead")
    if is_played_out(view):
        raise Forbidden("the game is over, or the meeting has reached its limit of moves: end the meeting")
    if answers != view.head:
        raise Forbidden(f"the move answers {answers}, and the last one is {view.head}: read the board again, then move")
    return view.call.game
