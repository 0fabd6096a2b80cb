"""A Roost: starts the parts in order, stops them in reverse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roost.core.health import Health
from roost.core.limits import Limits
from roost.core.secrets import Redactor
from roost.ports import Brains, Host, Statements, Store, Tool, ToolServer, Tracer
from roost.runtime.agents import Agents
from roost.runtime.approvals import Approvals
from roost.runtime.breakers import Breakers
from roost.runtime.events import Events
from roost.runtime.hall import Hall
from roost.runtime.inbox import Inbox
from roost.runtime.ledger import Ledger
from roost.runtime.letters import DeadLetters
from roost.runtime.mail import Mails
from roost.runtime.meetings import Meetings
from roost.runtime.memory import Memory
from roost.runtime.monitor import Monitor
from roost.runtime.retention import Retention
from roost.runtime.runs import Runs
from roost.runtime.schedules import Schedules, SleepScheduler
from roost.runtime.shop import LiveTalks, Shop
from roost.runtime.supervisor import Supervisor
from roost.runtime.talk import Talks
from roost.runtime.tasks import Tasks
from roost.runtime.tools import Toolbox
from roost.runtime.waker import Waker


class Roost:
    """One process's agents and talks, on one store.

    `hosting`: whether they live here; else all can be looked at and changed, and what is posted waits in the store.
    """

    waker: Waker
    supervisor: Supervisor

    def __init__(
        self, host: Host, store: Store, statements: Statements, brains: Brains, limits: Limits,
        tracer: Tracer | None = None, *, tools: Sequence[Tool] = (), redactor: Redactor | None = None,
        servers: Sequence[ToolServer] = (), hosting: bool = True,
    ) -> None:  # fmt: skip
        self._hosting = hosting
        brains.open(host)
        talks = LiveTalks(host, store, statements, limits.talks_in_memory)
        self.shop = Shop(host, store, statements, brains, limits, talks, tracer, redactor or Redactor())
        self.shop.tools = Toolbox(tools, self._own_tools, servers, host.clock)
        self.monitor = self.shop.monitor = Monitor(self.shop)
        store.listen(self.monitor.died)
        self.shop.breakers = Breakers(host, limits, self.monitor)
        self.shop.ledger = Ledger(self.shop)
        self.shop.memory = Memory(host, limits)
        self.hall = Hall(self.shop, hosting=hosting)
        self.shop.office = self.hall.office
        self.inbox = Inbox(self.shop, self.hall)
        self.agents = Agents(self.shop, self.hall)
        self.tasks = Tasks(self.shop, self.hall)
        self.schedules = Schedules(self.shop, self.hall)
        self.sleep_scheduler = SleepScheduler(self.shop, self.hall)
        self.mail = Mails(self.shop, self.hall)
        self.events = Events(self.shop, self.hall)
        self.meetings = Meetings(self.shop, self.hall)
        self.dead_letters = DeadLetters(self.shop, self.hall)
        self.approvals = Approvals(self.shop)
        self.runs = Runs(self.shop)
        self.talks = Talks(self.shop, self.inbox)
        self.retention = Retention(self.shop)
        if hosting:
            self.waker = Waker(self.shop, self.hall)
            self.supervisor = Supervisor(self.shop, self.inbox, self.hall, self.retention)
        self._closed = False

    def _own_tools(self) -> Iterable[Tool]:
        from roost.runtime.own_tools import OwnTools  # whose schemas take their time

        return OwnTools(self.mail, self.schedules, self.agents, self.meetings).all()

    def health(self) -> Health:
        if not self._hosting:
            return Health(0, 0, 0, None)
        return Health(
            len(self.inbox.workers),
            self.shop.limits.talk_workers,
            self.supervisor.restarts,
            self.supervisor.down or self.shop.memory.problem or self._resting(),
        )

    def _resting(self) -> str | None:
        names = ", ".join(repr(name) for name in self.shop.breakers.open())
        return f"{names} failed again and again and is not asked for a while: agents wait meanwhile" if names else None

    async def close(self) -> None:
        """No new work; what runs gets a bounded time to end, the rest is kept for the next start."""
        if self._closed:
            return
        self._closed = True
        self.talks.closing = True
        if self._hosting:
            await self.waker.close()
            self.supervisor.finish()  # talks and agents come to their ends beside each other
        await self.hall.close()
        if self._hosting:
            await self.supervisor.close()
        self.shop.tools.close()
        self.talks.closed = True
        self.shop.talks.wake_all()
        self.monitor.close()
        self.shop.brains.close()
        self.shop.store.close()
