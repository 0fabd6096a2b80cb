"""`roost meetings …`: what one does in a meeting: come and go, speak, play, and end it."""

from __future__ import annotations

import json as encoding
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.desk import note_waiting, opened, show
from roost.cli.find import Service
from roost.cli.meeting_desk import LATER, By, Meeting, address, found, full, text_of
from roost.cli.meeting_text import board, name, standing, word
from roost.cli.options import Config, Json, Store, group
from roost.cli.text import line
from roost.core.meetings.shown import MeetingView
from roost.errors import Invalid

app = group()
Who = Annotated[str, typer.Argument(metavar="WHO", help="agent:NAME or user:NAME.")]
Why = Annotated[str, typer.Option("--reason", help="Why, for the others.")]


@app.command()
def say(
    meeting: Meeting,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say; - reads it from standard input.")],
    to: Annotated[
        list[str] | None, typer.Option("--to", metavar="WHO", help="Who is meant; may be given again.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="With the same key again it is said once.")] = None,
    by: By = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Say something in a meeting you are in."""
    with opened(store, config) as (service, user):
        meeting_id = found(service, user, meeting)
        meant = [full(one) for one in to or []]
        _check_there(service, user, meeting_id, meant)
        said = service.meetings.say(user, meeting_id, text_of(text), to=meant, by=address(by), key=key)
        note_waiting(service, LATER)
    show(said, lambda: word(said, user), as_json=json)


def _check_there(service: Service, user: str, meeting_id: str, meant: list[str]) -> None:
    """Raise Invalid if one of them takes no part in the meeting: nobody would be asked."""
    if not meant:
        return
    there = [name(one.address, user) for one in service.meetings.view(user, meeting_id, limit=1).participants]
    for who in meant:
        if name(who, user) not in there:
            raise Invalid(f"{line(who)} is not in the meeting: name one of {', '.join(there)}")


@app.command()
def move(
    meeting: Meeting,
    played: Annotated[str, typer.Argument(metavar="MOVE", help="The number of a cell, or a move as JSON.")],
    key: Annotated[str | None, typer.Option("--key", help="With the same key again it is one move.")] = None,
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
    with opened(store, config) as (service, user):
        meeting_id = found(service, user, meeting)
        view = service.meetings.move(user, meeting_id, made, by=address(by), key=key)
        note_waiting(service, LATER)
    show(view, lambda: [*board(view), "", standing(view, user)], as_json=json)


def _read_move(text: str) -> Any:
    """What was typed as a move: the number of a cell, or JSON."""
    try:
        made = encoding.loads(text)
    except ValueError:
        raise typer.BadParameter(
            f'{text!r:.80} is no move: write the number of a cell, or JSON such as {{"cell": 5}}'
        ) from None
    return {"cell": made} if isinstance(made, int) and not isinstance(made, bool) else made


@app.command()
def end(
    meeting: Meeting,
    text: Annotated[str, typer.Option("--minutes", help="What to keep of it; - reads it from standard input.")] = "",
    by: By = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """End a meeting you have called."""
    _act(lambda s, user, id, who: s.meetings.end(user, id, text_of(text), by=who), meeting, by, json, store, config)


def _act(
    do: Callable[[Service, str, str, str | None], MeetingView],
    meeting: str, by: str | None, json: bool, store: str | None, config: Path | None,
) -> None:  # fmt: skip
    """Do something in a meeting, and tell how it stands then."""
    with opened(store, config) as (service, user):
        view = do(service, user, found(service, user, meeting), address(by))
        note_waiting(service, LATER)
    show(view, lambda: [_told(view, user)], as_json=json)


def _told(view: MeetingView, user: str) -> str:
    me = "You are" if view.seen_by == f"user:{user}" else f"{name(view.seen_by, user)} is"
    where = f"{_HOW.get(view.status, view.status)} '{line(view.topic)}' ({view.phase})"
    return f"{me} {where}. {standing(view, user) if view.status in ('in', 'invited') else ''}".rstrip()


_HOW = {"in": "in", "invited": "invited to", "declined": "not coming to", "left": "out of", "kicked": "sent away from"}


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
        _act(lambda s, user, id, mine: do(s, user, id, mine, full(who)), meeting, by, json, store, config)

    app.command(command, help=about)(run)


_simple("join", "Come to a meeting: accept an invitation, come late, or again.",
        lambda s, user, id, by: s.meetings.join(user, id, by=by))  # fmt: skip
_simple("hand", "Raise a hand.", lambda s, user, id, by: s.meetings.raise_hand(user, id, by=by))
_simple("pass", "Pass on your turn to speak.", lambda s, user, id, by: s.meetings.pass_turn(user, id, by=by))
_with_reason("decline", "Decline an invitation.", lambda s, user, id, by, why: s.meetings.decline(user, id, why, by=by))
_with_reason("leave", "Leave a meeting; you may come again.",
             lambda s, user, id, by, why: s.meetings.leave(user, id, why, by=by))  # fmt: skip
_about_someone("invite", "Invite someone more.", lambda s, user, id, by, who: s.meetings.invite(user, id, who, by=by))
_about_someone("kick", "Send someone away, from a meeting you have called.",
               lambda s, user, id, by, who: s.meetings.kick(user, id, who, by=by))  # fmt: skip
_about_someone("grant", "Give someone the floor, as the moderator.",
               lambda s, user, id, by, who: s.meetings.grant(user, id, who, by=by))  # fmt: skip
