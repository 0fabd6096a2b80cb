"""Roost: starts the parts of the runtime in order, stops them in reverse."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from roost.core.limits.limits import Limits
from roost.core.monitoring.health import Health
from roost.core.values.secrets import Redactor
from roost.errors import Unavailable
from roost.ports import Brains, Host, Poster, Store, Tool, ToolServer, Tracer
from roost.runtime import health
from roost.runtime.cluster.facts import ClusterFacts
from roost.runtime.cluster.membership import Membership
from roost.runtime.cluster.notifier import ClusterNotifier
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.dispatch.timers import Timers
from roost.runtime.figures import FigureKeeper
from roost.runtime.handlers.accounts.deletion import Deletions
from roost.runtime.handlers.accounts.suspension import Suspensions
from roost.runtime.handlers.accounts.users import Users
from roost.runtime.handlers.agents.agents import Agents
from roost.runtime.handlers.agents.live_agents import LiveAgents
from roost.runtime.handlers.approvals import Approvals
from roost.runtime.handlers.dead_letters import DeadLetters
from roost.runtime.handlers.events import Events
from roost.runtime.handlers.mail import Mails
from roost.runtime.handlers.meetings import Meetings
from roost.runtime.handlers.monitor import Monitor
from roost.runtime.handlers.nodes import Nodes
from roost.runtime.handlers.runs import Runs
from roost.runtime.handlers.schedules import Schedules
from roost.runtime.handlers.sleep_scheduler import SleepScheduler
from roost.runtime.handlers.talks.talks import Talks
from roost.runtime.handlers.tasks import Tasks
from roost.runtime.handlers.tokens import Tokens
from roost.runtime.handlers.webhooks.hooks import Hooks
from roost.runtime.handlers.webhooks.webhooks import Webhooks
from roost.runtime.node_work import HostedWork
from roost.runtime.ports.notifier import Notifier
from roost.runtime.retention import Retention
from roost.runtime.search_index import SearchIndex
from roost.runtime.supervisor import Supervisor
from roost.runtime.talks.live_talks import LiveTalks
from roost.runtime.toolbox import Toolbox
from roost.runtime.webhooks.outbox import WebhookOutbox
from roost.runtime.webhooks.sender import WebhookSender
from roost.stores.sql.inbox import recovery

log = logging.getLogger("roost")


class Roost:
    """Agents and talks of one process, on one store. `hosting`: whether they run here.

    Without hosting, everything can be read and changed, and posted work waits in the store. `notifier` wraps the
    dispatcher: all notifications after a commit go through its result.
    """

    timers: Timers
    supervisor: Supervisor

    def __init__(
        self,
        host: Host,
        store: Store,
        brains: Brains,
        limits: Limits,
        tracer: Tracer | None = None,
        *,
        tools: Sequence[Tool] = (),
        redactor: Redactor | None = None,
        servers: Sequence[ToolServer] = (),
        poster: Poster | None = None,
        hosting: bool = True,
        closed: Callable[[], None] | None = None,
        notifier: Callable[[Notifier], Notifier] | None = None,
        membership: Membership | None = None,
    ) -> None:
        self.membership = membership
        node = "" if membership is None else membership.node
        self._hosting = hosting
        self._when_closed = closed
        redactor = redactor or Redactor()
        brains.open(host, redactor)
        toolbox = Toolbox(tools, self._own_tools, servers, host.clock)
        self.context = RuntimeContext.create(
            host,
            store,
            brains,
            limits,
            toolbox,
            tracer=tracer,
            redactor=redactor,
            node=node,
            does_chores=lambda: membership is None or membership.is_first,
            gets_notices=lambda: membership is None or membership.mesh.is_up,
            fact_log=None if membership is None else partial(ClusterFacts, host, store, limits, membership),
        )
        self.live_talks = LiveTalks(host, store, limits.talks_in_ram, node)
        self.dispatcher = Dispatcher(
            self.context, self.live_talks, hosting=hosting, wrap=_wrapped(membership, notifier)
        )
        self.placement, notify = self.dispatcher.placement, self.dispatcher.notifier
        outbox = WebhookOutbox(self.context)
        store.listen(outbox.died, notify.wake_at, committing=outbox.committing, reported=outbox.reported)
        live = LiveAgents(self.context, self.dispatcher, membership)
        self.agents = Agents(self.context, self.dispatcher, live)
        self.tasks = Tasks(self.context, self.dispatcher)
        self.schedules = Schedules(self.context, self.dispatcher)
        self.sleep_scheduler = SleepScheduler(self.context, self.dispatcher)
        self.mail = Mails(self.context, self.dispatcher)
        self.events = Events(self.context, self.dispatcher)
        self.meetings = Meetings(self.context, self.dispatcher)
        self.dead_letters = DeadLetters(self.context, self.dispatcher, outbox)
        self.approvals = Approvals(self.context, notify)
        self.runs = Runs(self.context)
        self.monitor = Monitor(self.context, self.dispatcher, self.agents, live, membership)
        self.tokens = Tokens(self.context)
        self.nodes = Nodes(self.context)
        self.sender = (
            None if poster is None else WebhookSender(self.context, outbox, poster, self.mail.send, hosting=hosting)
        )
        self.webhooks = Webhooks(self.context, outbox, self.sender, poster)
        self.hooks = Hooks(self.context, self.dispatcher)
        mesh = None if membership is None else membership.mesh
        self.talks = Talks(self.context, self.live_talks, self.placement, notify, mesh)
        self.deletions = Deletions(
            self.context, self.dispatcher, self.agents, self.talks, self.tasks, self.webhooks, supervised=hosting
        )
        suspensions = Suspensions(self.context, self.dispatcher, self.talks, mesh)
        self.users = Users(self.context, self.deletions, suspensions)
        self.retention = Retention(self.context, self.live_talks)
        self.figures = FigureKeeper(self.context, self.dispatcher)
        self.search_index = SearchIndex(self.context)
        if self.dispatcher.timers is not None:
            self.timers = self.dispatcher.timers
            self.timers.start()
            self.supervisor = Supervisor(
                self.context,
                self.placement,
                self.dispatcher,
                self.retention,
                self.figures,
                self.search_index,
                self.deletions,
                suspensions,
                membership,
            )
        self._closed = False
        if membership is not None:
            membership.mesh.handlers |= {
                "agent_changed": self.agents.changed_elsewhere,
                "approval_decided": self.approvals.decided_elsewhere,
            }
            membership.start(HostedWork(self.dispatcher, self.talks, self.supervisor if hosting else None))

    def _own_tools(self) -> Iterable[Tool]:
        from roost.runtime.handlers.builtin_tools import BuiltinTools  # building their schemas is slow

        return BuiltinTools(self.mail, self.schedules, self.agents, self.meetings).all()

    def health(self) -> Health:
        if not self._hosting:
            return Health(0, 0, 0, None)
        return health.report(self.context, self.dispatcher, self.supervisor)

    async def _retire(self) -> None:
        """Record that the process was closed; otherwise the next one treats it as a crash."""
        try:
            await self.context.store.write(recovery.retire)
        except Unavailable as error:
            log.warning("the end of the process could not be recorded; the next start treats it as a crash: %s", error)

    async def close(self) -> None:
        """Stop new work, give running work a limited time to end, and keep the rest for the next start."""
        if self._closed:
            return
        self._closed = True
        if self.membership is not None:
            await self.membership.drain()
        self.talks.closing = self.context.closing = True
        if self.sender is not None:
            self.sender.finish()  # requests end concurrently
        if self._hosting:
            await self.timers.close()
            self.supervisor.finish()  # talks and agents end concurrently
        await self.dispatcher.close()
        if self.sender is not None:
            await self.sender.close()
        if self._hosting:
            await self.supervisor.close()
        await self.figures.close()
        if self._hosting and self.membership is None:
            await self._retire()
        if self.membership is not None:
            await self.membership.close()
        self.context.tools.close()
        self.talks.closed = True
        self.live_talks.wake_all()
        await self.context.facts.close()
        self.context.brains.close()
        self.context.store.close()
        if self._when_closed is not None:
            self._when_closed()


def _wrapped(
    membership: Membership | None, outer: Callable[[Notifier], Notifier] | None
) -> Callable[[Dispatcher], Notifier]:
    def wrap(dispatcher: Dispatcher) -> Notifier:
        inner: Notifier = dispatcher if membership is None else ClusterNotifier(membership, dispatcher)
        return inner if outer is None else outer(inner)

    return wrap
