"""Agents and their settings as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from roost.cli.render.output import short_id
from roost.cli.render.tables import format_duration, local_time, relative_time, table_or_message
from roost.cli.render.text import single_line
from roost.core.agents import wake
from roost.core.agents.agent import Agent, AgentConfig, State

DURATIONS = {"check_mail_interval", "retry_delay", "task_expiry", "idle_timeout"}

HEADINGS = ("AGENT", "STATE", "INBOX", "TASK", "LAST ACTIVE", "PROFILE", "WAKES")


def agent_table(listed: list[Agent]) -> Iterator[str]:
    return table_or_message(listed, HEADINGS, agent_row, "No agents. Create one with `roost agents create NAME`.")


def agent_row(agent: Agent) -> tuple[str, ...]:
    doing = _doing(agent.current_tasks[0]) if agent.current_tasks else ""
    if len(agent.current_tasks) > 1:
        doing += f" +{len(agent.current_tasks) - 1}"
    return (
        agent.agent_id,
        state_text(agent),
        str(agent.queue_depth or ""),
        doing,
        relative_time(agent.last_active),
        agent.config.profile or "(default)",
        wake_text(agent, relative_time),
    )


def _doing(envelope_id: str) -> str:
    """Return the short id of a task, or of the meeting for a turn in a meeting."""
    first, _, turn = envelope_id.partition(":")
    return f"meeting {short_id(first)}" if turn else short_id(first)


def state_text(agent: Agent) -> str:
    return f"{agent.state}, paused" if agent.paused else str(agent.state)


def wake_text(agent: Agent, tell: Callable[[datetime], str]) -> str:
    """Return the wake condition of an agent in words."""
    if agent.wake_condition is None:
        return ""
    return wake.described(agent.wake_condition, lambda time: tell(datetime.fromtimestamp(time, UTC)))


def setting_text(config: AgentConfig, name: str) -> str:
    value = getattr(config, name)
    if name in DURATIONS:
        return "never" if value is None else format_duration(value)
    if name == "subscriptions":
        return ", ".join(one.pattern + (f" {one.fields_json()}" if one.fields else "") for one in value)
    if name == "groups":
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) or {"profile": "(default)"}.get(name, "")


def state_sentence(agent: Agent) -> str:
    """Return the sentence that commands print after they changed an agent."""
    if agent.state is State.SLEEPING and (until := wake_text(agent, local_time)):
        return single_line(f"{agent.agent_id} is sleeping until {until}{', and paused' if agent.paused else ''}.")
    return single_line(f"{agent.agent_id} is {state_text(agent)}.")
