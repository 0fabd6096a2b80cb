"""`roost demo`: agents that play, report and plan, without an API key."""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from roost.api.auth import local_user
from roost.cli.app.connect import current_user, open_service
from roost.cli.app.options import Config, Json, Store, command_group, load_settings
from roost.cli.app.shared import open_session
from roost.cli.app.typer_ext import parse_count
from roost.cli.commands.agents import watch
from roost.cli.commands.meetings.attend import MeetingInput
from roost.cli.commands.meetings.watch import follow, poll
from roost.cli.render.meetings import display_names
from roost.cli.render.output import print_result
from roost.cli.render.screen import Screen
from roost.cli.render.text import sanitize
from roost.core.agents.agent import Agent
from roost.core.meetings.view.shown import MeetingView
from roost.demos import tour
from roost.demos.stage import Stage, scratch

app = command_group()
Fast = Annotated[bool, typer.Option("--fast", help="Play without pauses.")]
Keep = Annotated[bool, typer.Option("--keep", help="Use your own store, and the running `roost up`.")]
Brains = Annotated[
    list[str] | None,
    typer.Option("--brain", metavar="PROFILE", help="Profile of a player; repeat for the other player."),
]
PACE = 0.9
"""Seconds per move, so that people can follow."""
LOOK = 0.1
REPORTS = {
    "wren": "Yesterday I mended the north side of the nest. Today I mend the south side.",
    "robin": "I was up early and sang. Today I look for worms by the pond.",
    "magpie": "I found two spoons. Today I am blocked: the window is shut.",
    "heron": "I stood in the pond. Today I stand in the pond.",
    "swift": "I flew to the coast and back. Today I bring news from the harbour.",
}
PARTS = {"weaver": "a nest for two", "forager": "food for a week", "sentry": "a watch for the night"}


@contextmanager
def _stage(store: str | None, config: Path | None, *, keep: bool) -> Iterator[Stage]:
    """Open a temporary store; with `keep` or `store`, the user's store, through the running server if there is one."""
    settings = load_settings(config, store=store)
    if keep or store is not None:
        with open_service(settings, hosting=True) as service:
            yield Stage(service, current_user(settings), "demo-")
    else:
        with scratch(settings) as service:
            yield Stage(service, local_user(settings.user))


def _views(here: Stage, meeting_id: str, seen_by: str) -> Iterator[MeetingView]:
    return here.watched(poll(here.service, here.user, meeting_id, seen_by))


