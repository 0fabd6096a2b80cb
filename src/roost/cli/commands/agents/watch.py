"""`roost agents watch`: a live table in a terminal, one line per change in a pipe."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from roost.cli.app.connect import Service
from roost.cli.render.agents import agent_table, state_text
from roost.cli.render.output import short_id, shown
from roost.cli.render.screen import Screen
from roost.cli.render.tables import truncate
from roost.cli.render.text import single_line
from roost.core.agents.agent import Agent
from roost.core.envelopes.envelope import Kind
from roost.core.monitoring.facts import Fact, Name

MOST = 1_000
AROUND = 3
"""Lines beside the rows: the headings, the note on more agents, and the line of the cursor."""


def run(service: Service, user: str, *, every: float, as_json: bool) -> None:
    """Show the agents until Ctrl-C, which is raised."""
    if sys.stdout.isatty() and not as_json:
        return _draw(service, user, every)
    return _print_changes(service, user, every, as_json=as_json)


def once(service: Service, user: str, *, as_json: bool) -> None:
    """Show the agents once."""
    if sys.stdout.isatty() and not as_json:
        for row in agent_table(service.agents.list(user, limit=MOST)):
            print(row)
    else:
        _print_all(service, user, as_json=as_json)


def _draw(service: Service, user: str, every: float) -> None:
    with Screen() as screen:
        while True:
            width, height = shutil.get_terminal_size()
            found = service.agents.list(user, limit=max(2, min(height - AROUND + 1, MOST)))
            screen.draw(fitting_rows(found, width, height))
            time.sleep(every)


def fitting_rows(found: list[Agent], width: int, height: int) -> list[str]:
    """Return the rows that fit the terminal."""
    room = max(1, height - AROUND)
    lines = list(agent_table(found[:room]))
    if len(found) > room:
        lines.append(f"more than {room} agents: `roost agents ls` lists all")
    return [truncate(text, width) for text in lines]


def _print_changes(service: Service, user: str, every: float, *, as_json: bool) -> None:
    cursor = service.monitor.facts(user, limit=1).cursor  # before listing, so that no fact is missed in between
    _print_all(service, user, as_json=as_json)
    while True:
        page = service.monitor.wait(user, cursor, every)
        cursor = page.cursor
        for fact in filter(is_of_agent, page.facts):
            print(json.dumps(shown(fact)) if as_json else fact_line(fact))
        sys.stdout.flush()
        if page.gap:  # facts were lost: show the current states instead
            _print_all(service, user, as_json=as_json)


def _print_all(service: Service, user: str, *, as_json: bool) -> None:
    for agent in service.agents.list(user, limit=MOST):
        print(json.dumps(shown(agent)) if as_json else agent_line(agent))
    sys.stdout.flush()


def is_of_agent(fact: Fact) -> bool:
    """Return True for facts to print. Runs of tasks are omitted: the facts of the task cover them."""
    is_run = fact.name in (Name.RUN_STARTED, Name.RUN_ENDED)
    return "/" in (fact.about or "") and not (is_run and fact.data.get("kind") == Kind.TASK)


def fact_line(fact: Fact) -> str:
    """Return a line for a fact: what happened, the short id, and the reason."""
    what = " ".join(re.findall("[A-Z][a-z]+", fact.name)).lower().removeprefix("agent ")
    ids = [short_id(value) for key, value in fact.data.items() if key.endswith("_id")]
    why = fact.data.get("reason")
    return _line(
        fact.at,
        (fact.about or "").rpartition("/")[2],
        " ".join([what, *ids[:1]]) + (f": {single_line(why)}" if why and why not in (what, "asked for") else ""),
    )


def changed(before: Mapping[str, Agent], now: Mapping[str, Agent]) -> Iterator[Agent]:
    """Yield the agents that changed, apart from the time of their last activity."""
    for name, agent in now.items():
        if name not in before or _seen(before[name]) != _seen(agent):
            yield agent


def _seen(agent: Agent) -> tuple[object, ...]:
    return agent.state, agent.paused, agent.queue_depth, agent.current_tasks, agent.wake_condition, agent.error_count


def agent_line(agent: Agent) -> str:
    waiting = f", {agent.queue_depth} in the inbox" if agent.queue_depth else ""
    return _line(datetime.now(UTC), agent.agent_id, f"{state_text(agent)}{waiting}")


def _line(when: datetime, name: str, what: str) -> str:
    return f"{when.astimezone():%H:%M:%S}  {single_line(name)}  {what}"
