"""A meeting as text: all details, a snapshot that fits the terminal, and what is new since the last view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from roost.cli.render.tables import key_values, local_time, truncate
from roost.cli.render.text import sanitize, single_line
from roost.core.meetings.games.tictactoe import MARKS
from roost.core.meetings.view.shown import Attendee, MeetingView, Refusal, Spoken
from roost.core.values.addresses import shortened

GAP = "    "
"""Indent of continuation lines, so that no text can look like a line of another sender."""
NARROWEST = 12


def display_name(address: str, user: str) -> str:
    """Return an address as the user would type it: `agent:d` for an own agent."""
    return shortened(single_line(address), single_line(user))


def display_names(addresses: Sequence[str], user: str) -> str:
    return ", ".join(display_name(one, user) for one in addresses)


def status_line(view: MeetingView, user: str) -> str:
    """Return the status in one sentence: who is awaited, who has the floor, or the outcome."""
    if view.phase == "calling":
        awaited = [one.address for one in view.participants if one.required and one.status == "invited"]
        return (
            f"Waiting for {display_names(awaited, user)} until {view.deadline.astimezone():%H:%M:%S}."
            if awaited and view.deadline
            else "Starting."
        )
    if view.phase == "failed":
        return f"The meeting failed: {display_name(view.reason, user)}."
    result = f"{display_name(view.outcome, user)} " if view.outcome else ""
    if view.phase == "ended":
        return f"{result}The meeting has ended."
    if view.mover:
        return f"{display_name(view.mover, user)} is to move."
    if view.game and not result:
        return "No more moves are taken."
    if result or view.floor == "free":
        return result.rstrip()
    return f"{display_names(view.speakers, user)} may speak." if view.speakers else "Nobody has the floor."


def post_lines(spoken: Spoken, user: str) -> list[str]:
    """Return the lines of a post: time and sender on the first, the rest indented."""
    to = f" (to {display_names(spoken.to, user)})" if spoken.to else ""
    first, *more = shortened(sanitize(spoken.text), user).rstrip().split("\n")
    return [
        f"{spoken.at.astimezone():%H:%M:%S} {display_name(spoken.sender, user)}{to}: {first}",
        *(GAP + one for one in more),
    ]


def board_lines(view: MeetingView) -> list[str]:
    return [GAP + one for one in sanitize(view.board).split("\n")] if view.board else []


# --- all details ---------------------------------------------------------------------------------------


def details(view: MeetingView, user: str, others: Sequence[MeetingView] = ()) -> Iterator[str]:
    """Yield all details of a meeting, and how the views of the user's `others` differ."""
    yield from key_values(
        [
            ("meeting", view.meeting_id),
            ("topic", view.topic),
            ("phase", view.phase),
            ("called by", display_name(view.creator, user)),
            ("called", local_time(view.called)),
            ("began", local_time(view.began)),
            ("over", local_time(view.over)),
            ("why", display_name(view.reason, user)),
            ("floor", view.floor.replace("_", " ")),
            ("moderator", display_name(view.moderator, user) if view.moderator else ""),
            ("raised hands", display_names(view.hands, user)),
            ("game", f"{view.game}, {view.moves} moves" if view.game else ""),
            ("seen by", display_name(view.seen_by, user)),
        ]
    )
    yield ""
    yield from key_values((display_name(one.address, user), _attendance(one, view)) for one in view.participants)
    if differing := [other for other in others if _seen(other) != _seen(view)]:
        yield ""
        yield "The views of the participants differ at the moment:"
        yield from key_values((display_name(one.seen_by, user), _sight(one, user)) for one in (view, *differing))
    if view.board:
        yield ""
        yield from board_lines(view)
    yield from _said(view, user)
    for refusal in _of_interest(view):
        yield from refusal_lines(refusal, user)
    if status := status_line(view, user):
        yield ""
        yield status
    if view.minutes:
        yield from ("", "Minutes:", *(GAP + one for one in shortened(sanitize(view.minutes), user).split("\n")))


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
    """Return the mark of a player of tic-tac-toe, X or O."""
    is_player = view.game == "tic-tac-toe" and view.state and address in view.state["players"]
    return MARKS[view.state["players"].index(address)] if is_player else ""


def _seen(view: MeetingView) -> tuple[object, ...]:
    return view.phase, view.participants, view.said, view.words[-1:], view.moves, view.state, view.outcome


def _sight(view: MeetingView, user: str) -> str:
    counts = f"{view.said} said" + (f", {view.moves} moves" if view.game else "")
    return f"{view.phase}, {counts}; present: {display_names(view.present, user)}"


