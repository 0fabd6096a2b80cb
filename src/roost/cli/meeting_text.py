"""A meeting as text for a terminal: as facts, as a picture that fits, and as what is new since the last look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roost.cli.tables import at, cut, facts, size
from roost.cli.text import line, plain
from roost.core.addresses import familiar
from roost.core.meetings.shown import Attendee, MeetingView, Refusal, Spoken
from roost.core.meetings.tictactoe import MARKS

GAP = "    "
"""Before what belongs to the line above: nobody's words can look like a line of another."""
NARROWEST = 12


def name(address: str, user: str) -> str:
    """As one would type it, also in a sentence: `agent:d` of one's own."""
    return familiar(line(address), line(user))


def names(addresses: Sequence[str], user: str) -> str:
    return ", ".join(name(one, user) for one in addresses)


def standing(view: MeetingView, user: str) -> str:
    """How it stands, in a sentence: who is awaited, who has the floor, how it came out."""
    if view.phase == "calling":
        awaited = [one.address for one in view.participants if one.required and one.status == "invited"]
        return (
            f"Waits for {names(awaited, user)} until {view.deadline.astimezone():%H:%M:%S}."
            if awaited and view.deadline
            else "Begins."
        )
    if view.phase == "failed":
        return f"It has failed: {name(view.reason, user)}."
    result = f"{name(view.outcome, user)} " if view.outcome else ""
    if view.phase == "ended":
        return f"{result}The meeting has ended."
    if view.mover:
        return f"It is the move of {name(view.mover, user)}."
    if view.game and not result:
        return "No more moves are taken."
    if result or view.floor == "free":
        return result.rstrip()
    return f"{names(view.speakers, user)} may speak." if view.speakers else "Nobody has the floor."


def word(spoken: Spoken, user: str) -> list[str]:
    """Something said; its first line with the time and the sender, the others below."""
    to = f" (to {names(spoken.to, user)})" if spoken.to else ""
    first, *more = familiar(plain(spoken.text), user).rstrip().split("\n")
    return [f"{spoken.at.astimezone():%H:%M:%S} {name(spoken.sender, user)}{to}: {first}", *(GAP + one for one in more)]


def board(view: MeetingView) -> list[str]:
    return [GAP + one for one in plain(view.board).split("\n")] if view.board else []


# --- all of it ---------------------------------------------------------------------------------------


def everything(view: MeetingView, user: str, others: Sequence[MeetingView] = ()) -> Iterator[str]:
    """`others`: how it looks to one's other participants; told where it differs."""
    yield from facts(
        [
            ("meeting", view.meeting_id),
            ("topic", view.topic),
            ("phase", view.phase),
            ("called by", name(view.creator, user)),
            ("called", at(view.called)),
            ("began", at(view.began)),
            ("over", at(view.over)),
            ("why", name(view.reason, user)),
            ("floor", view.floor.replace("_", " ")),
            ("moderator", name(view.moderator, user) if view.moderator else ""),
            ("hands up", names(view.hands, user)),
            ("game", f"{view.game}, {view.moves} moves" if view.game else ""),
            ("seen by", name(view.seen_by, user)),
        ]
    )
    yield ""
    yield from facts((name(one.address, user), _attendance(one, view)) for one in view.participants)
    if differing := [other for other in others if _seen(other) != _seen(view)]:
        yield ""
        yield "Not all see it alike at the moment:"
        yield from facts((name(one.seen_by, user), _sight(one, user)) for one in (view, *differing))
    if view.board:
        yield ""
        yield from board(view)
    yield from _said(view, user)
    for refusal in _of_interest(view):
        yield refused(refusal, user)
    if told := standing(view, user):
        yield ""
        yield told
    if view.minutes:
        yield from ("", "Minutes:", *(GAP + one for one in familiar(plain(view.minutes), user).split("\n")))


def _attendance(one: Attendee, view: MeetingView) -> str:
    because = f": {one.reason}" if one.reason else ""
    return ", ".join((one.status, *_roles(one, view))) + because


def _roles(one: Attendee, view: MeetingView) -> Iterator[str]:
    if one.address == view.chair:
        yield "chair"
    if one.address == view.moderator:
        yield "moderator"
    if one.required:
        yield "required"
    if mark := _mark(one.address, view):
        yield f"plays {mark}"
    if one.address == view.mover or (view.floor != "free" and one.address in view.speakers[:1]):
        yield "is next"


def _mark(address: str, view: MeetingView) -> str:
    """What a player of tic-tac-toe plays."""
    is_player = view.game == "tic-tac-toe" and view.state and address in view.state["players"]
    return MARKS[view.state["players"].index(address)] if is_player else ""


