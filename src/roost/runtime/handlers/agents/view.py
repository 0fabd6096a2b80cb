"""Agents as they are now: the stored row, joined with what the node of an awake agent knows."""

from __future__ import annotations

import json
from dataclasses import replace

from roost.core.agents.agent import Agent, State
from roost.core.monitoring import health
from roost.core.monitoring.health import CurrentRun, Inspection
from roost.core.talks.messages import at
from roost.runtime.handlers.agents.live_agents import LiveAgent
from roost.stores.sql.agents.inspection import StoredAgent


def current(agent: Agent, live: LiveAgent | None) -> Agent:
    """Return the agent with the lifecycle state and the tasks of its activation."""
    if live is None:
        return agent
    works = live.state is not State.IDLE and agent.state is not State.STOPPED
    tasks = tuple(envelope_id for _, envelope_id, *_ in live.works)
    return replace(agent, state=live.state if works else agent.state, current_tasks=tasks)


def health_of(agent: Agent, live: LiveAgent | None, *, known: bool) -> health.AgentHealth:
    placed, stuck = live is None or live.is_placed, live is not None and live.is_stuck
    return health.of_agent(agent, awake=live is not None, stuck=stuck, known=known, placed=placed)


def inspected(stored: StoredAgent, live: LiveAgent | None, *, known: bool) -> Inspection:
    """Return the report about an agent: stored data, and what it executes now."""
    agent = current(stored.agent, live)
    waiting, state = dict(stored.lanes), stored.turn_state
    running: list[CurrentRun] = []
    if live is not None:
        state = live.turn_state
        for run_id, envelope_id, kind, lane, since in live.works:
            running.append(CurrentRun(run_id, envelope_id, kind, at(since)))
            waiting[lane] = waiting.get(lane, 0) - 1
    return Inspection(
        agent,
        health_of(agent, live, known=known),
        tuple(running),
        {lane: depth for lane, depth in waiting.items() if depth > 0},
        json.loads(state or "{}"),
        stored.memories,
        stored.timers,
        stored.changes,
        stored.runs,
        stored.meetings,
    )
