"""`roost agents watch`: the table, drawn over itself; and through a pipe, whatever happens to them."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from roost.cli.agents import rows, state_of
from roost.cli.desk import short
from roost.cli.find import Service
from roost.cli.screen import Screen
from roost.cli.tables import cut
from roost.cli.text import line
from roost.core.agents import Agent
from roost.core.envelopes import Kind
from roost.core.facts import Fact, Name
from roost.protocol.faces import shown

MOST = 1_000
AROUND = 3
"""Lines beside the agents: the headings, how many more there are, and where the cursor stays."""


def run(service: Service, user: str, *, every: float, as_json: bool) -> None:
    """Until Ctrl-C, which is raised."""
    if sys.stdout.isatty() and not as_json:
        return _draw(service, user, every)
    return _tell(service, user, every, as_json=as_json)


def once(service: Service, user: str, *, as_json: bool) -> None:
    """As they are now, where nothing will happen to them."""
    if sys.stdout.isatty() and not as_json:
        for row in rows(service.agents.list(user, limit=MOST)):
            print(row)
    else:
        _tell_all(service, user, as_json=as_json)


def _draw(service: Service, user: str, every: float) -> None:
    with Screen() as screen:
        while True:
            width, height = shutil.get_terminal_size()
            found = service.agents.list(user, limit=max(2, min(height - AROUND + 1, MOST)))
            screen.draw(picture(found, width, height))
            time.sleep(every)


def picture(found: list[Agent], width: int, height: int) -> list[str]:
    """The table, as far as it fits."""
    room = max(1, height - AROUND)
    lines = list(rows(found[:room]))
    if len(found) > room:
        lines.append(f"and more than these {room}: `roost agents ls` lists them")
    return [cut(text, width) for text in lines]


def _tell(service: Service, user: str, every: float, *, as_json: bool) -> None:
    cursor = service.monitor.facts(user, limit=1).cursor  # before looking, so that nothing is missed in between
    _tell_all(service, user, as_json=as_json)
    while True:
        page = service.monitor.wait(user, cursor, every)
        cursor = page.cursor
        for fact in filter(is_of_agent, page.facts):
            print(json.dumps(shown(fact)) if as_json else told_of(fact))
        sys.stdout.flush()
        if page.gap:  # so that they are known all the same
            _tell_all(service, user, as_json=as_json)


def _tell_all(service: Service, user: str, *, as_json: bool) -> None:
    for agent in service.agents.list(user, limit=MOST):
        print(json.dumps(shown(agent)) if as_json else told(agent))
    sys.stdout.flush()


def is_of_agent(fact: Fact) -> bool:
    """Whether it is told; that a task runs is told as that of the task."""
    is_run = fact.name in (Name.RUN_STARTED, Name.RUN_ENDED)
    return "/" in (fact.about or "") and not (is_run and fact.data.get("kind") == Kind.TASK)


def told_of(fact: Fact) -> str:
    """What has happened, with the end of the id of what it happened to, and why."""
    what = " ".join(re.findall("[A-Z][a-z]+", fact.name)).lower().removeprefix("agent ")
    ids = [short(value) for key, value in fact.data.items() if key.endswith("_id")]
    why = fact.data.get("reason")
    return _told(
        fact.at, (fact.about or "").rpartition("/")[2],
        " ".join([what, *ids[:1]]) + (f": {line(why)}" if why and why not in (what, "asked for") else ""),
    )  # fmt: skip


def changed(before: Mapping[str, Agent], now: Mapping[str, Agent]) -> Iterator[Agent]:
    """Those that are not as they were, but for the time they were last active."""
    for name, agent in now.items():
        if name not in before or _seen(before[name]) != _seen(agent):
            yield agent


def _seen(agent: Agent) -> tuple[object, ...]:
    return agent.state, agent.paused, agent.queue_depth, agent.current_tasks, agent.wake_condition, agent.error_count


def told(agent: Agent) -> str:
    waiting = f", {agent.queue_depth} in the inbox" if agent.queue_depth else ""
    return _told(datetime.now(UTC), agent.agent_id, f"{state_of(agent)}{waiting}")


def _told(when: datetime, name: str, what: str) -> str:
    return f"{when.astimezone():%H:%M:%S}  {line(name)}  {what}"