@app.command()
def tictactoe(
    human: Annotated[bool, typer.Option("--human", help="Play X yourself: type the number of a cell.")] = False,
    brain: Brains = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", parser=parse_count(0), help="Seed of the game, to repeat it.")
    ] = None,
    fast: Fast = False,
    keep: Keep = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Two agents play tic-tac-toe, and a third is the host.

    Both players first try an illegal move, which all participants refuse. The game is a meeting: each of the three
    keeps its own view, and the views converge.
    """
    if human and json:
        raise typer.BadParameter("--human and --json cannot be combined")
    seed = secrets.randbelow(10_000) if seed is None else seed
    with _stage(store, config, keep=keep) as here:
        profiles = [*(brain or []), *["demo-player"] * 2]
        memory = {"pace": 0 if fast else PACE, "seed": seed, "clumsy": not human}
        host = here.cast("owl", "demo-host", {})
        x = f"user:{here.user}" if human else here.cast("crow", profiles.pop(0), memory)
        o = here.cast("finch", profiles.pop(0), memory)
        meeting_id = here.service.meetings.call(
            here.user,
            "Tic-tac-toe",
            required=[x, o],
            game="tic-tac-toe",
            setting={"players": [x, o]},
            by=host,
            turn_timeout=0 if human else 300,
        )
        if human:
            here.service.meetings.join(here.user, meeting_id)
            over = _play(here, meeting_id, host)
        else:
            over = follow(_views(here, meeting_id, host), here.user, as_json=json)
        if over is not None and not json:
            _print_end(here, over)
            if not human and not brain:
                print(f"`roost demo tictactoe --seed {seed}` repeats this game.")


def _play(here: Stage, meeting_id: str, host: str) -> MeetingView | None:
    """Play with the user; the host ends the game when the user leaves."""

    def gone() -> bool:
        print("You have left.")
        here.service.meetings.end(here.user, meeting_id, "The player has left.", by=host)
        return True

    try:
        return MeetingInput(here.service, here.user, meeting_id).attend(
            _views(here, meeting_id, f"user:{here.user}"), gone
        )
    except KeyboardInterrupt:
        gone()
        raise


@app.command()
def standup(
    fast: Fast = False, keep: Keep = False, json: Json = False, store: Store = None, config: Config = None
) -> None:
    """Five agents report in turn, and one writes the minutes."""
    with _stage(store, config, keep=keep) as here:
        pace = 0 if fast else PACE
        chair, *others = [
            here.cast(name, "demo-reporter", {"report": text, "pace": pace}) for name, text in REPORTS.items()
        ]
        meeting_id = here.service.meetings.call(
            here.user, "What is everyone up to?", required=others, floor="round_robin", by=chair
        )
        over = follow(_views(here, meeting_id, chair), here.user, as_json=json)
        if over is not None and not json:
            _print_end(here, over)
            print(f"\n{sanitize(here.service.meetings.minutes(here.user, meeting_id, seen_by=chair))}", end="")


@app.command()
def planner(
    fast: Fast = False, keep: Keep = False, json: Json = False, store: Store = None, config: Config = None
) -> None:
    """A planner asks three agents at once and combines the answers."""
    pace = 0 if fast else PACE
    with _stage(store, config, keep=keep) as here:
        parts = {
            here.cast(name, "demo-worker", {"pace": pace * (2 + number)}): part
            for number, (name, part) in enumerate(PARTS.items())
        }
        boss = here.cast("planner", "demo-planner", {"parts": parts})
        task_id = here.service.tasks.send(here.user, _id(boss), "A summer on the roof")
        if not json:
            _watch(here, {_id(one) for one in (boss, *parts)}, task_id)
        task = here.service.tasks.wait(here.user, task_id, 30)
    print_result(task, lambda: ["", sanitize(task.result or task.error or "").rstrip()], as_json=json)


@app.command("tour")
def show_tour(
    remove: Annotated[bool, typer.Option("--remove", help="Remove the tour with all that it has made.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Build the tour: a small roost to look at on the pages."""
    with open_session(store, config) as (service, user):
        if remove:
            count = tour.remove(service, user)
            print_result({"removed": count}, lambda: [_removed(count)], as_json=json)
            return
        built = tour.build(service, user)
    print_result(built, lambda: _built(built), as_json=json)


def _removed(count: int) -> str:
    return "The tour is removed." if count else "There is no tour."


def _built(built: tour.Tour) -> Iterator[str]:
    yield f"The tour is built: {', '.join(built.agents)}. They work while `roost up` runs."
    yield "Open /agents in the browser. `roost demo tour --remove` removes it."


def _id(address: str) -> str:
    return address.rpartition("/")[2]


def _watch(here: Stage, cast: set[str], task_id: str) -> None:
    """Show the agents while they work."""
    before: dict[str, Agent] = {}
    live = sys.stdout.isatty()
    with Screen() if live else nullcontext() as screen:
        while True:
            is_over = here.service.tasks.wait(here.user, task_id, LOOK).is_over
            now = {one.agent_id: one for one in here.service.agents.list(here.user) if one.agent_id in cast}
            if screen is not None:
                screen.draw(watch.fitting_rows(list(now.values()), *shutil.get_terminal_size()))
            else:
                for agent in watch.changed(before, now):
                    print(watch.agent_line(agent), flush=True)
            if is_over:
                return
            before = now


def _print_end(here: Stage, over: MeetingView) -> None:
    """Print whether all views agree, after the last change has reached every participant."""
    mine = [one for one in over.present if one.startswith(f"agent:{here.user}/")]
    seen = [view for one in mine for view in _views(here, over.meeting_id, one) if view.is_over]
    alike = len({(view.phase, view.board, view.words, view.outcome) for view in seen}) == 1
    print(f"\n{len(seen)} views, {'all equal' if alike else 'not equal'}: {display_names(mine, here.user)}.")
