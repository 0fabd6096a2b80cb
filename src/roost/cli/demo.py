"""`roost demo`: agents that play, report and plan, with no key. They show what can be built."""

from __future__ import annotations

import secrets
import shutil
import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from roost.cli import watch
from roost.cli.attending import Attending
from roost.cli.commands import count
from roost.cli.desk import show
from roost.cli.meeting_text import names
from roost.cli.meeting_watch import follow
from roost.cli.options import Config, Json, Store, group
from roost.cli.screen import Screen
from roost.cli.stage import Stage, stage
from roost.cli.text import plain
from roost.core.agents import Agent
from roost.core.meetings.shown import MeetingView

app = group()
Fast = Annotated[bool, typer.Option("--fast", help="Do not wait for those who read along.")]
Keep = Annotated[
    bool, typer.Option("--keep", help="Play where your things are kept, through the `roost up` that runs there.")
]
Brains = Annotated[
    list[str] | None,
    typer.Option("--brain", metavar="PROFILE", help="Who thinks for a player; given again: for the other one."),
]
PACE = 0.9
"""Seconds that a move takes, so that one can follow."""
LOOK = 0.1
REPORTS = {
    "wren": "Yesterday I mended the north side of the nest. Today I mend the south side.",
    "robin": "I was up early and sang. Today I look for worms by the pond.",
    "magpie": "I found two spoons. Today I am blocked: the window is shut.",
    "heron": "I stood in the pond. Today I stand in the pond.",
    "swift": "I flew to the coast and back. Today I bring news from the harbour.",
}
PARTS = {"weaver": "a nest for two", "forager": "food for a week", "sentry": "a watch for the night"}


@app.command()
def tictactoe(
    human: Annotated[bool, typer.Option("--human", help="Play X yourself: type the number of a cell.")] = False,
    brain: Brains = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", parser=count(0), help="The same game again.")
    ] = None,
    fast: Fast = False,
    keep: Keep = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Two agents play tic-tac-toe, and a third is the host.

    Both begin clumsily, with a move that is refused by everyone alike. The game is a meeting: each of the three keeps
    a view of its own, and the views agree.
    """
    if human and json:
        raise typer.BadParameter("a person plays in words: give --human or --json, not both")
    seed = secrets.randbelow(10_000) if seed is None else seed
    with stage(store, config, keep=keep) as here:
        profiles = [*(brain or []), *["demo-player"] * 2]
        memory = {"pace": 0 if fast else PACE, "seed": seed, "clumsy": not human}
        host = here.cast("owl", "demo-host", {})
        x = f"user:{here.user}" if human else here.cast("crow", profiles.pop(0), memory)
        o = here.cast("finch", profiles.pop(0), memory)
        meeting_id = here.service.meetings.call(
            here.user, "Tic-tac-toe", required=[x, o], game="tic-tac-toe", setting={"players": [x, o]}, by=host,
            turn_timeout=0 if human else 300,
        )  # fmt: skip
        if human:
            here.service.meetings.join(here.user, meeting_id)
            over = _play(here, meeting_id, host)
        else:
            over = follow(here.views(meeting_id, host), here.user, as_json=json)
        if over is not None and not json:
            _tell_end(here, over)
            if not human and not brain:
                print(f"`roost demo tictactoe --seed {seed}` plays it again.")


def _play(here: Stage, meeting_id: str, host: str) -> MeetingView | None:
    """With whoever sits here; when they have gone, the host ends it."""

    def gone() -> bool:
        print("You have gone.")
        here.service.meetings.end(here.user, meeting_id, "The player has gone.", by=host)
        return True

    try:
        return Attending(here.service, here.user, meeting_id).attend(here.views(meeting_id, f"user:{here.user}"), gone)
    except KeyboardInterrupt:
        gone()
        raise


@app.command()
def standup(
    fast: Fast = False, keep: Keep = False, json: Json = False, store: Store = None, config: Config = None
) -> None:
    """Five agents report in turn, and one writes the minutes."""
    with stage(store, config, keep=keep) as here:
        pace = 0 if fast else PACE
        chair, *others = [
            here.cast(name, "demo-reporter", {"report": text, "pace": pace}) for name, text in REPORTS.items()
        ]
        meeting_id = here.service.meetings.call(
            here.user, "What is everyone up to?", required=others, floor="round_robin", by=chair
        )
        over = follow(here.views(meeting_id, chair), here.user, as_json=json)
        if over is not None and not json:
            _tell_end(here, over)
            print(f"\n{plain(here.service.meetings.minutes(here.user, meeting_id, seen_by=chair))}", end="")


@app.command()
def planner(
    fast: Fast = False, keep: Keep = False, json: Json = False, store: Store = None, config: Config = None
) -> None:
    """A planner asks three others for their parts.

    It waits for the answers, all at once, and puts them together.
    """
    pace = 0 if fast else PACE
    with stage(store, config, keep=keep) as here:
        parts = {
            here.cast(name, "demo-worker", {"pace": pace * (2 + number)}): part
            for number, (name, part) in enumerate(PARTS.items())
        }
        boss = here.cast("planner", "demo-planner", {"parts": parts})
        task_id = here.service.tasks.send(here.user, _id(boss), "A summer on the roof")
        if not json:
            _watch(here, {_id(one) for one in (boss, *parts)}, task_id)
        task = here.service.tasks.wait(here.user, task_id, 30)
    show(task, lambda: ["", plain(task.result or task.error or "").rstrip()], as_json=json)


def _id(address: str) -> str:
    return address.rpartition("/")[2]


def _watch(here: Stage, cast: set[str], task_id: str) -> None:
    """Show the agents while they are at it."""
    before: dict[str, Agent] = {}
    live = sys.stdout.isatty()
    with Screen() if live else nullcontext() as screen:
        while True:
            is_over = here.service.tasks.wait(here.user, task_id, LOOK).is_over
            now = {one.agent_id: one for one in here.service.agents.list(here.user) if one.agent_id in cast}
            if screen is not None:
                screen.draw(watch.picture(list(now.values()), *shutil.get_terminal_size()))
            else:
                for agent in watch.changed(before, now):
                    print(watch.told(agent), flush=True)
            if is_over:
                return
            before = now


def _tell_end(here: Stage, over: MeetingView) -> None:
    """Whether all see the same; the last of it may take a moment to reach everyone."""
    mine = [one for one in over.present if one.startswith(f"agent:{here.user}/")]
    seen = [view for one in mine for view in here.views(over.meeting_id, one) if view.is_over]
    alike = len({(view.phase, view.board, view.words, view.outcome) for view in seen}) == 1
    print(f"\n{len(seen)} views, {'all alike' if alike else 'not alike'}: {names(mine, here.user)}.")