def _said(view: MeetingView, user: str) -> Iterator[str]:
    if not view.words:
        return
    yield ""
    if view.said > len(view.words):
        yield f"(the newest {len(view.words)} of {view.said}; --limit shows more)"
    for spoken in view.words:
        yield from post_lines(spoken, user)


# --- a snapshot ---------------------------------------------------------------------------------------


def snapshot(view: MeetingView, user: str, width: int, height: int) -> list[str]:
    """Return what fits the terminal: participants, board, newest posts and status."""
    head = [truncate(f"{single_line(view.topic)} · {view.phase}", width), *_groups(view, user, width)]
    drawn = ["", *board_lines(view)] if view.board else []
    foot = list(wrap(status_line(view, user), width))
    room = max(0, height - len(head) - len(drawn) - len(foot) - 3)
    said = [row for spoken in view.words[-room:] for one in post_lines(spoken, user) for row in wrap(one, width)]
    shown = ["", *said[-room:]] if said and room else []
    rows = [truncate(row, width) for row in (*head, *drawn, *shown, *(["", *foot] if foot else []))]
    most = max(2, height - 1)
    return rows if len(rows) <= most else [rows[0], *rows[1 - most :]]


def _groups(view: MeetingView, user: str, width: int) -> Iterator[str]:
    for status, title in (
        ("in", "Present"),
        ("invited", "Invited"),
        ("declined", "Declined"),
        ("left", "Left"),
        ("kicked", "Removed"),
    ):
        if those := [_marked(one.address, view, user) for one in view.participants if one.status == status]:
            yield from wrap(f"{title}: {', '.join(those)}", width)


def _marked(address: str, view: MeetingView, user: str) -> str:
    mark = _mark(address, view)
    return f"{display_name(address, user)} ({mark})" if mark else display_name(address, user)


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield lines no wider than `width`, broken between words where possible."""
    width = max(width, NARROWEST)
    row, start = " " * min(len(text) - len(text.lstrip(" ")), width // 2), True
    for part in text.split():
        longer = f"{row}{'' if start else ' '}{part}"
        if not start and cell_len(longer) > width:
            yield row
            longer = GAP + part
        while cell_len(longer) > width:
            fitting = truncate(longer, width)[:-1]
            yield fitting
            longer = GAP + longer[len(fitting) :]
        row, start = longer, False
    if row.strip():
        yield row


# --- what is new -------------------------------------------------------------------------------------


def new_lines(before: MeetingView | None, now: MeetingView, user: str) -> Iterator[str]:
    """Yield lines for what has changed: participants, the board, then posts, since players post after their move."""
    if before is None:
        yield single_line(f"{now.topic} ({now.meeting_id})")
    yield from _changes_of_people(before, now, user)
    was_drawn = before is not None and before.phase != "calling" and before.board == now.board
    if now.board and now.phase != "calling" and not was_drawn:
        yield from ("", *board_lines(now), "")
    known = {one.entry for one in before.words} | {one.entry for one in before.refused} if before else set()
    for spoken in now.words:
        if spoken.entry not in known:
            yield from post_lines(spoken, user)
    for refusal in _of_interest(now):
        if refusal.entry not in known:
            yield from refusal_lines(refusal, user)
    status, status_before = status_line(now, user), status_line(before, user) if before else ""
    if status != status_before:
        yield status.removeprefix(f"{status_before} ")


def _of_interest(view: MeetingView) -> list[Refusal]:
    """Return the refused actions to show, without missed moves: all participants report those and one report counts."""
    return [one for one in view.refused if one.kind != "missed"]


def refusal_lines(one: Refusal, user: str) -> list[str]:
    """Return the lines of a refused action: the action, and below it the reason."""
    first, *more = shortened(sanitize(one.text), user).rstrip().split("\n")
    status = f"Refused: {display_name(one.sender, user)} {single_line(one.kind)}{f': {first}' if first else ''}"
    return [status, *(GAP + row for row in more), f"{GAP}Reason: {display_name(one.reason, user)}"]


def _changes_of_people(before: MeetingView | None, now: MeetingView, user: str) -> Iterator[str]:
    was = {one.address: one.status for one in before.participants} if before else {}
    for one in now.participants:
        if was.get(one.address) != one.status:
            because = f": {one.reason}" if one.reason else ""
            yield single_line(f"{display_name(one.address, user)} {_BECAME.get(one.status, one.status)}{because}")


_BECAME = {
    "in": "joined",
    "invited": "was invited",
    "declined": "declined",
    "left": "left",
    "kicked": "was removed",
}
