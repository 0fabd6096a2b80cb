"""Agents as they are now: the stored row, joined with the activation of an awake agent."""

from __future__ import annotations

import json
from dataclasses import replace

from roost.core.agents.agent import Agent
from roost.core.monitoring import health
from roost.core.monitoring.health import CurrentRun, Inspection
from roost.core.talks.messages import at
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.stores.sql.agents.inspection import StoredAgent


def current(dispatcher: Dispatcher, agent: Agent) -> Agent:
    """Return the agent with the lifecycle state and the tasks of its activation."""
    awake = dispatcher.awake(f"{agent.user_id}/{agent.agent_id}")
    if awake is None:
        return agent
    running = tuple(work.envelope.envelope_id for work in awake.works)
    return replace(agent, state=dispatcher.state_of(awake.address, agent.state), current_tasks=running)


def health_of(dispatcher: Dispatcher, agent: Agent) -> health.AgentHealth:
    address, known = f"{agent.user_id}/{agent.agent_id}", dispatcher.knows(agent.config.profile)
    awake = dispatcher.awake(address)
    placed = awake is None or (awake.phases.has_loop and not awake.slot.is_released)
    stuck = address in dispatcher.stuck
    return health.of_agent(agent, awake=awake is not None, stuck=stuck, known=known, placed=placed)


def inspected(dispatcher: Dispatcher, stored: StoredAgent) -> Inspection:
    """Return the report about an agent: stored data, and what it executes now."""
    agent = current(dispatcher, stored.agent)
    awake = dispatcher.awake(f"{agent.user_id}/{agent.agent_id}")
    waiting, state = dict(stored.lanes), stored.memory
    running: list[CurrentRun] = []
    if awake is not None:
        state = awake.turn_state.text
        for work in awake.works:
            e = work.envelope
            running.append(CurrentRun(work.run_id, e.envelope_id, e.kind, at(work.started)))
            waiting[e.lane] = waiting.get(e.lane, 0) - 1
    return Inspection(
        agent,
        health_of(dispatcher, agent),
        tuple(running),
        {lane: depth for lane, depth in waiting.items() if depth > 0},
        json.loads(state or "{}"),
        stored.memories,
        stored.timers,
        stored.changes,
        stored.runs,
        stored.meetings,
    )
