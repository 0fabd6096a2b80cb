"""Monitor: facts, the state of each agent, and metrics."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

from roost.core.agents.agent import Agent
from roost.core.monitoring import health
from roost.core.monitoring.facts import Fact, FactPage
from roost.core.monitoring.figures import EdgeCount, FigureName, FigureReport
from roost.core.monitoring.metrics import Metric, MetricKind, MetricTotals
from roost.core.talks.messages import MOST, PAGE, at
from roost.core.values import checks
from roost.core.values.times import timestamp
from roost.core.values.traits import ReplyField, reads
from roost.runtime.cluster.membership import Membership
from roost.runtime.cluster.metrics import ClusterMetrics
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.agents.agents import Agents
from roost.runtime.handlers.agents.live_agents import LiveAgent, LiveAgents
from roost.runtime.handlers.agents.view import health_of
from roost.runtime.monitoring import figure_report
from roost.runtime.monitoring.metrics import one
from roost.stores.sql import figures

GAUGE, HISTOGRAM = MetricKind.GAUGE, MetricKind.HISTOGRAM


class Monitor:
    """Monitor of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(
        self,
        context: RuntimeContext,
        dispatcher: Dispatcher,
        agents: Agents,
        live: LiveAgents,
        membership: Membership | None = None,
    ) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._agents = agents
        self._live = live
        self._of_nodes = None if membership is None else ClusterMetrics(membership, self.own_metrics)

    @reads
    async def facts(self, user_id: str, *, after: str | None = None, limit: int = PAGE) -> FactPage:
        """Return facts of the user in order: after a cursor, or the newest.

        If facts after the cursor are no longer kept, after a restart or a long time, the page starts with the oldest
        and has `gap`.
        """
        return await self._context.facts.facts(user_id, after, limit)

    @reads
    async def wait(self, user_id: str, after: str, timeout: float | None = None) -> FactPage:  # noqa: ASYNC109
        """Return the facts after a cursor once there are some; none if the time is up or Roost closes."""
        return await self._context.facts.wait(user_id, after, timeout)

    def follow(self, user_id: str, *, after: str | None = None) -> AsyncIterator[Fact]:
        """Yield each fact as it is recorded, from now on or after a cursor, until Roost closes.

        One fact `FactsMissed` stands for all that are no longer kept.
        """
        return self._context.facts.follow(user_id, after)

    @reads
    async def states(
        self, user_id: str, *, limit: int = MOST, after: str = ""
    ) -> Annotated[dict[str, health.AgentStatus], ReplyField("agents")]:
        """Return the status of the user's agents, by id; `after` is the last id of the previous page."""
        found = await self._agents.list(user_id, limit=limit, after=after)
        live = await self._live.of(found)
        return {agent.agent_id: self._status(agent, live.get(f"{user_id}/{agent.agent_id}")) for agent in found}

    def _status(self, agent: Agent, live: LiveAgent | None) -> health.AgentStatus:
        return health.AgentStatus(
            agent.state,
            agent.queue_depth,
            agent.current_tasks[0] if agent.current_tasks else None,
            agent.sleep_until,
            agent.wake_events,
            agent.error_count,
            agent.last_active,
            health_of(agent, live, known=self._live.knows(agent.config.profile)),
            None if live is None or live.heartbeat is None else at(live.heartbeat),
        )

    @reads
    async def figures(
        self,
        user_id: str,
        *,
        since: datetime | float,
        until: datetime | float | None = None,
        name: str | None = None,
        width: float | None = None,
    ) -> FigureReport:
        """Return figures of the user over time, of all names or of one, in buckets of `width` seconds.

        Without a width there are at most 180 buckets. They are never narrower than those that are kept: 10 s for an
        hour, 1 min for a day, 15 min for 30 days. The newest values are at most 10 s old.
        """
        checks.name(user_id, "the user id")
        wanted = None if name is None else checks.choice(name, "the name of the figure", FigureName)
        now = self._context.host.clock.now()
        first, last = timestamp(since, "`since`"), now if until is None else timestamp(until, "`until`")
        start, end, step = figure_report.buckets(first, last, now, width)
        rows = await self._context.store.read(figures.read, user_id, start, end, step, wanted)
        return figure_report.report(start, end, step, rows)

    @reads
    async def edges(
        self,
        user_id: str,
        *,
        since: datetime | float,
        until: datetime | float | None = None,
        limit: int = PAGE,
    ) -> builtins.list[EdgeCount]:
        """Return who talks to whom, with the number of messages, tasks, mail and events; the most frequent first.

        Other users and their agents are `others`.
        """
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        now = self._context.host.clock.now()
        first, last = timestamp(since, "`since`"), now if until is None else timestamp(until, "`until`")
        start, end, _ = figure_report.buckets(first, last, now, None)
        return await self._context.store.read(figures.edges, user_id, start, end, limit)

    async def metrics(self, user_id: str | None = None) -> MetricTotals:
        """Return the metrics by name; they are the same for every user.

        In a cluster they are sums over all nodes, with the metrics of each node in `nodes`; `missing` names the nodes
        that did not answer in time.
        """
        return MetricTotals(self.own_metrics()) if self._of_nodes is None else await self._of_nodes.read()

    def own_metrics(self) -> dict[str, Metric]:
        """Return the metrics of this process by name."""
        found = [*self._context.facts.counted(), *self._gauges()]
        return {metric.name: metric for metric in found}

    def _gauges(self) -> list[Metric]:
        context, dispatcher, load = self._context, self._dispatcher, self._context.store.load()
        awake, (loops, free) = dispatcher.all(), dispatcher.loops.counts
        return [
            one("roost_awake_agents", GAUGE, "Agents that are awake, each with a place.", dispatcher.loops.awake),
            one("roost_agents_waiting", GAUGE, "Agents that wait for a place to be awake.", dispatcher.loops.waiting),
            one("roost_running", GAUGE, "Envelopes that agents are working on.", sum(len(a.works) for a in awake)),
            one("roost_queue_depth", GAUGE, "Envelopes of awake agents in RAM.", sum(a.depth for a in awake)),
            one("roost_stuck_agents", GAUGE, "Agents whose loop does not turn.", len(dispatcher.stuck)),
            one("roost_quarantine", GAUGE, "Turns that run alone, or wait to.", context.quarantine.count),
            one("roost_abandoned_threads", GAUGE, "Threads given up that have not returned.", context.abandoned.count),
            one("roost_loops_in_use", GAUGE, "Loops that agents use.", loops - free),
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
