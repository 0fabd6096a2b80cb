"""Monitor: facts, the state of each agent, and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

from roost.core.agents.agent import Agent
from roost.core.monitoring import health
from roost.core.monitoring.facts import Fact, FactPage
from roost.core.monitoring.metrics import Metric, MetricKind
from roost.core.talks.messages import MOST, PAGE, at
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.agent_view import health_of
from roost.runtime.handlers.agents import Agents
from roost.runtime.monitoring.metrics import one

GAUGE, HISTOGRAM = MetricKind.GAUGE, MetricKind.HISTOGRAM


class Monitor:
    """Monitor of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher, agents: Agents) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._agents = agents

    async def facts(self, user_id: str, *, after: str | None = None, limit: int = PAGE) -> FactPage:
        """Return facts of the user in order: after a cursor, or the newest.

        If facts after the cursor are no longer kept, after a restart or a long time, the page starts with the oldest
        and has `gap`.
        """
        return self._context.monitor.facts(user_id, after, limit)

    async def wait(self, user_id: str, after: str, timeout: float | None = None) -> FactPage:  # noqa: ASYNC109
        """Return the facts after a cursor once there are some; none if the time is up or Roost closes."""
        return await self._context.monitor.wait(user_id, after, timeout)

    def follow(self, user_id: str, *, after: str | None = None) -> AsyncIterator[Fact]:
        """Yield each fact as it is recorded, from now on or after a cursor, until Roost closes.

        One fact `FactsMissed` stands for all that are no longer kept.
        """
        return self._context.monitor.follow(user_id, after)

    async def states(self, user_id: str, *, limit: int = MOST, after: str = "") -> dict[str, health.AgentStatus]:
        """Return the status of the user's agents, by id; `after` is the last id of the previous page."""
        found = await self._agents.list(user_id, limit=limit, after=after)
        return {agent.agent_id: self._status(agent) for agent in found}

    def _status(self, agent: Agent) -> health.AgentStatus:
        return health.AgentStatus(
            agent.state,
            agent.queue_depth,
            agent.current_tasks[0] if agent.current_tasks else None,
            agent.sleep_until,
            agent.wake_events,
            agent.error_count,
            agent.last_active,
            health_of(self._dispatcher, agent),
            self._heartbeat(agent),
        )

    async def metrics(self, user_id: str | None = None) -> dict[str, Metric]:
        """Return the metrics of the process by name; they are the same for every user."""
        found = [*self._context.monitor.counted(), *self._gauges()]
        return {metric.name: metric for metric in found}

    def _heartbeat(self, agent: Agent) -> datetime | None:
        awake = self._dispatcher.awake(f"{agent.user_id}/{agent.agent_id}")
        return (
            at(self._context.host.clock.now() - awake.loop.silence())
            if awake is not None and awake.phases.has_loop
            else None
        )

    def _gauges(self) -> list[Metric]:
        context, dispatcher, load = self._context, self._dispatcher, self._context.store.load()
        awake, (loops, free) = dispatcher.all(), dispatcher.loops.counts
        return [
            one("roost_awake_agents", GAUGE, "Agents that are awake, each with a place.", dispatcher.loops.awake),
            one("roost_agents_waiting", GAUGE, "Agents that wait for a place to be awake.", dispatcher.loops.waiting),
            one("roost_running", GAUGE, "Envelopes that agents are working on.", sum(len(a.works) for a in awake)),
            one("roost_queue_depth", GAUGE, "Envelopes of awake agents in memory.", sum(a.depth for a in awake)),
            one("roost_stuck_agents", GAUGE, "Agents whose loop does not turn.", len(dispatcher.stuck)),
            one("roost_quarantine", GAUGE, "Turns that run alone, or wait to.", context.quarantine.count),
            one("roost_abandoned_threads", GAUGE, "Threads given up that have not returned.", context.abandoned.count),
            one("roost_loops_lent", GAUGE, "Loops that agents have.", loops - free),
            one("roost_loops_free", GAUGE, "Loops that wait for an agent.", free),
            one("roost_workers", GAUGE, "Workers for talks with profiles.", len(dispatcher.placement.workers)),
            one("roost_queued_writes", GAUGE, "Queued writes of the store.", load.queued_writes),
            one("roost_queued_reads", GAUGE, "Queued reads of the store.", load.queued_reads),
            Metric(
                "roost_breaker_open",
                GAUGE,
                "1 if the circuit of the provider is open.",
                {(name,): float(is_open) for name, is_open in context.breakers.all().items()},
                ("provider",),
            ),
            Metric("roost_batch_size", HISTOGRAM, "Operations per commit of the store.", {(): load.batches}),
        ]
