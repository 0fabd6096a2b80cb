"""`roost meetings ls`, `show`, `watch`, `attend`, `minutes` and `call`; actions inside a meeting are in `act`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.app.connect import Service
from roost.cli.app.durations import duration, positive_duration
from roost.cli.app.options import Config, Json, Limit, PriorityOption, Store, command_group
from roost.cli.app.shared import check_agent, full_address, note_not_running, open_session, optional_address
from roost.cli.app.typer_ext import parse_choice
from roost.cli.commands.meetings.shared import NOT_RUNNING, By, Meeting, find_meeting
from roost.cli.render.meetings import details, display_name
from roost.cli.render.output import print_result, print_table, short_id
from roost.cli.render.tables import relative_time
from roost.cli.render.text import sanitize
from roost.core.meetings.log.bodies import FloorRule
from roost.core.meetings.view.shown import MeetingSummary, MeetingView
from roost.core.meetings.view.view import Phase
from roost.errors import RoostError

app = command_group()
SeenBy = Annotated[str | None, typer.Option("--as", metavar="AGENT", help="Show the view of this agent of yours.")]


@app.command()
def ls(
    participant: Annotated[
        str | None, typer.Option("--with", metavar="AGENT", help="Only meetings of this agent of yours.")
    ] = None,
    phase: Annotated[
        str | None,
        typer.Option(
            "--phase", parser=parse_choice("the phase", Phase), help="Only calling, running, failed or ended."
        ),
    ] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List your meetings and those of your agents, newest first."""
    with open_session(store, config) as (service, user):
        listed = service.meetings.list(user, participant=optional_address(participant), phase=phase, limit=limit)
        check_agent(service, user, participant, listed)
    nothing = "No meetings. Call one with `roost meetings call TOPIC --with AGENT`."
    headings = ("ID", "PHASE", "YOUR STATUS", "CALLED", "BY", "TOPIC")
    print_table(listed, headings, lambda one: _row(one, user), nothing, as_json=json)


def _row(one: MeetingSummary, user: str) -> tuple[str, ...]:
    return (
        short_id(one.meeting_id),
        one.phase,
        one.status,
        relative_time(one.called),
        display_name(one.creator, user),
        one.topic,
    )


