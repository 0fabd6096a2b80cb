"""`roost meetings`: call them, and see what was said; what is done in them is in `meeting_acts`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli import meeting_acts
from roost.cli.commands import choice
from roost.cli.desk import check_agent, note_waiting, opened, short, show, show_list
from roost.cli.find import Service
from roost.cli.meeting_desk import LATER, By, Meeting, address, found, full
from roost.cli.meeting_text import everything, name
from roost.cli.options import Config, Json, Limit, Store, Urgency, group
from roost.cli.tables import ago, duration, some_time
from roost.cli.text import plain
from roost.core.meetings.bodies import FloorRule
from roost.core.meetings.shown import MeetingSummary, MeetingView
from roost.core.meetings.view import Phase
from roost.errors import RoostError

app = group()
SeenBy = Annotated[str | None, typer.Option("--as", metavar="AGENT", help="As this participant of yours sees it.")]


@app.command()
def ls(
    participant: Annotated[
        str | None, typer.Option("--with", metavar="AGENT", help="Only those of this agent of yours.")
    ] = None,
    phase: Annotated[
        str | None,
        typer.Option("--phase", parser=choice("the phase", Phase), help="calling, running, failed or ended."),
    ] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List your meetings and those of your agents, newest first."""
    with opened(store, config) as (service, user):
        listed = service.meetings.list(user, participant=address(participant), phase=phase, limit=limit)
        check_agent(service, user, participant, listed)
    nothing = "No meetings: `roost meetings call TOPIC --with AGENT` calls one."
    headings = ("ID", "PHASE", "YOURS", "CALLED", "BY", "TOPIC")
    show_list(listed, headings, lambda one: _row(one, user), nothing, as_json=json)


def _row(one: MeetingSummary, user: str) -> tuple[str, ...]:
    return short(one.meeting_id), one.phase, one.status, ago(one.called), name(one.creator, user), one.topic


