"""The law of meetings: what each kind of entry needs, and what it does to the view. What is not lawful is void.

Each rule looks at the view and the entry and at nothing else. Those that decide how a meeting begins judge by what
their author had seen, not by what came to light later: an answer that was on its way at the time can't undo, an hour
later, what all others have built on the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from roost.core.meetings import floor, games, play
from roost.core.meetings.bodies import (
    Accepted,
    Body,
    Called,
    Declined,
    Ended,
    Failed,
    FloorRule,
    Granted,
    Invited,
    Joined,
    Kicked,
    Left,
    Missed,
    Moved,
    Passed,
    Raised,
    Said,
    Started,
)
from roost.core.meetings.entries import Entry
from roost.core.meetings.games import Games
from roost.core.meetings.view import Participant, Phase, Status, View, Word
from roost.errors import Forbidden


def after(view: View, entry: Entry, games: Games) -> View:
    """The view after this entry; Forbidden, with a sentence that says what to do, if it is not lawful now."""
    body = entry.body
    if isinstance(body, Called):
        changed = _called(view, entry, body, games)
    elif isinstance(body, Moved | Missed):
        _check_open(view)
        _check_runs(view, entry)
        if isinstance(body, Moved):
            changed = play.moved(view, entry, body, games)
        else:
            changed = play.missed(view, entry, body, games)
    else:
        _check_open(view)
        changed = _RULES[type(body)](view, entry, body)
    return _timed(view, changed, entry)


def decreed(view: View, entry: Entry) -> View:
    """The view after a kick or an end that was found lawful before."""
    body = entry.body
    if isinstance(body, Ended):
        return replace(view, phase=Phase.ENDED, over_at=entry.at.ms, ended_by=entry.id, minutes=body.minutes)
    if not isinstance(body, Kicked) or body.who not in view.participants:
        return view
    one = replace(view.participants[body.who], status=Status.KICKED, reason=body.reason)
    kicked = replace(view.with_participant(one), floor=view.floor.without(body.who))
    return _timed(view, kicked, entry)


def is_full(view: View) -> bool:
    """Whether as much was said as the bounds allow, or as often passed on, which would otherwise never end."""
    if view.call is None:
        return False
    most = view.call.bounds.words
    return len(view.words) >= most or view.passes >= most + len(view.participants)


def may_decide(view: View, entry: Entry) -> bool:
    """Whether its author may say how the meeting begins: the chair always, and past the deadline any member."""
    return entry.author == view.chair or (view.call is not None and entry.at.ms >= view.call.deadline)


# --- coming and going --------------------------------------------------------------------------------


def _called(view: View, entry: Entry, call: Called, known: Games) -> View:
    if view.call is not None:
        raise Forbidden("the meeting was called before: call another one")
    state = games.begin(known, call.game, call.setting) if call.game else None
    people = [Participant(view.creator, Status.IN, False, entry.id)]
    people += [Participant(who, Status.INVITED, True, entry.id) for who in call.required]
    people += [Participant(who, Status.INVITED, False, entry.id) for who in call.optional]
    everyone = {one.address: one for one in people}
    return replace(view, call=call, participants=everyone, state=state, called_at=entry.at.ms)


def _invited(view: View, entry: Entry, body: Invited) -> View:
    _check_in(view, entry)
    known = view.participants.get(body.who)
    if known is not None and known.status in (Status.IN, Status.INVITED):
        raise Forbidden(f"{body.who} is {known.status} already: nothing needs to be done")
    if known is not None and known.status is Status.KICKED and entry.author != view.chair:
        raise Forbidden(f"{body.who} was kicked: only {view.chair} may invite it again")
    if body.required and (entry.author != view.creator or view.phase is not Phase.CALLING):
        raise Forbidden(f"only {view.creator} may require somebody, before the start: invite {body.who} as optional")
    if known is None:
        _check_room(view)
    return view.with_participant(Participant(body.who, Status.INVITED, body.required, entry.id))


def _accepted(view: View, entry: Entry, body: Accepted) -> View:
    if _status(view, entry.author) is not Status.INVITED:
        raise Forbidden(f"{entry.author} has no invitation that is open: join instead")
    return _came(view, entry)


def _declined(view: View, entry: Entry, body: Declined) -> View:
    if _status(view, entry.author) is not Status.INVITED:
        raise Forbidden(f"{entry.author} has no invitation that is open: who is there may leave")
    return _went(view, entry, Status.DECLINED, body.reason)


def _joined(view: View, entry: Entry, body: Joined) -> View:
    status = _status(view, entry.author)
    if status is Status.IN:
        raise Forbidden(f"{entry.author} is there already: nothing needs to be done")
    if status is Status.KICKED:
        raise Forbidden(f"{entry.author} was kicked: ask {view.chair} for a new invitation")
    if status is None:
        if view.call is None or not view.call.open:
            raise Forbidden(f"{entry.author} was not invited: ask somebody who is there for an invitation")
        _check_room(view)
    return _came(view, entry)


def _left(view: View, entry: Entry, body: Left) -> View:
    _check_in(view, entry)
    if view.phase is Phase.RUNNING and len(view.present) == 1:
        raise Forbidden(f"{entry.author} is the last one there: end the meeting instead")
    return _went(view, entry, Status.LEFT, body.reason)


def _kicked(view: View, entry: Entry, body: Kicked) -> View:
    _check_in(view, entry)
    if entry.author != view.chair:
        raise Forbidden(f"only {view.chair} may send somebody away: ask it to")
    if body.who == entry.author:
        raise Forbidden("nobody sends themselves away: leave instead")
    if body.who == view.creator:
        raise Forbidden(f"{body.who} called the meeting, and can't be sent away from it")
    if _status(view, body.who) not in (Status.IN, Status.INVITED):
        raise Forbidden(f"{body.who} is neither there nor invited: there is nobody to send away")
    return decreed(view, entry)


# --- the beginning and the end -----------------------------------------------------------------------


def _started(view: View, entry: Entry, body: Started) -> View:
    _check_decides(view, entry)
    missing = [one.address for one in view.participants.values() if one.required and not _had_come(one, entry)]
    if missing:
        raise Forbidden(f"{', '.join(missing)} must come, and had not: wait, or say that the meeting has failed")
    return replace(
        view, phase=Phase.RUNNING, began_at=entry.at.ms, decided_by=entry.id, head=entry.id, moved_at=entry.at.ms
    )


def _failed(view: View, entry: Entry, body: Failed) -> View:
    _check_decides(view, entry)
    return replace(view, phase=Phase.FAILED, over_at=entry.at.ms, decided_by=entry.id, reason=body.reason)


def _ended(view: View, entry: Entry, body: Ended) -> View:
    _check_runs(view, entry)
    is_done = play.is_played_out(view) or is_full(view) or len(view.present) == 1
    if entry.author != view.chair and not is_done:
        raise Forbidden(f"only {view.chair} may end the meeting now: ask it to, or leave")
    return decreed(view, entry)


# --- words and moves ---------------------------------------------------------------------------------


def _said(view: View, entry: Entry, body: Said) -> View:
    _check_runs(view, entry)
    if is_full(view):
        raise Forbidden("as much was said, or passed over, as this meeting allows: end it")
    if (why := floor.refusal(view, entry.author)) is not None:
        raise Forbidden(why)
    spoken = floor.after_words(view.floor, entry.author, body, view.present if body.to else ())
    word = Word(entry.id, entry.at.ms, body.text, body.to)
    return replace(view, words=view.words.added(word), floor=spoken)


def _raised(view: View, entry: Entry, body: Raised) -> View:
    _check_runs(view, entry)
    if view.rule not in (FloorRule.RAISE_HAND, FloorRule.MODERATOR):
        raise Forbidden(f"hands are not looked at in this meeting: its floor rule is {view.rule}")
    if entry.author in view.floor.hands:
        raise Forbidden(f"the hand of {entry.author} is up already: wait until it has the floor")
    return replace(view, floor=replace(view.floor, hands=(*view.floor.hands, entry.author)))


def _granted(view: View, entry: Entry, body: Granted) -> View:
    _check_runs(view, entry)
    if view.rule is not FloorRule.MODERATOR:
        raise Forbidden(f"nobody gives the floor in this meeting: its floor rule is {view.rule}")
    if entry.author != view.moderator:
        raise Forbidden(f"only {view.moderator} gives the floor: raise a hand instead")
    if not view.is_in(body.who):
        raise Forbidden(f"{body.who} is not there: give the floor to somebody who is")
    return replace(view, floor=replace(view.floor.without(body.who), granted=body.who))


def _passed(view: View, entry: Entry, body: Passed) -> View:
    _check_runs(view, entry)
    if (now := floor.holder(view)) is None or now != body.who:
        raise Forbidden(f"it is not the turn of {body.who}: there is nothing to pass on")
    turn = view.call.bounds.turn if view.call else 0
    is_silent = turn > 0 and entry.at.ms >= view.floor.since + turn
    if entry.author not in (body.who, view.chair, view.moderator) and not is_silent:
        raise Forbidden(f"{body.who} has the floor: wait for it to speak")
    return replace(view, floor=floor.after_pass(view.floor, body.who), passes=view.passes + 1)


# --- what they have in common ------------------------------------------------------------------------


def _check_open(view: View) -> None:
    if view.call is None:
        raise Forbidden("nobody has called this meeting: call it first")
    if view.is_over:
        raise Forbidden(f"the meeting has {view.phase}: call another one")


def _check_in(view: View, entry: Entry) -> None:
    if not view.is_in(entry.author):
        raise Forbidden(f"{entry.author} is not in the meeting: accept the invitation, or join")


def _check_runs(view: View, entry: Entry) -> None:
    _check_in(view, entry)
    if view.phase is not Phase.RUNNING:
        raise Forbidden("the meeting has not begun: wait until it has started")


def _check_decides(view: View, entry: Entry) -> None:
    _check_in(view, entry)
    if view.phase is not Phase.CALLING:
        raise Forbidden("it is decided already how the meeting begins: nothing needs to be done")
    if not may_decide(view, entry):
        raise Forbidden(f"until the deadline {view.chair} decides how the meeting begins: wait")


def _check_room(view: View) -> None:
    most = view.call.bounds.participants if view.call else 0
    if len(view.participants) >= most:
        raise Forbidden(f"the meeting has room for {most} participants, and as many: call another one")


def _status(view: View, who: str) -> Status | None:
    one = view.participants.get(who)
    return one.status if one is not None else None


def _had_come(one: Participant, entry: Entry) -> bool:
    """Whether that one had come as far as the author could know, or need not come as far as it could know."""
    seen = entry.number - 1 if one.address == entry.author else entry.seen.get(one.address, 0)
    if one.status is Status.LEFT:
        return one.came <= seen < one.went
    return one.status in (Status.IN, Status.KICKED) or not entry.knew(one.asked)


def _came(view: View, entry: Entry) -> View:
    new = Participant(entry.author, Status.IN, False, entry.id)
    one = replace(view.participants.get(entry.author, new), status=Status.IN, came=entry.number, reason="")
    return view.with_participant(one)


def _went(view: View, entry: Entry, status: Status, reason: str) -> View:
    one = replace(view.participants[entry.author], status=status, went=entry.number, reason=reason)
    return replace(view.with_participant(one), floor=view.floor.without(entry.author))


def _timed(before: View, now: View, entry: Entry) -> View:
    """With the time at which the floor came to who has it."""
    if now.rule not in floor.HELD or (floor.holder(before) == floor.holder(now) and before.words is now.words):
        return now
    return replace(now, floor=replace(now.floor, since=entry.at.ms))


_RULES: Mapping[type[Body], Callable[[View, Entry, Any], View]] = {
    Invited: _invited,
    Accepted: _accepted,
    Declined: _declined,
    Joined: _joined,
    Left: _left,
    Kicked: _kicked,
    Started: _started,
    Failed: _failed,
    Raised: _raised,
    Granted: _granted,
    Passed: _passed,
    Said: _said,
    Ended: _ended,
}
