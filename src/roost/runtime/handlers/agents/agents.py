"""Agents: the namespace `service.agents`, over stored and awake agents."""

from __future__ import annotations

import builtins
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from roost.core.agents import wake
from roost.core.agents.agent import Agent, AgentChange, AgentConfig, State, configured
from roost.core.agents.agent_filter import agent_filter
from roost.core.agents.audience import audience
from roost.core.envelopes.effects import Publish
from roost.core.envelopes.events import FAILED
from roost.core.envelopes.outcomes import StateChange
from roost.core.envelopes.sender import SenderContext
from roost.core.envelopes.waiting import Waiting
from roost.core.monitoring import facts
from roost.core.monitoring.health import Inspection
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import addresses, checks
from roost.core.values.traits import Count, idempotent, reads
from roost.errors import Invalid, LimitReached, RoostError, Unavailable
from roost.ports import Tx
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.agents.changes import AgentChanges, AgentFacts
from roost.runtime.handlers.agents.live_agents import LiveAgents
from roost.runtime.handlers.agents.memories import AgentMemories, check_agent
from roost.runtime.handlers.agents.view import current, inspected
from roost.runtime.handlers.filtering import AFTER_ALL_IDS, fitting
from roost.stores.sql.agents import agents, inspection, lifecycle, listing
from roost.stores.sql.sending import effects

MAX_CREATED = 100_000
"""Maximum number of agents that one call creates."""
CREATED_PER_WRITE = 2_000
"""Agents per write: other writes wait for it some hundredths of a second."""
SHOWN = 20
"""Number of changes and runs in a report."""