def _seen(view: MeetingView) -> tuple[object, ...]:
    return view.phase, view.participants, view.said, view.words[-1:], view.moves, view.state, view.outcome


def _sight(view: MeetingView, user: str) -> str:
    counts = f"{view.said} said" + (f", {view.moves} moves" if view.game else "")
    return f"{view.phase}, {counts}; there: {names(view.present, user)}"


def _said(view: MeetingView, user: str) -> Iterator[str]:
    if not view.words:
        return
    yield ""
    if view.said > len(view.words):
        yield f"(the newest {len(view.words)} of {view.said}; --limit shows more)"
    for spoken in view.words:
        yield from word(spoken, user)


# --- a picture ---------------------------------------------------------------------------------------


def picture(view: MeetingView, user: str, width: int, height: int) -> list[str]:
    """What fits: who is there, the board, the newest words, and how it stands."""
    head = [cut(f"{line(view.topic)} · {view.phase}", width), *_groups(view, user, width)]
    drawn = ["", *board(view)] if view.board else []
    foot = list(folded(standing(view, user), width))
    room = max(0, height - len(head) - len(drawn) - len(foot) - 3)
    said = [row for spoken in view.words[-room:] for one in word(spoken, user) for row in folded(one, width)]
    shown = ["", *said[-room:]] if said and room else []
    rows = [cut(row, width) for row in (*head, *drawn, *shown, *(["", *foot] if foot else []))]
    most = max(2, height - 1)
    return rows if len(rows) <= most else [rows[0], *rows[1 - most :]]


def _groups(view: MeetingView, user: str, width: int) -> Iterator[str]:
    for status, title in (
        ("in", "There"),
        ("invited", "Invited"),
        ("declined", "Declined"),
        ("left", "Left"),
        ("kicked", "Sent away"),
    ):
        if those := [_marked(one.address, view, user) for one in view.participants if one.status == status]:
            yield from folded(f"{title}: {', '.join(those)}", width)


def _marked(address: str, view: MeetingView, user: str) -> str:
    mark = _mark(address, view)
    return f"{name(address, user)} ({mark})" if mark else name(address, user)


def folded(text: str, width: int) -> Iterator[str]:
    """Lines no wider than this, parted between words where that is possible."""
    width = max(width, NARROWEST)
    row, start = " " * min(len(text) - len(text.lstrip(" ")), width // 2), True
    for part in text.split():
        longer = f"{row}{'' if start else ' '}{part}"
        if not start and size(longer) > width:
            yield row
            longer = GAP + part
        while size(longer) > width:
            fitting = cut(longer, width)[:-1]
            yield fitting
            longer = GAP + longer[len(fitting) :]
        row, start = longer, False
    if row.strip():
        yield row


# --- what is new -------------------------------------------------------------------------------------


def news(before: MeetingView | None, now: MeetingView, user: str) -> Iterator[str]:
    """Line by line what has changed; the board first, since whoever moves speaks after it."""
    if before is None:
        yield line(f"{now.topic} ({now.meeting_id})")
    yield from _changes_of_people(before, now, user)
    was_drawn = before is not None and before.phase != "calling" and before.board == now.board
    if now.board and now.phase != "calling" and not was_drawn:
        yield from ("", *board(now), "")
    known = {one.entry for one in before.words} | {one.entry for one in before.refused} if before else set()
    for spoken in now.words:
        if spoken.entry not in known:
            yield from word(spoken, user)
    for refusal in _of_interest(now):
        if refusal.entry not in known:
            yield refused(refusal, user)
    told, told_before = standing(now, user), standing(before, user) if before else ""
    if told != told_before:
        yield told.removeprefix(f"{told_before} ")


def _of_interest(view: MeetingView) -> list[Refusal]:
    """What somebody tried. That a move was missed all notice by themselves, and the word of one of them counts."""
    return [one for one in view.refused if one.kind != "missed"]


def refused(one: Refusal, user: str) -> str:
    return f"Refused: {name(f'{one.sender} {one.kind}: {one.reason}', user)}"


def _changes_of_people(before: MeetingView | None, now: MeetingView, user: str) -> Iterator[str]:
    was = {one.address: one.status for one in before.participants} if before else {}
    for one in now.participants:
        if was.get(one.address) != one.status:
            because = f": {one.reason}" if one.reason else ""
            yield line(f"{name(one.address, user)} {_BECAME.get(one.status, one.status)}{because}")


_BECAME = {
    "in": "is there",
    "invited": "is invited",
    "declined": "has declined",
    "left": "has left",
    "kicked": "was sent away",
}
