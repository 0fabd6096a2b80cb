"""Roost: starts the parts of the runtime in order, stops them in reverse."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from roost.core.limits.limits import Limits
from roost.core.monitoring.health import Health
from roost.core.values.secrets import Redactor
from roost.errors import Unavailable
from roost.ports import Brains, Host, Store, Tool, ToolServer, Tracer
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.dispatch.timers import Timers
from roost.runtime.handlers.agents import Agents
from roost.runtime.handlers.approvals import Approvals
from roost.runtime.handlers.dead_letters import DeadLetters
from roost.runtime.handlers.events import Events
from roost.runtime.handlers.mail import Mails
from roost.runtime.handlers.meetings import Meetings
from roost.runtime.handlers.monitor import Monitor
from roost.runtime.handlers.runs import Runs
from roost.runtime.handlers.schedules import Schedules, SleepScheduler
from roost.runtime.handlers.talks.talks import Talks
from roost.runtime.handlers.tasks import Tasks
from roost.runtime.handlers.tokens import Tokens
from roost.runtime.ports.notifier import Notifier
from roost.runtime.retention import Retention
from roost.runtime.search_index import SearchIndex
from roost.runtime.supervisor import Supervisor
from roost.runtime.talks.live_talks import LiveTalks
from roost.runtime.toolbox import Toolbox
from roost.stores.sql.inbox import recovery

log = logging.getLogger("roost")

CROWDED_AFTER = 1.0
"""Seconds for which agents may wait for a slot before this is reported as a problem."""


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
        hosting: bool = True,
        closed: Callable[[], None] | None = None,
        notifier: Callable[[Notifier], Notifier] | None = None,
    ) -> None:
        self._hosting = hosting
        self._when_closed = closed
        brains.open(host)
        toolbox = Toolbox(tools, self._own_tools, servers, host.clock)
        self.context = RuntimeContext.create(host, store, brains, limits, toolbox, tracer=tracer, redactor=redactor)
        self.live_talks = LiveTalks(host, store, limits.talks_in_memory)
        self.dispatcher = Dispatcher(self.context, self.live_talks, hosting=hosting, wrap=notifier)
        self.placement, notify = self.dispatcher.placement, self.dispatcher.notifier
        store.listen(self.context.monitor.died, notify.wake_at)
        self.agents = Agents(self.context, self.dispatcher)
        self.tasks = Tasks(self.context, self.dispatcher)
        self.schedules = Schedules(self.context, self.dispatcher)
        self.sleep_scheduler = SleepScheduler(self.context, self.dispatcher)
        self.mail = Mails(self.context, self.dispatcher)
        self.events = Events(self.context, self.dispatcher)
        self.meetings = Meetings(self.context, self.dispatcher)
        self.dead_letters = DeadLetters(self.context, self.dispatcher)
        self.approvals = Approvals(self.context, notify)
        self.runs = Runs(self.context)
        self.monitor = Monitor(self.context, self.dispatcher, self.agents)
        self.tokens = Tokens(self.context)
        self.talks = Talks(self.context, self.live_talks, self.placement, notify)
        self.retention = Retention(self.context, self.live_talks)
        self.search_index = SearchIndex(self.context)
        if self.dispatcher.timers is not None:
            self.timers = self.dispatcher.timers
            self.timers.start()
            self.supervisor = Supervisor(
                self.context, self.placement, self.dispatcher, self.retention, self.search_index
            )
        self._closed = False

    def _own_tools(self) -> Iterable[Tool]:
        from roost.runtime.handlers.builtin_tools import BuiltinTools  # building their schemas is slow

        return BuiltinTools(self.mail, self.schedules, self.agents, self.meetings).all()

    def health(self) -> Health:
        if not self._hosting:
            return Health(0, 0, 0, None)
        return Health(
            len(self.placement.workers),
            self.context.limits.talk_workers,
            self.supervisor.restarts,
            self.supervisor.down
            or self._stuck()
            or self.context.abandoned.problem
            or self.context.ram.problem
            or self._crowded()
            or self._resting(),
            self.context.abandoned.count,
            self.dispatcher.loops.awake,
            self.dispatcher.loops.waiting,
        )

    def _crowded(self) -> str | None:
        """Return the problem that agents wait too long for a slot, if so."""
        loops = self.dispatcher.loops
        if loops.short_for < CROWDED_AFTER:
            return None
        agents = "1 agent waits" if loops.waiting == 1 else f"{loops.waiting:,} agents wait"
        return (
            f"{agents} for a slot: all {self.context.limits.awake_agents:,} are taken (awake_agents); raise it, or"
            " give the agents less to do at once"
        )

    def _stuck(self) -> str | None:
        """Return why stuck agents are left where they are, if any are."""
        stuck = sum(not activation.phases.is_retired for activation in list(self.dispatcher.stuck.values()))
        if not stuck or not self.context.abandoned.is_full:
            return None
        given_up = self.context.abandoned.loops
        agents = "1 agent is" if stuck == 1 else f"{stuck} agents are"
        return (
            f"{agents} stuck and cannot be moved to another thread: {given_up} blocked threads have not returned"
            f" (blocked_loops = {self.context.limits.blocked_loops}); find what blocks in the log, then restart Roost"
        )

    def _resting(self) -> str | None:
        names = ", ".join(repr(name) for name in self.context.breakers.open())
        return f"{names} failed repeatedly; the circuit is open, and agents that need it wait" if names else None

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
        self.talks.closing = self.context.closing = True
        if self._hosting:
            await self.timers.close()
            self.supervisor.finish()  # talks and agents end concurrently
        await self.dispatcher.close()
        if self._hosting:
            await self.supervisor.close()
            await self._retire()
        self.context.tools.close()
        self.talks.closed = True
        self.live_talks.wake_all()
        self.context.monitor.close()
        self.context.brains.close()
        self.context.store.close()
        if self._when_closed is not None:
            self._when_closed()
