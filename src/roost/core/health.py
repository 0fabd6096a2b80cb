"""How the program itself is doing, and how each agent is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.core.agents import Agent, AgentChange, State

FAILING = 3
"""Failures one after the other from which on an agent is said to be failing."""


@dataclass(frozen=True, slots=True)
class Health:
    """How many workers are there and should be; `problem` is one sentence for people, or None."""

    workers: int
    expected: int
    restarts: int
    problem: str | None


class AgentHealth(StrEnum):
    ALIVE = "alive"
    """Awake, and its loop turns."""
    STUCK = "stuck"
    """It has work, and its loop has not turned for longer than it may."""
    FAILING = "failing"
    """It has failed several times, and has done nothing well since."""
    PROFILE_MISSING = "profile_missing"
    """Its profile is not known here: what it has to do waits for a program that knows it."""
    ASLEEP = "asleep"
    IDLE = "idle"
    STOPPED = "stopped"


def of_agent(agent: Agent, *, awake: bool, stuck: bool, known: bool = True) -> AgentHealth:
    """`known`: whether its profile is."""
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
    return AgentHealth.ALIVE if awake else AgentHealth.IDLE


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """How one agent is doing, in short."""

    state: State
    queue_depth: int
    current_task: str | None
    sleep_until: datetime | None
    wake_events: tuple[str, ...]
    error_count: int
    last_active: datetime
    health: AgentHealth
    heartbeat: datetime | None = None
    """When its loop last gave a sign of life; None while it has none."""


@dataclass(frozen=True, slots=True)
class Running:
    """What an agent is doing."""

    run_id: str
    envelope_id: str
    kind: str
    since: datetime


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run that is over."""

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
    """The one it asked last, if any."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """In US dollars, where it is known."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """Everything about one agent, for looking at it."""

    agent: Agent
    health: AgentHealth
    running: tuple[Running, ...]
    waiting: Mapping[str, int]
    """How many wait in each lane, the fullest first."""
    memory: Mapping[str, Any]
    """Its `turn.state`."""
    memories: int
    """How many things it remembers beside that."""
    timers: tuple[tuple[str, datetime], ...]
    """What comes next by the clock, and when."""
    changes: tuple[AgentChange, ...]
    runs: tuple[RunRecord, ...]
