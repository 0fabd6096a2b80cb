"""`roost agents watch`: the table, drawn over itself; and through a pipe, what has changed."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import datetime

from roost.cli.agents import rows, state_of
from roost.cli.find import Service
from roost.cli.screen import Screen
from roost.cli.tables import cut
from roost.cli.text import line
from roost.core.agents import Agent
from roost.protocol.faces import shown

MOST = 1_000
AROUND = 3
"""Lines beside the agents: the headings, how many more there are, and where the cursor stays."""


def run(service: Service, user: str, *, every: float, as_json: bool) -> None:
    """Until Ctrl-C, which is raised."""
    if sys.stdout.isatty() and not as_json:
        return _draw(service, user, every)
    return _tell(service, user, every, as_json=as_json)


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
    before: dict[str, Agent] = {}
    while True:
        now = {agent.agent_id: agent for agent in service.agents.list(user, limit=MOST)}
        for agent in changed(before, now):
            if as_json:
                print(json.dumps(shown(agent)))
            else:
                print(told(agent))
        for name in before.keys() - now.keys():
            print(json.dumps({"agentId": name, "deleted": True}) if as_json else _told(name, "deleted"))
        sys.stdout.flush()
        before = now
        time.sleep(every)


def changed(before: Mapping[str, Agent], now: Mapping[str, Agent]) -> Iterator[Agent]:
    """Those that are not as they were, but for the time they were last active."""
    for name, agent in now.items():
        if name not in before or _seen(before[name]) != _seen(agent):
            yield agent


def _seen(agent: Agent) -> tuple[object, ...]:
    return agent.state, agent.paused, agent.queue_depth, agent.current_tasks, agent.wake_condition, agent.error_count


def told(agent: Agent) -> str:
    waiting = f", {agent.queue_depth} in the inbox" if agent.queue_depth else ""
    return _told(agent.agent_id, f"{state_of(agent)}{waiting}")


def _told(name: str, what: str) -> str:
    return f"{datetime.now():%H:%M:%S}  {line(name)}  {what}"
