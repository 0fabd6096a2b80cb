"""Health of an agent, from its row and from its activation."""

from __future__ import annotations

from roost.core.agents.agent import Agent
from roost.core.monitoring import health
from roost.runtime.dispatch.dispatcher import Dispatcher


def health_of(dispatcher: Dispatcher, agent: Agent) -> health.AgentHealth:
    address, known = f"{agent.user_id}/{agent.agent_id}", dispatcher.knows(agent.config.profile)
    awake = dispatcher.awake(address)
    placed = awake is None or (awake.phases.has_loop and not awake.slot.is_released)
    stuck = address in dispatcher.stuck
    return health.of_agent(agent, awake=awake is not None, stuck=stuck, known=known, placed=placed)
