"""`roost meetings`: call them, come and go, speak and play, and see what was said."""

from __future__ import annotations

import json as encoding
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.desk import NEWEST, found, note_waiting, opened, short, show, show_list
from roost.cli.find import Service
from roost.cli.meeting_text import board, everything, name, standing, word
from roost.cli.options import Config, Json, Limit, Store, Urgency, group
from roost.cli.tables import ago, duration
from roost.cli.text import line, plain
from roost.core.meetings.shown import MeetingSummary, MeetingView
from roost.errors import RoostError

app = group()
Meeting = Annotated[
    str, typer.Argument(metavar="MEETING", help="The id of a meeting, or any part of it that no other has.")
]
By = Annotated[str | None, typer.Option("--as", metavar="AGENT", help="In the name of this agent of yours.")]
SeenBy = Annotated[str | None, typer.Option("--as", metavar="AGENT", help="As this participant of yours sees it.")]
Who = Annotated[str, typer.Argument(metavar="WHO", help="agent:NAME or user:NAME.")]
Why = Annotated[str, typer.Option("--reason", help="Why, for the others.")]
LATER = "the others hear of it when `roost up` runs, or while you watch"


@app.command()
def ls(
    participant: Annotated[
        str | None, typer.Option("--with", metavar="AGENT", help="Only those of this agent of yours.")
    ] = None,
    phase: Annotated[str | None, typer.Option("--phase", help="calling, running, failed or ended.")] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List your meetings and those of your agents, newest first."""
    with opened(store, config) as (service, user):
        listed = service.meetings.list(user, participant=_address(participant), phase=phase, limit=limit)
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
        meeting_id = _found(service, user, meeting)
        view = service.meetings.view(user, meeting_id, seen_by=_address(seen_by), limit=limit)
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
        meeting_id = _found(service, user, meeting)
        follow(service.meetings.watch(user, meeting_id, seen_by=_address(seen_by)), user, as_json=json)


@app.command()
def attend(meeting: Meeting, store: Store = None, config: Config = None) -> None:
    """Take part in a meeting: what you type is said.

    In a game a number is a move. Ctrl-D ends this; you stay in the meeting until you leave it.
    """
    from roost.cli.attending import Attending
    from roost.cli.meeting_watch import looks

    with opened(store, config, hosting=True) as (service, user):
        meeting_id, me = _found(service, user, meeting), f"user:{user}"
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
        meeting_id = _found(service, user, meeting)
        text = service.meetings.minutes(user, meeting_id, seen_by=_address(seen_by))
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
        str, typer.Option("--floor", help="free, round_robin, raise_hand, moderator or mention.")
    ] = "free",
    moderator: Annotated[str | None, typer.Option("--moderator", metavar="WHO", help="Who gives the floor.")] = None,
    game: Annotated[str | None, typer.Option("--game", help="What is played: tic-tac-toe.")] = None,
    player: Annotated[
        list[str] | None, typer.Option("--player", metavar="WHO", help="Who plays, in order; they must come.")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option("--deadline", metavar="DURATION", parser=duration, help="To come in (60s).")
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

    players = [_full(one) for one in player or []]
    with opened(store, config, hosting=watching) as (service, user):
        caller = _address(by) or f"user:{user}"
        must = [_full(one) for one in required or []] + [one for one in players if one != caller]
        meeting_id = service.meetings.call(
            user, topic, required=list(dict.fromkeys(must)), optional=[_full(one) for one in optional or []],
            floor=floor, moderator=_address(moderator), game=game, setting={"players": players} if players else None,
            deadline=60.0 if deadline is None else deadline, open=anyone, priority=priority, by=_address(by), key=key,
        )  # fmt: skip
        if watching:
            print(meeting_id, file=sys.stderr)
            follow(service.meetings.watch(user, meeting_id), user, as_json=json)
            return
        note_waiting(service, LATER)
        show({"meetingId": meeting_id}, lambda: [meeting_id], as_json=json)


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
        meeting_id = _found(service, user, meeting)
        meant = [_full(one) for one in to or []]
        said = service.meetings.say(user, meeting_id, _text(text), to=meant, by=_address(by), key=key)
        note_waiting(service, LATER)
    show(said, lambda: word(said, user), as_json=json)


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
    made = read_move(played)
    with opened(store, config) as (service, user):
        meeting_id = _found(service, user, meeting)
        view = service.meetings.move(user, meeting_id, made, by=_address(by), key=key)
        note_waiting(service, LATER)
    show(view, lambda: [*board(view), "", standing(view, user)], as_json=json)


def read_move(text: str) -> Any:
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
    _act(lambda s, user, id, who: s.meetings.end(user, id, _text(text), by=who), meeting, by, json, store, config)


def _act(
    do: Callable[[Service, str, str, str | None], MeetingView],
    meeting: str, by: str | None, json: bool, store: str | None, config: Path | None,
) -> None:  # fmt: skip
    """Do something in a meeting, and tell how it stands then."""
    with opened(store, config) as (service, user):
        view = do(service, user, _found(service, user, meeting), _address(by))
        note_waiting(service, LATER)
    show(view, lambda: [_told(view, user)], as_json=json)


def _told(view: MeetingView, user: str) -> str:
    me = "You are" if view.seen_by == f"user:{user}" else f"{name(view.seen_by, user)} is"
    where = f"{_HOW.get(view.status, view.status)} '{line(view.topic)}' ({view.phase})"
    return f"{me} {where}. {standing(view, user)}".rstrip()


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
        _act(lambda s, user, id, mine: do(s, user, id, mine, _full(who)), meeting, by, json, store, config)

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


def _found(service: Service, user: str, part: str) -> str:
    """The id of the meeting with this id, or with this part in it."""

    def there(meeting_id: str) -> str:
        service.meetings.minutes(user, meeting_id)  # also of one that is long over
        return meeting_id

    return found(
        part, "meetings", there, lambda: [one.meeting_id for one in service.meetings.list(user, limit=NEWEST)], str
    )


def _full(address: str) -> str:
    """`d` is the agent `agent:d`."""
    return address if ":" in address else f"agent:{address}"


def _address(named: str | None) -> str | None:
    return None if named is None else _full(named)


def _text(given: str) -> str:
    return sys.stdin.read() if given == "-" else given
