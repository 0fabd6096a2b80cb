"""Agents: their settings, states, and the moves between states."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from roost.core.agents.wake import Condition
from roost.core.values import checks, patterns
from roost.core.values.priority import Priority
from roost.errors import Conflict, Invalid


class State(StrEnum):
    IDLE = "idle"
    ACTIVE = "active"
    SLEEPING = "sleeping"
    WAITING = "waiting"
    STOPPED = "stopped"


class Invitations(StrEnum):
    """Response of an agent to an invitation; with `ask` its brain decides."""

    ACCEPT = "accept"
    DECLINE = "decline"
    ASK = "ask"


MOVES: Mapping[State, frozenset[State]] = {
    State.IDLE: frozenset({State.ACTIVE, State.WAITING, State.SLEEPING, State.STOPPED}),
    State.ACTIVE: frozenset({State.IDLE, State.WAITING, State.SLEEPING, State.STOPPED}),
    State.WAITING: frozenset({State.ACTIVE, State.IDLE, State.SLEEPING, State.STOPPED}),
    State.SLEEPING: frozenset({State.IDLE, State.STOPPED}),
    State.STOPPED: frozenset({State.IDLE}),
}
"""Allowed moves; everything that moves an agent checks them, or lists `sources` in its SQL.

Moves to and from active and waiting follow from the agent's work; others are requested.
"""


FAILING = 3
"""Consecutive failures from which an agent counts as failing."""
FOR_A_PERSON = "waits for a person"
"""Cause of the waiting state while a turn waits for an approval, in RAM or in the store."""


def move(before: State, after: State, agent_id: str) -> State:
    """Return the new state. Raises Conflict if the move is not allowed."""
    if after not in MOVES[before]:
        first = ": start it first" if before is State.STOPPED else ""
        raise Conflict(f"the agent {agent_id!r} is {before} and cannot become {after}{first}")
    return after


def sources(after: State) -> tuple[State, ...]:
    """Return the states from which an agent may move to this one."""
    return tuple(before for before, allowed in MOVES.items() if after in allowed)


@dataclass(frozen=True, slots=True)
class Subscription:
    """Subscription to events whose name matches the pattern and whose data has these fields."""

    pattern: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def fields_json(self) -> str:
        return json.dumps(self.fields)


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """Settings of an agent. Durations are in seconds."""

    profile: str = ""
    check_mail_interval: float = 30.0
    max_concurrent_tasks: int = 1
    """Concurrent tasks share `turn.state`: if two change the same value, the one that ends later runs again."""
    wake_on_priority: Priority = Priority.NORMAL
    inbox_limit: int = 10_000
    max_attempts: int = 3
    retry_delay: float = 1.0
    task_expiry: float | None = None
    subscriptions: tuple[Subscription, ...] = ()
    groups: tuple[str, ...] = ()
    """Group names for broadcasts."""
    idle_timeout: float = 60.0
    shared: bool = False
    description: str = ""
    invitations: Invitations = Invitations.ACCEPT

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    @lru_cache(maxsize=1_000)
    def from_json(cls, text: str) -> AgentConfig:
        values = json.loads(text)
        values["wake_on_priority"] = Priority(values["wake_on_priority"])
        values["invitations"] = Invitations(values.get("invitations", Invitations.ACCEPT))
        values["subscriptions"] = tuple(Subscription(**subscription) for subscription in values["subscriptions"])
        values["groups"] = tuple(values.get("groups", ()))
        return cls(**values)


_CHECKS: dict[str, Any] = {
    "profile": lambda v: checks.name(v, "the profile"),
    "check_mail_interval": lambda v: _duration(v, "check_mail_interval", least=0.0),
    "max_concurrent_tasks": lambda v: checks.count(v, "max_concurrent_tasks", least=1, most=1_000),
    "wake_on_priority": lambda v: checks.choice(v, "wake_on_priority", Priority),
    "inbox_limit": lambda v: checks.count(v, "inbox_limit", least=1, most=10_000_000),
    "max_attempts": lambda v: checks.count(v, "max_attempts", least=1, most=1_000),
    "retry_delay": lambda v: _duration(v, "retry_delay", least=0.0),
    "task_expiry": lambda v: None if v is None else _duration(v, "task_expiry", least=0.001),
    "subscriptions": lambda v: _subscriptions(v),
    "groups": lambda v: _groups(v),
    "idle_timeout": lambda v: _duration(v, "idle_timeout", least=0.0),
    "shared": lambda v: checks.flag(v, "shared"),
    "invitations": lambda v: checks.choice(v, "invitations", Invitations),
    "description": lambda v: v if v == "" else checks.text(v, "the description", most=10_000),
}


def configured(config: AgentConfig, changes: Mapping[str, Any]) -> AgentConfig:
    """Return the config with these changes. Raises Invalid for the first that cannot be used."""
    checked: dict[str, Any] = {}
    for name, value in changes.items():
        check = _CHECKS.get(name)
        if check is None:
            raise Invalid(f"an agent has no setting {checks.shown(name)}: use one of {', '.join(_CHECKS)}")
        checked[name] = check(value)
    return dataclasses.replace(config, **checked)


def _duration(value: object, what: str, *, least: float) -> float:
    seconds = checks.seconds(value, what)
    if not least <= seconds <= 366 * 86_400:
        raise Invalid(f"{what} must be a number of seconds from {least:g} to a year, not {checks.shown(value)}")
    return float(seconds)


def _subscriptions(value: object) -> tuple[Subscription, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise Invalid(f"subscriptions must be a list of event names, not {checks.shown(value)}")
    if len(value) > 100:
        raise Invalid("an agent can have at most 100 subscriptions")
    return tuple({subscription.pattern: subscription for subscription in map(_subscription, value)}.values())


def _groups(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise Invalid(f"groups must be a list of names, not {checks.shown(value)}")
    if len(value) > 100:
        raise Invalid("an agent can be in at most 100 groups")
    return tuple(dict.fromkeys(checks.name(group, "the name of a group") for group in value))


def _subscription(value: object) -> Subscription:
    if isinstance(value, Subscription):
        value = {"event": value.pattern, "fields": value.fields}
    if isinstance(value, str):
        return Subscription(patterns.check_pattern(value))
    if not isinstance(value, Mapping) or not {"event"} <= set(value) <= {"event", "fields"}:
        raise Invalid(f'a subscription must be an event name or {{"event": …, "fields": …}}, not {checks.shown(value)}')
    fields = value.get("fields", {})
    if not isinstance(fields, Mapping) or not all(isinstance(name, str) for name in fields):
        raise Invalid(f"the fields of a subscription must be names with values, not {checks.shown(fields)}")
    return Subscription(patterns.check_pattern(value["event"]), checks.data(dict(fields), "the fields", most=10_000))


@dataclass(frozen=True, slots=True)
class LastError:
    """Newest failed run of an agent. `fault` is its class: one of `core.failures.faults`, for example."""

    run_id: str
    fault: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CurrentTask:
    """Envelope that an agent works on. `text`: the beginning of a task or message, a subject, the name of an event."""

    envelope_id: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Agent:
    """Agent as its owner sees it."""

    agent_id: str
    user_id: str
    config: AgentConfig
    state: State
    paused: bool
    created: datetime
    last_active: datetime
    queue_depth: int = 0
    current_tasks: tuple[str, ...] = ()
    sleep_until: datetime | None = None
    wake_events: tuple[str, ...] = ()
    wake_condition: Condition | None = None
    """Condition that wakes it, with the parts that are already met."""
    wake_reason: str | None = None
    error_count: int = 0
    meetings: tuple[str, ...] = ()
    """Ids of its meetings that are not over, newest first."""
    last_error: LastError | None = None
    """Its newest failed run, if it has failed since its last success."""
    working_on: CurrentTask | None = None
    """The first of its current tasks."""


@dataclass(frozen=True, slots=True)
class AgentChange:
    """Change of an agent's state: time, cause and requester. Pausing and resuming do not change the state."""

    at: datetime
    before: State | None
    after: State
    cause: str
    by: str
    change_id: str
