"""State of a meeting in words: its phase, who has the floor, whose turn is next, and how views stand to each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from roost.core.meetings.games.tictactoe import MARKS
from roost.core.meetings.view.shown import MeetingView
from roost.ui.design.components import moment
from roost.ui.meetings.names import listed, readable, short

PHASES = {
    "calling": ("Calling", "waiting"),
    "running": ("Running", "busy"),
    "ended": ("Ended", "good"),
    "failed": ("Failed", "bad"),
}
"""Phases with their words and tones."""
STATUSES = {
    "in": ("Present", "good"),
    "invited": ("Invited", "waiting"),
    "declined": ("Declined", "bad"),
    "left": ("Left", "quiet"),
    "kicked": ("Removed", "bad"),
}
FLOORS = {
    "free": ("Free", "Anyone may speak at any time."),
    "round_robin": ("Round robin", "One after the other, beginning with the one who calls."),
    "raise_hand": ("Raise hand", "Participants raise a hand, and speak in that order, once each."),
    "moderator": ("Moderator", "The moderator speaks, and gives the floor to others."),
    "mention": ("Mention", "Mentioned participants speak, and the chair."),
}
"""Floor rules with their labels, and a sentence on each."""
TICTACTOE = "tic-tac-toe"


def sentence(view: MeetingView, user: str) -> str:
    """Return the state in a sentence or two."""
    if view.phase == "calling":
        return _calling(view, user)
    if view.phase == "failed":
        return f"The meeting failed: {readable(view.reason, user)}."
    if view.phase == "ended":
        return f"{outcome(view, user)} The meeting has ended.".strip()
    if view.game:
        return outcome(view, user) or _move(view, user)
    return _FLOORS[view.floor](view, user)


def outcome(view: MeetingView, user: str) -> str:
    """Return the result of the game; nothing while it is played."""
    is_own = view.outcome and view.winner == f"user:{user}"
    return "You win." if is_own else readable(view.outcome or "", user)


def floor(view: MeetingView, user: str) -> str:
    """Return who has the floor, or has to move, in a word or two."""
    if view.phase != "running":
        return ""
    if view.game:
        return short(view.mover, user) if view.mover else ""
    return "Anyone" if view.floor == "free" else listed(view.speakers, user, most=2)


def mark(view: MeetingView, address: str | None) -> str:
    """Return the mark of a player of tic-tac-toe, X or O."""
    players = view.state["players"] if view.game == TICTACTOE and view.state else []
    return MARKS[players.index(address)] if address in players else ""


def standing(view: MeetingView, views: Sequence[MeetingView]) -> str:
    """Return how a view stands to the newest one of the same meeting: up to date, or how far behind."""
    newest = max(views, key=lambda one: (one.said, one.moves, one.is_over))
    if view.cursor == newest.cursor:
        return f"{_messages(view.said)}, up to date"
    behind = newest.said - view.said
    return f"{_messages(behind)} behind" if behind else f"{_messages(view.said)}, catching up"


def _messages(number: int) -> str:
    return f"{number} message{'s' if number != 1 else ''}"


def _calling(view: MeetingView, user: str) -> str:
    awaited = [one.address for one in view.participants if one.required and one.status == "invited"]
    if not awaited or view.deadline is None:
        return "The meeting is starting."
    return f"Waiting for {listed(awaited, user)}, until {moment(view.deadline)}."


def _move(view: MeetingView, user: str) -> str:
    if view.mover is None:
        return "Any participant may move." if "move" in view.may else "No more moves are taken."
    playing = f" with {mark(view, view.mover)}" if mark(view, view.mover) else ""
    return f"It is {_whose(view.mover, user)} move{playing}."


def _whose(address: str, user: str) -> str:
    return "your" if address == f"user:{user}" else f"{short(address, user)}’s"


def _has(address: str, user: str) -> str:
    return f"{short(address, user)} {'have' if address == f'user:{user}' else 'has'} the floor"


def _free(view: MeetingView, user: str) -> str:
    return "Anyone may speak."


def _round_robin(view: MeetingView, user: str) -> str:
    if not view.speakers:
        return "Nobody has the floor."
    ring, holder = view.present, view.speakers[0]
    following = ring[(ring.index(holder) + 1) % len(ring)] if holder in ring else holder
    after = f" Next: {short(following, user)}." if following != holder else ""
    return f"{_has(holder, user)}.{after}"


def _raise_hand(view: MeetingView, user: str) -> str:
    if not view.hands:
        return "Nobody has the floor: raise a hand to speak."
    after = f" Next: {listed(view.hands[1:], user)}." if view.hands[1:] else ""
    return f"{_has(view.hands[0], user)}.{after}"


def _moderator(view: MeetingView, user: str) -> str:
    moderator, hands = view.moderator or view.chair or "", view.hands
    granted = view.speakers[0] if view.speakers and view.speakers[0] != moderator else None
    first = f"{_has(granted, user)}" if granted else f"{_has(moderator, user)} as moderator"
    return f"{first}.{f' Raised hands: {listed(hands, user)}.' if hands else ''}"


def _mention(view: MeetingView, user: str) -> str:
    return f"{listed(view.speakers, user)} may speak." if view.speakers else "Nobody has the floor."


_FLOORS: Mapping[str, Callable[[MeetingView, str], str]] = {
    "free": _free,
    "round_robin": _round_robin,
    "raise_hand": _raise_hand,
    "moderator": _moderator,
    "mention": _mention,
}
