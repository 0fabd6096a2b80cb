"""Agents in words: their states, what they do, what wakes them, why they failed."""

from __future__ import annotations

from datetime import UTC, datetime

from roost.core.agents import wake
from roost.core.agents.agent import Agent, LastError, State
from roost.core.failures import faults
from roost.core.failures.faults import Fault
from roost.core.values.addresses import shortened
from roost.ui import kinds
from roost.ui.design.components import moment
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.table.table import Cell

TONES = {
    State.IDLE: "quiet",
    State.ACTIVE: "busy",
    State.WAITING: "waiting",
    State.SLEEPING: "quiet",
    State.STOPPED: "bad",
}
DEFAULT = "default"
"""Name of the default profile in lists."""
SHORT = 90


def state(agent: Agent) -> str:
    return f"{agent.state}, paused" if agent.paused else str(agent.state)


def state_cell(agent: Agent) -> Cell:
    return Cell(state(agent), tone="waiting" if agent.paused else TONES[agent.state])


def short(text: str, length: int = SHORT) -> str:
    """Return the beginning of a text as one line."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def work(agent: Agent) -> str:
    """Return what the agent works on; empty if it does nothing."""
    if not agent.current_tasks:
        return ""
    more = len(agent.current_tasks) - 1
    current = agent.working_on
    what = "Working" if current is None else ": ".join(filter(None, (kinds.label(current.kind), short(current.text))))
    return f"{what} (and {more} more)" if more else what


def next_wake(agent: Agent) -> str:
    """Return what wakes the agent; empty if it neither sleeps nor will."""
    if agent.wake_condition is None:
        return ""
    words = wake.described(agent.wake_condition, lambda time: moment(datetime.fromtimestamp(time, UTC)))
    if agent.paused:
        return "only by hand while it is paused"
    return words if agent.state is State.SLEEPING else f"sleeps after its work, until {words}"


def error(failed: LastError) -> str:
    """Return why a run failed, as a sentence."""
    if failed.fault in set(Fault):
        return faults.sentence(Fault(failed.fault), failed.run_id)
    return f"It failed: {failed.fault}."


def error_cell(failed: LastError | None) -> Cell | str:
    if failed is None:
        return ""
    text = error(failed)
    return Cell(text.partition(";")[0], run_url(failed.run_id), "bad", text)


def run_url(run_id: str) -> str:
    return navigation.url(Route.RUNS, run=run_id)


def agent_url(agent_id: str, **query: str) -> str:
    return navigation.url(Route.AGENTS, agent=agent_id, **query)


def who(address: str, user: str) -> str:
    """Return an address for this user to read."""
    return "you" if address == f"user:{user}" else shortened(address, user)