class Agents(AgentMemories):
    """Agents of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher, live: LiveAgents) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._live = live
        self._then = AgentChanges(context, dispatcher)
        self.changed_elsewhere = self._then.changed_elsewhere
        self._facts = AgentFacts(context, dispatcher)

    async def create(self, user_id: str, agent_id: str, *, start: bool = True, **config: Any) -> Agent:
        """Create an agent, which lives until it is deleted. Settings: see AgentConfig."""
        await self.create_many(user_id, [agent_id], start=start, **config)
        return await self.get(user_id, agent_id)

    async def create_many(self, user_id: str, agent_ids: Sequence[str], *, start: bool = True, **config: Any) -> None:
        """Create agents with the same settings: all of them or none.

        More than 2,000 are written in parts, so that others can write in between. All are checked first; if a later
        part fails, as with a full disk, the created agents stay, and the error gives their number.
        """
        checks.name(user_id, "the user id")
        made = self._configured(AgentConfig(), config)
        ids = addresses.agent_ids(agent_ids)
        if len(ids) > MAX_CREATED:
            raise LimitReached(
                f"{MAX_CREATED:,} agents can be created by one call, not {len(ids):,}: call it several times"
            )
        after = State.IDLE if checks.flag(start, "`start`") else State.STOPPED
        most = self._context.limits.agents_per_user
        if len(ids) > CREATED_PER_WRITE:
            await self._context.store.read(agents.check_new, user_id, ids, most)
        await self._context.quota.use(user_id, len(ids) * len(made.to_json()))
        for done in range(0, len(ids), CREATED_PER_WRITE):
            piece, change = ids[done : done + CREATED_PER_WRITE], self._change(after, "created", user_id)
            try:
                await self._context.store.write(
                    agents.create,
                    user_id,
                    piece,
                    made,
                    change,
                    most,
                    facts=partial(self._facts.made, user_id, piece),
                    then=self._then.made,
                )
            except RoostError as error:
                if not done:
                    raise
                raise type(error)(f"{error} ({done:,} of {len(ids):,} agents were made before)") from error

    async def get(self, user_id: str, agent_id: str) -> Agent:
        check_agent(user_id, agent_id)
        [found] = await self._current([await self._context.store.read(agents.get, user_id, agent_id)])
        return found

    async def list(
        self,
        user_id: str,
        *,
        limit: int = PAGE,
        after: str = "",
        state: str | None = None,
        paused: bool | None = None,
        failing: bool | None = None,
        profile: str | None = None,
        text: str | None = None,
    ) -> builtins.list[Agent]:
        """Return agents by id that match all filters; `after` is the last id of the previous page.

        `failing`: three or more failures since the last success. `text`: a part of the id or of the description.
        """
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        wanted = agent_filter(state, paused, failing, profile, text)
        after = checks.place(after, "`after`")

        async def page(size: int, after: str) -> builtins.list[Agent]:
            found = await self._context.store.read(listing.listed, user_id, wanted, size, after)
            return await self._current(found)

        return await fitting(page, wanted.admits, limit, after, _id)

    async def configure(self, user_id: str, agent_id: str, **config: Any) -> Agent:
        """Change settings; all others stay as they are."""
        check_agent(user_id, agent_id)
        self._configured(AgentConfig(), config)  # checked before the write, so that a refusal is quick

        def configure(tx: Tx) -> Agent:
            """Read and write in one transaction, so that concurrent changes of different settings are kept."""
            made = self._configured(agents.get(tx, user_id, agent_id).config, config)
            return agents.configure(tx, user_id, agent_id, made, self._context.host.clock.now())

        changed: Agent = await self._context.store.write(configure, then=self._then.configured)
        [found] = await self._current([changed])
        return found

    @idempotent
    async def start(self, user_id: str, agent_id: str) -> Agent:
        """Start a stopped agent; has no effect on others."""
        check_agent(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.IDLE, "started", user_id)
        await self._context.store.write(
            lifecycle.start,
            user_id,
            agent_id,
            change,
            facts=partial(self._facts.started, key),
            then=partial(self._then.started, key),
        )
        return await self.get(user_id, agent_id)

    @idempotent
    async def stop(self, user_id: str, agent_id: str) -> Agent:
        """Stop an agent and its turns at once; its inbox stays until it is started."""
        check_agent(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.STOPPED, "stopped", user_id, agent_id)
        event = self._failure_event(user_id, agent_id, "stopped")
        await self._context.store.write(
            lifecycle.stop,
            user_id,
            agent_id,
            change,
            event,
            facts=partial(self._facts.stopped, key),
            then=partial(self._then.stopped, key),
        )
        return await self.get(user_id, agent_id)

    async def restart(self, user_id: str, agent_id: str) -> Agent:
        """Stop an agent and start it again in one step; callers that wait for its answers keep waiting."""
        check_agent(user_id, agent_id)
        key, stopped = _key(user_id, agent_id), self._change(State.STOPPED, "stopped", user_id, agent_id)
        started = self._change(State.IDLE, "started", user_id)
        await self._context.store.write(
            lifecycle.restart,
            user_id,
            agent_id,
            stopped,
            started,
            facts=partial(self._facts.restarted, key),
            then=partial(self._then.restarted, key),
        )
        return await self.get(user_id, agent_id)

    @idempotent
    async def pause(self, user_id: str, agent_id: str) -> Agent:
        """Pause an agent: it starts nothing new, and running turns continue."""
        return await self._paused(user_id, agent_id, True)

    @idempotent
    async def resume(self, user_id: str, agent_id: str) -> Agent:
        return await self._paused(user_id, agent_id, False)

    async def sleep(
        self,
        user_id: str,
        agent_id: str,
        seconds: float | None = None,
        *,
        until: datetime | float | None = None,
        wake_on: wake.Condition | None = None,
    ) -> Agent:
        """Put an agent to sleep after its turns: for some seconds, until a time, or until a wake condition is met."""
        agent = await self.get(user_id, agent_id)
        default = wake.mail(agent.config.wake_on_priority)
        condition = wake.wanted(self._context.host.clock.now(), seconds, until, wake_on, default)
        change = self._change(State.SLEEPING, "put to sleep", user_id, agent_id)
        key = _key(user_id, agent_id)
        await self._context.store.write(
            lifecycle.sleep,
            user_id,
            agent_id,
            wake.to_json(condition),
            change,
            facts=partial(self._facts.fell_asleep, key),
            then=partial(self._then.fell_asleep, key),
        )
        if (due := wake.next_time(condition)) is not None:
            self._dispatcher.notifier.wake_at(due)
        return await self.get(user_id, agent_id)

    @idempotent
    async def wake(self, user_id: str, agent_id: str, reason: str = "asked for") -> Agent:
        """Wake a sleeping agent; has no effect on others."""
        checks.name(reason, "the reason")
        check_agent(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.IDLE, reason, user_id)
        await self._context.store.write(
            lifecycle.wake_now,
            user_id,
            agent_id,
            change,
            facts=partial(self._facts.woken, key, reason),
            then=partial(self._then.woken, key),
        )
        return await self.get(user_id, agent_id)

    async def broadcast(
        self,
        user_id: str,
        text: str,
        *,
        group: str | None = None,
        profile: str | None = None,
        ids: str | None = None,
        state: str | None = None,
        priority: str = "normal",
    ) -> Count:
        """Send a message to all agents of the user that match all filters; return the number reached.

        In `ids`, `*` matches any characters. An agent with a full inbox gets a dead letter instead.
        """
        checks.name(user_id, "the user id")
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: broadcast it again after its restart")
        self._context.ram.check()
        audience_ = audience(group, profile, ids, state)
        effect = await self._dispatcher.composer.broadcast(
            SenderContext.of_user(user_id), text, audience_, priority=priority
        )
        posted = await self._context.store.write(
            effects.post,
            effect,
            facts=partial(self._context.facts.sent, f"{user_id}/", (effect,)),
            then=partial(self._dispatcher.sent, f"{user_id}/", effect),
        )
        return len(posted)

    async def delete(self, user_id: str, agent_id: str) -> None:
        """Delete an agent with everything that belongs to it; participants of its meetings are notified."""
        check_agent(user_id, agent_id)
        key, event = _key(user_id, agent_id), self._failure_event(user_id, agent_id, "deleted")
        await self._context.store.write(
            lifecycle.delete,
            user_id,
            agent_id,
            event,
            facts=partial(self._facts.deleted, key),
            then=partial(self._then.deleted, key),
        )

    @reads
    async def history(
        self, user_id: str, agent_id: str, *, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[AgentChange]:
        """Return the changes of the lifecycle state, newest first; `before` is the last id of the previous page.

        Pausing and resuming are included, from a state to the same state.
        """
        check_agent(user_id, agent_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        found = await self._context.store.read(lifecycle.history, user_id, agent_id, limit, last)
        if before is None and await self._record_idle(user_id, agent_id, found):
            found = await self._context.store.read(lifecycle.history, user_id, agent_id, limit, last)
        return found

    # --- reports ----------------------------------------------------------------------------------

    @reads
    async def inspect(self, user_id: str, agent_id: str) -> Inspection:
        """Return a report about one agent: health, current runs, inbox, state, timers, last changes and runs."""
        check_agent(user_id, agent_id)
        stored = await self._context.store.read(inspection.inspect, user_id, agent_id, SHOWN)
        if await self._record_idle(user_id, agent_id, stored.changes):
            stored = await self._context.store.read(inspection.inspect, user_id, agent_id, SHOWN)
        live = await self._live.of([stored.agent], with_state=True)
        known = self._live.knows(stored.agent.config.profile)
        report = inspected(stored, live.get(_key(user_id, agent_id)), known=known)
        [agent] = await self._with_current_tasks([report.agent])
        return replace(report, agent=agent)

    def follow(
        self, user_id: str, agent_id: str | None = None, *, after: str | None = None
    ) -> AsyncIterator[facts.Fact]:
        """Yield each fact about an agent, or about all agents, as it is recorded: its states, tasks and turns.

        From now on or after a cursor, until Roost closes. One fact `FactsMissed` stands for those no longer kept.
        """
        about = facts.agent_key(user_id, agent_id)
        return facts.about_agents(self._context.facts.follow(user_id, after), about)

    async def _fact_cursor(self, user_id: str) -> str:
        return (await self._context.facts.facts(user_id, None, 1)).cursor

    @reads
    async def find(self, user_id: str, text: str, *, limit: int = PAGE, after: str = "") -> builtins.list[Agent]:
        """Return agents with the text in their id or description; `after` is the last id of the previous page."""
        return await self.list(user_id, text=checks.name(text, "the text"), limit=limit, after=after)

    @reads
    async def inbox(self, user_id: str, agent_id: str, *, limit: int = PAGE, after: str = "") -> builtins.list[Waiting]:
        """Return what is in the inbox of an agent, in the order in which it is handled, with what it handles now.

        `after` is the last id of the previous page; if that is no longer in the inbox, the list starts again.
        """
        check_agent(user_id, agent_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(listing.inbox, user_id, agent_id, limit, checks.place(after, "`after`"))

    async def set_state(self, user_id: str, agent_id: str, state: Mapping[str, Any]) -> None:
        """Replace `turn.state` of an agent. Running turns add their changes to it."""
        check_agent(user_id, agent_id)
        if not isinstance(state, Mapping):
            raise Invalid(f"the state must be a mapping of names to values, not {type(state).__name__}")
        text = json.dumps(checks.data(dict(state), "the state", most=self._context.limits.state_chars))
        key = _key(user_id, agent_id)
        await self._context.quota.use(user_id, len(text))
        await self._context.store.write(
            inspection.set_state,
            user_id,
            agent_id,
            text,
            then=lambda _: self._then.state_replaced(key, text),
        )

    # --- inside ----------------------------------------------------------------------------------

    async def _current(self, stored: Sequence[Agent]) -> builtins.list[Agent]:
        """Return agents as they are now, on whatever node they are awake."""
        live = await self._live.of(stored)
        return await self._with_current_tasks(
            [current(agent, live.get(_key(agent.user_id, agent.agent_id))) for agent in stored]
        )

    async def _with_current_tasks(self, agents: builtins.list[Agent]) -> builtins.list[Agent]:
        if not any(agent.current_tasks for agent in agents):
            return agents
        return await self._context.store.read(listing.with_current_tasks, agents)

    async def _paused(self, user_id: str, agent_id: str, paused: bool) -> Agent:
        check_agent(user_id, agent_id)
        key = _key(user_id, agent_id)
        change = self._change(State.IDLE, "paused" if paused else "resumed", user_id, agent_id)
        await self._context.store.write(
            lifecycle.pause,
            user_id,
            agent_id,
            paused,
            change,
            facts=partial(self._facts.paused, key, paused),
            then=partial(self._then.paused, key, paused),
        )
        return await self.get(user_id, agent_id)

    def _failure_event(self, user_id: str, agent_id: str, fault: str) -> Publish:
        data = {"agent": agent_id, "reason": f"it was {fault}", "fault": fault}
        sender = SenderContext(user_id, f"agent:{_key(user_id, agent_id)}")
        return self._dispatcher.composer.event(sender, FAILED, data, optional=True)

    def _configured(self, before: AgentConfig, changes: Mapping[str, Any]) -> AgentConfig:
        changed = configured(before, changes)
        if "profile" in changes and changed.profile:  # an unchanged profile may be known in another program
            self._context.brains.profile(changed.profile)
        return changed

    def _change(self, after: State, cause: str, user_id: str, agent_id: str = "") -> StateChange:
        """Return a state change, preceded by those of an awake agent that may not be stored yet."""
        host, awake = self._context.host, self._dispatcher.awake(_key(user_id, agent_id))
        earlier = awake.state_log.pending() if awake is not None else ()
        return StateChange(
            host.new_id("change"), host.clock.now(), None, after, cause, f"user:{user_id}", earlier=earlier
        )

    async def _record_idle(self, user_id: str, agent_id: str, changes: Sequence[AgentChange]) -> bool:
        """Record that the agent is idle if its history says otherwise; return True if it was recorded.

        Roost may have ended before the change was written, or a suspended turn is over.
        """
        works = bool(changes) and changes[0].after in (State.ACTIVE, State.WAITING)
        if not works or self._dispatcher.is_awake(_key(user_id, agent_id)):
            return False
        if (await self.get(user_id, agent_id)).state is changes[0].after:
            return False
        host = self._context.host
        change = StateChange(
            host.new_id("change"), host.clock.now(), None, State.IDLE, "nothing left to do", "roost", announced=True
        )
        await self._context.store.write(lifecycle.record_idle, user_id, agent_id, change)
        return True


def _id(agent: Agent) -> str:
    return agent.agent_id


def _key(user_id: str, agent_id: str) -> str:
    return f"{user_id}/{agent_id}"