@app.command("show")
def show_one(
    meeting: Meeting,
    seen_by: SeenBy = None,
    json: Json = False,
    limit: Limit = 200,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show a meeting: who is there, what was said, how it stands.

    Each participant keeps a view of its own. Where those of your agents differ, for a moment or because one is away,
    it is told how.
    """
    with opened(store, config) as (service, user):
        meeting_id = found(service, user, meeting)
        view = service.meetings.view(user, meeting_id, seen_by=address(seen_by), limit=limit)
        others = [] if json else list(_others(service, user, view))
    show(view, lambda: everything(view, user, others), as_json=json)


def _others(service: Service, user: str, view: MeetingView) -> Iterator[MeetingView]:
    """How it looks to the other participants whose view one may see."""
    for one in view.participants:
        is_mine = one.address == f"user:{user}" or one.address.startswith(f"agent:{user}/")
        if is_mine and one.address != view.seen_by and one.status in ("in", "invited"):
            try:
                yield service.meetings.view(user, view.meeting_id, seen_by=one.address, limit=1)
            except RoostError:  # it has not heard of the meeting yet
                continue


@app.command()
def watch(
    meeting: Meeting, seen_by: SeenBy = None, json: Json = False, store: Store = None, config: Config = None
) -> None:
    """Watch a meeting until it is over, or until Ctrl-C.

    In a terminal as a picture; through a pipe, line by line what is new; with --json each view as a line.
    """
    from roost.cli.meeting_watch import follow

    with opened(store, config, hosting=True) as (service, user):
        meeting_id = found(service, user, meeting)
        follow(service.meetings.watch(user, meeting_id, seen_by=address(seen_by)), user, as_json=json)


@app.command()
def attend(meeting: Meeting, store: Store = None, config: Config = None) -> None:
    """Take part in a meeting: what you type is said.

    In a game a number is a move. Ctrl-D ends this; you stay in the meeting until you leave it.
    """
    from roost.cli.attending import Attending
    from roost.cli.meeting_watch import looks

    with opened(store, config, hosting=True) as (service, user):
        meeting_id, me = found(service, user, meeting), f"user:{user}"
        view = service.meetings.view(user, meeting_id)
        if not view.is_over and (view.seen_by, view.status) != (me, "in"):
            service.meetings.join(user, meeting_id)
        Attending(service, user, meeting_id).attend(looks(service, user, meeting_id), lambda: False)


@app.command()
def minutes(
    meeting: Meeting, seen_by: SeenBy = None, store: Store = None, config: Config = None, json: Json = False
) -> None:
    """Print the minutes of a meeting, as Markdown.

    Of one that goes on, those so far.
    """
    with opened(store, config) as (service, user):
        meeting_id = found(service, user, meeting)
        text = service.meetings.minutes(user, meeting_id, seen_by=address(seen_by))
    show({"meetingId": meeting_id, "minutes": text}, lambda: [plain(text).rstrip("\n")], as_json=json)


@app.command()
def call(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="What it is about.")],
    required: Annotated[
        list[str] | None, typer.Option("--with", metavar="WHO", help="Who must come; may be given again.")
    ] = None,
    optional: Annotated[
        list[str] | None, typer.Option("--optional", metavar="WHO", help="Who may come; may be given again.")
    ] = None,
    floor: Annotated[
        str,
        typer.Option(
            "--floor",
            parser=choice("the floor rule", FloorRule),
            help="free, round_robin, raise_hand, moderator or mention.",
        ),
    ] = "free",
    moderator: Annotated[str | None, typer.Option("--moderator", metavar="WHO", help="Who gives the floor.")] = None,
    game: Annotated[str | None, typer.Option("--game", help="What is played: tic-tac-toe.")] = None,
    player: Annotated[
        list[str] | None, typer.Option("--player", metavar="WHO", help="Who plays, in order; they must come.")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option("--deadline", metavar="DURATION", parser=some_time, help="To come in (60s).")
    ] = None,
    turn_timeout: Annotated[
        float | None, typer.Option("--turn-timeout", metavar="DURATION", parser=duration, help="For each turn (5m).")
    ] = None,
    anyone: Annotated[bool, typer.Option("--open", help="Who was not invited may come too.")] = False,
    priority: Urgency = "normal",
    watching: Annotated[bool, typer.Option("--watch", help="Watch it until it is over.")] = False,
    key: Annotated[str | None, typer.Option("--key", help="With the same key again it is the same meeting.")] = None,
    by: By = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Call a meeting, and print its id. It begins when those who must come have come.

    \b
    For example:
      roost meetings call "Where shall we nest?" --with agent:d --optional agent:e --floor round_robin
      roost meetings call "A game" --game tic-tac-toe --player user:ann --player agent:d
    """
    from roost.cli.meeting_watch import follow

    players = [full(one) for one in player or []]
    if players and game is None:
        raise typer.BadParameter("--player needs --game: say what they play, tic-tac-toe")
    if game == "tic-tac-toe" and len(set(players)) != 2:
        raise typer.BadParameter("tic-tac-toe needs two players: give --player twice, first X and then O")
    if moderator is not None and floor != "moderator":
        raise typer.BadParameter("--moderator needs --floor moderator: with other rules nobody gives the floor")
    with opened(store, config, hosting=watching) as (service, user):
        caller = address(by) or f"user:{user}"
        must = [full(one) for one in required or []] + [one for one in players if one != caller]
        meeting_id = service.meetings.call(
            user, topic, required=list(dict.fromkeys(must)), optional=[full(one) for one in optional or []],
            floor=floor, moderator=address(moderator), game=game, setting={"players": players} if players else None,
            deadline=60.0 if deadline is None else deadline,
            turn_timeout=300.0 if turn_timeout is None else turn_timeout,
            open=anyone, priority=priority, by=address(by), key=key,
        )  # fmt: skip
        if watching:
            print(meeting_id, file=sys.stderr)
            follow(service.meetings.watch(user, meeting_id), user, as_json=json)
            return
        note_waiting(service, LATER)
        show({"meetingId": meeting_id}, lambda: [meeting_id], as_json=json)


app.registered_commands += meeting_acts.app.registered_commands
