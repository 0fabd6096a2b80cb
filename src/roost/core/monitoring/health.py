"""Health of the program and of each agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.core.agents.agent import FAILING, Agent, AgentChange, State
from roost.core.meetings.view.shown import MeetingSummary


@dataclass(frozen=True, slots=True)
class Health:
    """Health of the program: workers running and expected; `problem` is one sentence for users, or None."""

    workers: int
    expected: int
    restarts: int
    problem: str | None
    abandoned: int = 0
    """Abandoned threads of workers, agents and functions that have not returned."""
    awake: int = 0
    """Awake agents with a slot: at most `awake_agents`."""
    waiting_for_place: int = 0
    """Agents with work that wait for a slot."""


class AgentHealth(StrEnum):
    ALIVE = "alive"
    """Awake, and its loop responds."""
    WAITING = "waiting"
    """Waits for one of the `awake_agents` slots, or has released its slot until its answers arrive."""
    STUCK = "stuck"
    """Its loop does not respond: the agent is being moved to another one, or cannot be."""
    FAILING = "failing"
    """Failed several times in a row."""
    PROFILE_MISSING = "profile_missing"
    """Its profile is unknown here: its work waits for a program that has it."""
    ASLEEP = "asleep"
    IDLE = "idle"
    STOPPED = "stopped"


def of_agent(agent: Agent, *, awake: bool, stuck: bool, known: bool = True, placed: bool = True) -> AgentHealth:
    """Return the health of an agent. `known`: its profile is known; `placed`: it has a slot, if it is awake."""
    if agent.state is State.STOPPED:
        return AgentHealth.STOPPED
    if not known:
        return AgentHealth.PROFILE_MISSING
    if stuck:
        return AgentHealth.STUCK
    if agent.error_count >= FAILING:
        return AgentHealth.FAILING
    if agent.state is State.SLEEPING:
        return AgentHealth.ASLEEP
    if awake:
        return AgentHealth.ALIVE if placed else AgentHealth.WAITING
    return AgentHealth.IDLE


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """Summary of one agent."""

    state: State
    queue_depth: int
    current_task: str | None
    sleep_until: datetime | None
    wake_events: tuple[str, ...]
    error_count: int
    last_active: datetime
    health: AgentHealth
    heartbeat: datetime | None = None
    """Last heartbeat of its loop; None while it has no loop."""


@dataclass(frozen=True, slots=True)
class CurrentRun:
    """Run that an agent is executing."""

    run_id: str
    envelope_id: str
    kind: str
    since: datetime


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Finished run."""

    run_id: str
    kind: str
    envelope_id: str
    outcome: str
    attempts: int
    started: datetime
    ended: datetime
    fault: str | None
    root: str
    model: str = ""
    """Last model it called, if any."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """Cost in US dollars, if known."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """Full report about one agent."""

    agent: Agent
    health: AgentHealth
    running: tuple[CurrentRun, ...]
    waiting: Mapping[str, int]
    """Envelopes waiting per lane, the fullest first."""
    turn_state: Mapping[str, Any]
    """Its `turn.state`."""
    memories: int
    """Number of its memories."""
    timers: tuple[tuple[str, datetime], ...]
    """Next timers, with their times."""
    changes: tuple[AgentChange, ...]
    runs: tuple[RunRecord, ...]
    meetings: tuple[MeetingSummary, ...] = ()
    """Open meetings that it is in or invited to, newest first."""
