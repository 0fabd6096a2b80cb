"""`roost meetings …`: actions in a meeting, such as join, say, move and end."""

from __future__ import annotations

import json as encoding
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.app.connect import Service
from roost.cli.app.options import Config, Json, Store, command_group
from roost.cli.app.shared import full_address, note_not_running, open_session, optional_address, read_text
from roost.cli.commands.meetings.shared import NOT_RUNNING, By, Meeting, find_meeting
from roost.cli.render.meetings import board_lines, display_name, post_lines, status_line
from roost.cli.render.output import print_result
from roost.cli.render.text import single_line
from roost.core.meetings.view.shown import MeetingView
from roost.errors import Invalid

app = command_group()
Who = Annotated[str, typer.Argument(metavar="WHO", help="Participant: agent:NAME or user:NAME.")]
Why = Annotated[str, typer.Option("--reason", help="Reason, shown to the others.")]


@app.command()
def say(
    meeting: Meeting,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text of the post; - reads standard input.")],
    to: Annotated[
        list[str] | None, typer.Option("--to", metavar="WHO", help="Addressed participant; can be repeated.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="Idempotency key: the same key posts once.")] = None,
    by: By = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Post a message in a meeting you are in."""
    with open_session(store, config) as (service, user):
        meeting_id = find_meeting(service, user, meeting)
        meant = [full_address(one) for one in to or []]
        _check_there(service, user, meeting_id, meant)
        said = service.meetings.say(user, meeting_id, read_text(text), to=meant, by=optional_address(by), key=key)
        note_not_running(service, NOT_RUNNING)
    print_result(said, lambda: post_lines(said, user), as_json=json)


def _check_there(service: Service, user: str, meeting_id: str, meant: list[str]) -> None:
    """Raise Invalid if an addressed participant is not in the meeting."""
    if not meant:
        return
    there = [display_name(one.address, user) for one in service.meetings.view(user, meeting_id, limit=1).participants]
    for who in meant:
        if display_name(who, user) not in there:
            raise Invalid(f"{single_line(who)} is not in the meeting: use one of {', '.join(there)}")


@app.command()
def move(
    meeting: Meeting,
    played: Annotated[str, typer.Argument(metavar="MOVE", help="Number of a cell, or a move as JSON.")],
    key: Annotated[str | None, typer.Option("--key", help="Idempotency key: the same key moves once.")] = None,
    by: By = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Make a move in the game of a meeting.

    \b
    For example:
      roost meetings move 8f3a 5
    """
    made = _read_move(played)
    with open_session(store, config) as (service, user):
        meeting_id = find_meeting(service, user, meeting)
        view = service.meetings.move(user, meeting_id, made, by=optional_address(by), key=key)
        note_not_running(service, NOT_RUNNING)
    print_result(view, lambda: [*board_lines(view), "", status_line(view, user)], as_json=json)


def _read_move(text: str) -> Any:
    """Parse a move: the number of a cell, or JSON."""
    try:
        made = encoding.loads(text)
    except ValueError:
        raise typer.BadParameter(
            f'{text!r:.80} is not a valid move: use the number of a cell, or JSON such as {{"cell": 5}}'
        ) from None
    return {"cell": made} if isinstance(made, int) and not isinstance(made, bool) else made


@app.command()
def end(
    meeting: Meeting,
    text: Annotated[str, typer.Option("--minutes", help="Minutes of the meeting; - reads standard input.")] = "",
    by: By = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """End a meeting you called."""
    _act(lambda s, user, id, who: s.meetings.end(user, id, read_text(text), by=who), meeting, by, json, store, config)


def _act(
    do: Callable[[Service, str, str, str | None], MeetingView],
    meeting: str,
    by: str | None,
    json: bool,
    store: str | None,
    config: Path | None,
) -> None:
    """Run an action in a meeting and print the new status."""
    with open_session(store, config) as (service, user):
        view = do(service, user, find_meeting(service, user, meeting), optional_address(by))
        note_not_running(service, NOT_RUNNING)
    print_result(view, lambda: [_status(view, user)], as_json=json)


def _status(view: MeetingView, user: str) -> str:
    me = "You are" if view.seen_by == f"user:{user}" else f"{display_name(view.seen_by, user)} is"
    where = f"{_HOW.get(view.status, view.status)} '{single_line(view.topic)}' ({view.phase})"
    return f"{me} {where}. {status_line(view, user) if view.status in ('in', 'invited') else ''}".rstrip()


_HOW = {"in": "in", "invited": "invited to", "declined": "not coming to", "left": "out of", "kicked": "removed from"}


def _simple(command: str, about: str, do: Callable[[Service, str, str, str | None], MeetingView]) -> None:
    def run(meeting: Meeting, by: By = None, json: Json = False, store: Store = None, config: Config = None) -> None:
        _act(do, meeting, by, json, store, config)

    app.command(command, help=about)(run)


def _with_reason(command: str, about: str, do: Callable[[Service, str, str, str | None, str], MeetingView]) -> None:
    def run(
        meeting: Meeting,
        reason: Why = "",
        by: By = None,
        json: Json = False,
        store: Store = None,
        config: Config = None,
    ) -> None:
        _act(lambda s, user, id, who: do(s, user, id, who, reason), meeting, by, json, store, config)

    app.command(command, help=about)(run)


def _about_someone(command: str, about: str, do: Callable[[Service, str, str, str | None, str], MeetingView]) -> None:
    def run(
        meeting: Meeting, who: Who, by: By = None, json: Json = False, store: Store = None, config: Config = None
    ) -> None:
        _act(lambda s, user, id, mine: do(s, user, id, mine, full_address(who)), meeting, by, json, store, config)

    app.command(command, help=about)(run)


_simple(
    "join",
    "Join a meeting: accept an invitation, or join late or again.",
    lambda s, user, id, by: s.meetings.join(user, id, by=by),
)
_simple("hand", "Raise your hand to speak.", lambda s, user, id, by: s.meetings.raise_hand(user, id, by=by))
_simple("pass", "Pass your turn to speak.", lambda s, user, id, by: s.meetings.pass_turn(user, id, by=by))
_with_reason("decline", "Decline an invitation.", lambda s, user, id, by, why: s.meetings.decline(user, id, why, by=by))
_with_reason(
    "cancel",
    "Cancel a meeting you called before it starts.",
    lambda s, user, id, by, why: s.meetings.cancel(user, id, why, by=by),
)
_with_reason(
    "leave", "Leave a meeting; you can join again.", lambda s, user, id, by, why: s.meetings.leave(user, id, why, by=by)
)
_about_someone(
    "invite", "Invite another participant.", lambda s, user, id, by, who: s.meetings.invite(user, id, who, by=by)
)
_about_someone(
    "kick",
    "Remove a participant from a meeting you called.",
    lambda s, user, id, by, who: s.meetings.kick(user, id, who, by=by),
)
_about_someone(
    "grant",
    "Give a participant the floor (moderator only).",
    lambda s, user, id, by, who: s.meetings.grant(user, id, who, by=by),
)
