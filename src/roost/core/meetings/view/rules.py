"""Rules of meetings: what each kind of entry requires, and what it does to the view. Invalid entries are void.

Each rule depends only on the view and the entry. Rules about the start of a meeting use what their author had seen, not
what arrived later: an answer that was on its way cannot undo the decision after others have built on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from roost.core.meetings.games import games
from roost.core.meetings.games.games import Games
from roost.core.meetings.log.bodies import (
    Accepted,
    Body,
    Called,
    Declined,
    Ended,
    EntryKind,
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
    Withheld,
)
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.view import floor, play
from roost.core.meetings.view.view import Participant, ParticipantStatus, Phase, View, Word
from roost.errors import Forbidden


def after(view: View, entry: Entry, games: Games) -> View:
    """Return the view after this entry. Raises Forbidden, with what to do, if it is not valid now."""
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
    """Return the view after a kick or an end that was found valid before."""
    body = entry.body
    if isinstance(body, Ended):
        return replace(view, phase=Phase.ENDED, over_at=entry.at.ms, ended_by=entry.id, minutes=body.minutes)
    if not isinstance(body, Kicked) or body.who not in view.participants:
        return view
    kicked_participant = replace(view.participants[body.who], status=ParticipantStatus.KICKED, reason=body.reason)
    kicked = replace(view.with_going(kicked_participant, entry), floor=view.floor.without(body.who))
    return _timed(view, kicked, entry)


def is_full(view: View) -> bool:
    """Return whether the maximum number of messages or skipped turns is reached."""
    if view.call is None:
        return False
    most = view.call.bounds.words
    return len(view.words) >= most or view.passes >= most + len(view.participants)


def may_decide(view: View, entry: Entry) -> bool:
    """Return whether the author may start or fail the meeting: the chair, and after the deadline any member."""
    return entry.author == view.chair or (view.call is not None and entry.at.ms >= view.call.deadline)


# --- coming and going --------------------------------------------------------------------------------


def _called(view: View, entry: Entry, call: Called, known: Games) -> View:
    if view.call is not None:
        raise Forbidden("the meeting was called before: call another one")
    state = games.begin(known, call.game, call.setting) if call.game else None
    people = [Participant(view.creator, ParticipantStatus.IN, False, entry.id)]
    people += [Participant(who, ParticipantStatus.INVITED, True, entry.id) for who in call.required]
    people += [Participant(who, ParticipantStatus.INVITED, False, entry.id) for who in call.optional]
    everyone = {participant.address: participant for participant in people}
    return replace(view, call=call, participants=everyone, state=state, called_at=entry.at.ms)


def _invited(view: View, entry: Entry, body: Invited) -> View:
    _check_in(view, entry)
    known = view.participants.get(body.who)
    if known is not None and known.status in (ParticipantStatus.IN, ParticipantStatus.INVITED):
        raise Forbidden(f"{body.who} is {known.status} already: nothing needs to be done")
    if known is not None and known.status is ParticipantStatus.KICKED and entry.author != view.chair:
        raise Forbidden(f"{body.who} was kicked: only {view.chair} may invite it again")
    if body.required and (entry.author != view.creator or view.phase is not Phase.CALLING):
        raise Forbidden(
            f"only {view.creator} may require a participant, before the start: invite {body.who} as optional"
        )
    if known is None:
        _check_room(view)
    return view.with_participant(Participant(body.who, ParticipantStatus.INVITED, body.required, entry.id))


def _accepted(view: View, entry: Entry, body: Accepted) -> View:
    if _status(view, entry.author) is not ParticipantStatus.INVITED:
        raise Forbidden(f"{entry.author} has no open invitation: join instead")
    return _came(view, entry)


def _declined(view: View, entry: Entry, body: Declined) -> View:
    if _status(view, entry.author) is not ParticipantStatus.INVITED:
        raise Forbidden(f"{entry.author} has no open invitation: a present participant may leave")
    return _went(view, entry, ParticipantStatus.DECLINED, body.reason)


def _joined(view: View, entry: Entry, body: Joined) -> View:
    status = _status(view, entry.author)
    if status is ParticipantStatus.IN:
        raise Forbidden(f"{entry.author} is present already: nothing needs to be done")
    if status is ParticipantStatus.KICKED:
        raise _kicked_before(view, entry.author)
    if status is None:
        if view.call is None or not view.call.open:
            raise Forbidden(f"{entry.author} was not invited: ask a present participant for an invitation")
        _check_room(view)
    return _came(view, entry)


def _left(view: View, entry: Entry, body: Left) -> View:
    _check_in(view, entry)
    if view.phase is Phase.RUNNING and len(view.present) == 1:
        raise Forbidden(f"{entry.author} is the last participant: end the meeting instead")
    return _went(view, entry, ParticipantStatus.LEFT, body.reason)


def _kicked(view: View, entry: Entry, body: Kicked) -> View:
    _check_in(view, entry)
    if entry.author != view.chair:
        raise Forbidden(f"only {view.chair} may kick a participant: ask it to")
    if body.who == entry.author:
        raise Forbidden("a participant cannot kick itself: leave instead")
    if body.who == view.creator:
        raise Forbidden(f"{body.who} called the meeting and cannot be kicked")
    if _status(view, body.who) not in (ParticipantStatus.IN, ParticipantStatus.INVITED):
        raise Forbidden(f"{body.who} is neither present nor invited: it cannot be kicked")
    return decreed(view, entry)


# --- the beginning and the end -----------------------------------------------------------------------


def _started(view: View, entry: Entry, body: Started) -> View:
    _check_decides(view, entry)
    missing = [
        participant.address
        for participant in view.participants.values()
        if participant.required and not _had_come(participant, entry)
    ]
    if missing:
        raise Forbidden(f"{', '.join(missing)} must join before the start: wait, or fail the meeting")
    return replace(
        view, phase=Phase.RUNNING, began_at=entry.at.ms, decided_by=entry.id, head=entry.id, moved_at=entry.at.ms
    )


def _failed(view: View, entry: Entry, body: Failed) -> View:
    _check_decides(view, entry)
    return replace(view, phase=Phase.FAILED, over_at=entry.at.ms, decided_by=entry.id, reason=body.reason)


def _ended(view: View, entry: Entry, body: Ended) -> View:
    _check_in(view, entry)
    if view.phase is Phase.CALLING:
        raise Forbidden("the meeting has not begun: wait until it has started, or cancel it")
    is_done = play.is_played_out(view) or is_full(view) or len(view.present) == 1
    if entry.author != view.chair and not is_done:
        raise Forbidden(f"only {view.chair} may end the meeting now: ask it to, or leave")
    return decreed(view, entry)


# --- words and moves ---------------------------------------------------------------------------------


def _said(view: View, entry: Entry, body: Said) -> View:
    _check_runs(view, entry)
    if is_full(view):
        raise Forbidden("the meeting has reached its limit of messages or skipped turns: end it")
    if (why := floor.refusal(view, entry.author)) is not None:
        raise Forbidden(why)
    spoken = floor.after_words(view.floor, entry.author, body, view.present if body.to else ())
    word = Word(entry.id, entry.at.ms, body.text, body.to)
    return replace(view, words=view.words.added(word), floor=spoken)


def _raised(view: View, entry: Entry, body: Raised) -> View:
    _check_runs(view, entry)
    if view.rule not in (FloorRule.RAISE_HAND, FloorRule.MODERATOR):
        raise Forbidden(f"raised hands have no effect in this meeting: its floor rule is {view.rule}")
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
        raise Forbidden(f"{body.who} is not present: give the floor to a present participant")
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


def _withheld(view: View, entry: Entry, body: Withheld) -> View:
    """Return the view after a refusal. A refused move counts, so that a game without legal moves ends."""
    _check_in(view, entry)
    tried = view.tries + (body.what is EntryKind.MOVED and view.phase is Phase.RUNNING)
    return replace(view, tries=tried).with_refused(entry, body.reason)


# --- what they have in common ------------------------------------------------------------------------


def _check_open(view: View) -> None:
    if view.call is None:
        raise Forbidden("nobody has called this meeting: call it first")
    if view.is_over:
        raise Forbidden(f"the meeting has {view.phase}: call another one")


def _check_in(view: View, entry: Entry) -> None:
    if _status(view, entry.author) is ParticipantStatus.KICKED:
        raise _kicked_before(view, entry.author)
    if not view.is_in(entry.author):
        raise Forbidden(f"{entry.author} is not in the meeting: accept the invitation, or join")


def _check_runs(view: View, entry: Entry) -> None:
    _check_in(view, entry)
    if view.phase is not Phase.RUNNING:
        raise Forbidden("the meeting has not begun: wait until it has started")


def _check_decides(view: View, entry: Entry) -> None:
    _check_in(view, entry)
    if view.phase is not Phase.CALLING:
        raise Forbidden("the start of the meeting is decided already: nothing needs to be done")
    if not may_decide(view, entry):
        raise Forbidden(f"until the deadline {view.chair} decides whether the meeting starts: wait")


def _check_room(view: View) -> None:
    most = view.call.bounds.participants if view.call else 0
    if len(view.participants) >= most:
        raise Forbidden(f"the meeting is full, with {most} participants: call another one")


def _status(view: View, who: str) -> ParticipantStatus | None:
    participant = view.participants.get(who)
    return participant.status if participant is not None else None


def _kicked_before(view: View, who: str) -> Forbidden:
    reason = view.participants[who].reason
    return Forbidden(f"{who} was kicked{f' ({reason})' if reason else ''}: ask {view.chair} for a new invitation")


def _had_come(participant: Participant, entry: Entry) -> bool:
    """Return whether, as far as the author knew, that participant had joined or was not required."""
    seen = entry.number - 1 if participant.address == entry.author else entry.seen.get(participant.address, 0)
    if participant.status is ParticipantStatus.LEFT:
        return participant.came <= seen < participant.went
    return participant.status in (ParticipantStatus.IN, ParticipantStatus.KICKED) or not entry.knew(participant.asked)


def _came(view: View, entry: Entry) -> View:
    new = Participant(entry.author, ParticipantStatus.IN, False, entry.id)
    before = view.participants.get(entry.author, new)
    participant = replace(before, status=ParticipantStatus.IN, came=entry.number, reason="")
    is_back = before.status in (ParticipantStatus.DECLINED, ParticipantStatus.LEFT) or any(
        g.who == entry.author for g in view.goings
    )
    return view.with_going(participant, entry) if is_back else view.with_participant(participant)


def _went(view: View, entry: Entry, status: ParticipantStatus, reason: str) -> View:
    participant = replace(view.participants[entry.author], status=status, went=entry.number, reason=reason)
    return replace(view.with_going(participant, entry), floor=view.floor.without(entry.author))


def _timed(before: View, now: View, entry: Entry) -> View:
    """Return the view with the time since which the floor is held."""
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
    Withheld: _withheld,
    Ended: _ended,
}