@app.command("show")
def show_one(
    meeting: Meeting,
    seen_by: SeenBy = None,
    json: Json = False,
    limit: Limit = 200,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show a meeting: participants, posts and status.

    Each participant keeps its own view. If the views of your agents differ, for a moment or because one is away, the
    differences are shown.
    """
    with open_session(store, config) as (service, user):
        meeting_id = find_meeting(service, user, meeting)
        view = service.meetings.view(user, meeting_id, seen_by=optional_address(seen_by), limit=limit)
        others = [] if json else list(_others(service, user, view))
    print_result(view, lambda: details(view, user, others), as_json=json)


def _others(service: Service, user: str, view: MeetingView) -> Iterator[MeetingView]:
    """Yield the views of the other participants that belong to the user."""
    for one in view.participants:
        is_mine = one.address == f"user:{user}" or one.address.startswith(f"agent:{user}/")
        if is_mine and one.address != view.seen_by and one.status in ("in", "invited"):
            try:
                yield service.meetings.view(user, view.meeting_id, seen_by=one.address, limit=1)
            except RoostError:  # the invitation has not reached it yet
                continue


@app.command()
def watch(
    meeting: Meeting, seen_by: SeenBy = None, json: Json = False, store: Store = None, config: Config = None
) -> None:
    """Watch a meeting until it ends, or until Ctrl-C.

    Shows a live view in a terminal, new lines in a pipe, and with --json one view per line.
    """
    from roost.cli.commands.meetings.watch import follow

    with open_session(store, config, hosting=True) as (service, user):
        meeting_id = find_meeting(service, user, meeting)
        follow(service.meetings.watch(user, meeting_id, seen_by=optional_address(seen_by)), user, as_json=json)


@app.command()
def attend(meeting: Meeting, store: Store = None, config: Config = None) -> None:
    """Take part in a meeting: each line you type is posted.

    In a game a number is a move. Ctrl-D exits; you stay in the meeting until you leave it.
    """
    from roost.cli.commands.meetings.attend import MeetingInput
    from roost.cli.commands.meetings.watch import poll

    with open_session(store, config, hosting=True) as (service, user):
        meeting_id, me = find_meeting(service, user, meeting), f"user:{user}"
        view = service.meetings.view(user, meeting_id)
        if not view.is_over and (view.seen_by, view.status) != (me, "in"):
            service.meetings.join(user, meeting_id)
        MeetingInput(service, user, meeting_id).attend(poll(service, user, meeting_id), lambda: False)


@app.command()
def minutes(
    meeting: Meeting, seen_by: SeenBy = None, store: Store = None, config: Config = None, json: Json = False
) -> None:
    """Print the minutes of a meeting as Markdown.

    For a running meeting, the minutes so far.
    """
    with open_session(store, config) as (service, user):
        meeting_id = find_meeting(service, user, meeting)
        text = service.meetings.minutes(user, meeting_id, seen_by=optional_address(seen_by))
    print_result({"meetingId": meeting_id, "minutes": text}, lambda: [sanitize(text).rstrip("\n")], as_json=json)


@app.command()
def call(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic of the meeting.")],
    required: Annotated[
        list[str] | None, typer.Option("--with", metavar="WHO", help="Required participant; can be repeated.")
    ] = None,
    optional: Annotated[
        list[str] | None, typer.Option("--optional", metavar="WHO", help="Optional participant; can be repeated.")
    ] = None,
    floor: Annotated[
        str,
        typer.Option(
            "--floor",
            parser=parse_choice("the floor rule", FloorRule),
            help="Who may speak: free, round_robin, raise_hand, moderator or mention.",
        ),
    ] = "free",
    moderator: Annotated[
        str | None, typer.Option("--moderator", metavar="WHO", help="Participant who gives the floor.")
    ] = None,
    game: Annotated[str | None, typer.Option("--game", help="Game to play: tic-tac-toe.")] = None,
    player: Annotated[
        list[str] | None,
        typer.Option("--player", metavar="WHO", help="Player, in order; repeat for each. Players are required."),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            "--deadline", metavar="DURATION", parser=positive_duration, help="Time to accept the invitation (60s)."
        ),
    ] = None,
    turn_timeout: Annotated[
        float | None,
        typer.Option("--turn-timeout", metavar="DURATION", parser=duration, help="Time limit per turn (5m)."),
    ] = None,
    anyone: Annotated[bool, typer.Option("--open", help="Anyone may join.")] = False,
    priority: PriorityOption = "normal",
    watching: Annotated[bool, typer.Option("--watch", help="Watch the meeting until it ends.")] = False,
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key: the same key returns the same meeting.")
    ] = None,
    by: By = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Call a meeting and print its id. It starts when all required participants have joined.

    \b
    For example:
      roost meetings call "Where do we nest?" --with agent:d --optional agent:e --floor round_robin
      roost meetings call "A game" --game tic-tac-toe --player user:ann --player agent:d
    """
    from roost.cli.commands.meetings.watch import follow

    players = [full_address(one) for one in player or []]
    if players and game is None:
        raise typer.BadParameter("--player needs --game, such as --game tic-tac-toe")
    if game == "tic-tac-toe" and len(set(players)) != 2:
        raise typer.BadParameter("tic-tac-toe needs two players: use --player twice, first X and then O")
    if moderator is not None and floor != "moderator":
        raise typer.BadParameter("--moderator needs --floor moderator")
    with open_session(store, config, hosting=watching) as (service, user):
        caller = optional_address(by) or f"user:{user}"
        must = [full_address(one) for one in required or []] + [one for one in players if one != caller]
        meeting_id = service.meetings.call(
            user,
            topic,
            required=list(dict.fromkeys(must)),
            optional=[full_address(one) for one in optional or []],
            floor=floor,
            moderator=optional_address(moderator),
            game=game,
            setting={"players": players} if players else None,
            deadline=60.0 if deadline is None else deadline,
            turn_timeout=300.0 if turn_timeout is None else turn_timeout,
            open=anyone,
            priority=priority,
            by=optional_address(by),
            key=key,
        )
        if watching:
            print(meeting_id, file=sys.stderr)
            follow(service.meetings.watch(user, meeting_id), user, as_json=json)
            return
        note_not_running(service, NOT_RUNNING)
        print_result({"meetingId": meeting_id}, lambda: [meeting_id], as_json=json)
