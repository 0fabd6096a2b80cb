"""Agents: the namespace `service.agents`, over stored and awake agents."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from roost.core.agents import wake
from roost.core.agents.agent import Agent, AgentChange, AgentConfig, State, configured
from roost.core.agents.audience import audience
from roost.core.envelopes.effects import Publish
from roost.core.envelopes.events import FAILED
from roost.core.envelopes.outcomes import StateChange
from roost.core.memory import memories
from roost.core.memory.memories import Memory
from roost.core.monitoring.health import Inspection
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import addresses, checks
from roost.errors import Invalid, LimitReached, RoostError, Unavailable
from roost.ports import Tx
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.agent_changes import AgentChanges
from roost.runtime.handlers.agent_view import current, inspected
from roost.runtime.handlers.filtering import fitting
from roost.stores.sql.agents import agents, inspection, lifecycle
from roost.stores.sql.brain_data import memories as memories_sql
from roost.stores.sql.sending import effects

AFTER_ALL_IDS = "\x7f"
"""Sorts after every id."""
MAX_CREATED = 100_000
"""Maximum number of agents that one call creates."""
CREATED_PER_WRITE = 2_000
"""Agents per write: other writes wait for it some hundredths of a second."""
SHOWN = 20
"""Number of changes and runs in a report."""


class Agents:
    """Agents of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._then = AgentChanges(context, dispatcher)

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
                    agents.create, user_id, piece, made, change, most, then=partial(self._created, user_id, piece)
                )
            except RoostError as error:
                if not done:
                    raise
                raise type(error)(f"{error} ({done:,} of {len(ids):,} agents were made before)") from error

    def _created(self, user_id: str, ids: Sequence[str], _: None) -> None:
        self._then.made(user_id, ids)

    async def get(self, user_id: str, agent_id: str) -> Agent:
        self._check(user_id, agent_id)
        return current(self._dispatcher, await self._context.store.read(agents.get, user_id, agent_id))

    async def list(
        self, user_id: str, *, limit: int = PAGE, after: str = "", state: str | None = None
    ) -> builtins.list[Agent]:
        """Return agents by id; `after` is the last id of the previous page."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        wanted = None if state is None else checks.choice(state, "the state", State)
        after = checks.place(after, "`after`")
        kept = wanted if wanted in (State.SLEEPING, State.STOPPED) else None  # others are not in the store

        async def page(size: int, after: str) -> builtins.list[Agent]:
            found = await self._context.store.read(agents.listed, user_id, size, after, kept)
            return [current(self._dispatcher, agent) for agent in found]

        return await fitting(page, lambda agent: wanted in (None, agent.state), limit, after, _id)

    async def configure(self, user_id: str, agent_id: str, **config: Any) -> Agent:
        """Change settings; all others stay as they are."""
        self._check(user_id, agent_id)
        self._configured(AgentConfig(), config)  # checked before the write, so that a refusal is quick

        def configure(tx: Tx) -> Agent:
            """Read and write in one transaction, so that concurrent changes of different settings are kept."""
            made = self._configured(agents.get(tx, user_id, agent_id).config, config)
            return agents.configure(tx, user_id, agent_id, made, self._context.host.clock.now())

        changed: Agent = await self._context.store.write(configure, then=self._then.configured)
        return current(self._dispatcher, changed)

    async def start(self, user_id: str, agent_id: str) -> Agent:
        """Start a stopped agent; has no effect on others."""
        self._check(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.IDLE, "started", user_id)
        await self._context.store.write(
            lifecycle.start, user_id, agent_id, change, then=partial(self._then.started, key)
        )
        return await self.get(user_id, agent_id)

    async def stop(self, user_id: str, agent_id: str) -> Agent:
        """Stop an agent and its turns at once; its inbox stays until it is started."""
        self._check(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.STOPPED, "stopped", user_id, agent_id)
        event = self._failure_event(user_id, agent_id, "stopped")
        await self._context.store.write(
            lifecycle.stop, user_id, agent_id, change, event, then=partial(self._then.stopped, key)
        )
        return await self.get(user_id, agent_id)

    async def restart(self, user_id: str, agent_id: str) -> Agent:
        """Stop an agent and start it again in one step; callers that wait for its answers keep waiting."""
        self._check(user_id, agent_id)
        key, stopped = _key(user_id, agent_id), self._change(State.STOPPED, "stopped", user_id, agent_id)
        started = self._change(State.IDLE, "started", user_id)
        await self._context.store.write(
            lifecycle.restart, user_id, agent_id, stopped, started, then=partial(self._then.restarted, key)
        )
        return await self.get(user_id, agent_id)

    async def pause(self, user_id: str, agent_id: str) -> Agent:
        """Pause an agent: it starts nothing new, and running turns continue."""
        return await self._paused(user_id, agent_id, True)

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
            then=lambda _: self._then.fell_asleep(key),
        )
        if (due := wake.next_time(condition)) is not None:
            self._dispatcher.notifier.wake_at(due)
        return await self.get(user_id, agent_id)

    async def wake(self, user_id: str, agent_id: str, reason: str = "asked for") -> Agent:
        """Wake a sleeping agent; has no effect on others."""
        checks.name(reason, "the reason")
        self._check(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.IDLE, reason, user_id)
        await self._context.store.write(
            lifecycle.wake_now, user_id, agent_id, change, then=partial(self._then.woken, key, reason)
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
    ) -> int:
        """Send a message to all agents of the user that match all filters; return the number reached.

        In `ids`, `*` matches any characters. An agent with a full inbox gets a dead letter instead.
        """
        checks.name(user_id, "the user id")
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: broadcast it again after its restart")
        self._context.ram.check()
        audience_ = audience(group, profile, ids, state)
        effect = await self._dispatcher.composer.broadcast(
            user_id, f"user:{user_id}", text, audience_, priority=priority
        )
        posted = await self._context.store.write(
            effects.post, effect, then=partial(self._dispatcher.sent, f"{user_id}/", effect)
        )
        return len(posted)

    async def delete(self, user_id: str, agent_id: str) -> None:
        """Delete an agent with everything that belongs to it; participants of its meetings are notified."""
        self._check(user_id, agent_id)
        key, event = _key(user_id, agent_id), self._failure_event(user_id, agent_id, "deleted")
        await self._context.store.write(
            lifecycle.delete, user_id, agent_id, event, then=partial(self._then.deleted, key)
        )

    async def history(
        self, user_id: str, agent_id: str, *, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[AgentChange]:
        """Return the changes of the lifecycle state, newest first; `before` is the last id of the previous page.

        Pausing and resuming are included, from a state to the same state.
        """
        self._check(user_id, agent_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        found = await self._context.store.read(lifecycle.history, user_id, agent_id, limit, last)
        if before is None and await self._record_idle(user_id, agent_id, found):
            found = await self._context.store.read(lifecycle.history, user_id, agent_id, limit, last)
        return found

    # --- reports ----------------------------------------------------------------------------------

    async def inspect(self, user_id: str, agent_id: str) -> Inspection:
        """Return a report about one agent: health, current runs, inbox, state, timers, last changes and runs."""
        self._check(user_id, agent_id)
        stored = await self._context.store.read(inspection.inspect, user_id, agent_id, SHOWN)
        if await self._record_idle(user_id, agent_id, stored.changes):
            stored = await self._context.store.read(inspection.inspect, user_id, agent_id, SHOWN)
        return inspected(self._dispatcher, stored)

    async def find(self, user_id: str, text: str, *, limit: int = PAGE, after: str = "") -> builtins.list[Agent]:
        """Return agents with the text in their id or description; `after` is the last id of the previous page."""
        checks.name(user_id, "the user id")
        checks.name(text, "the text")
        checks.count(limit, "the limit", least=1, most=MOST)
        after = checks.place(after, "`after`")

        async def page(size: int, after: str) -> builtins.list[Agent]:
            found = await self._context.store.read(inspection.find, user_id, text, size, after)
            return [current(self._dispatcher, agent) for agent in found]

        return await fitting(page, lambda agent: _has(agent, text.casefold()), limit, after, _id)

    async def set_memory(self, user_id: str, agent_id: str, state: Mapping[str, Any]) -> None:
        """Replace `turn.state` of an agent. Running turns add their changes to it."""
        self._check(user_id, agent_id)
        if not isinstance(state, Mapping):
            raise Invalid(f"the state must be a mapping of names to values, not {type(state).__name__}")
        memory = json.dumps(checks.data(dict(state), "the state", most=self._context.limits.memory_chars))
        key = _key(user_id, agent_id)
        await self._context.quota.use(user_id, len(memory))
        await self._context.store.write(
            inspection.set_memory,
            user_id,
            agent_id,
            memory,
            then=lambda _: self._then.given_memory(key, memory),
        )

    # --- what they remember ----------------------------------------------------------------------

    async def memories(
        self, user_id: str, agent_id: str, query: str = "", *, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[Memory]:
        """Return memories of an agent: best match first, then the newest.

        Any text is a query; an empty one returns all, newest first. `before` is the last key of the previous page.
        """
        self._check(user_id, agent_id)
        wanted = memories.asked(query)
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(memories_sql.listed, user_id, agent_id, wanted, limit, before)

    async def remember(self, user_id: str, agent_id: str, text: str, *, key: str | None = None) -> Memory:
        """Store a memory under a key, or under a new one; return the key. It replaces an older text."""
        self._check(user_id, agent_id)
        limits, host = self._context.limits, self._context.host
        memories.check_text(text, limits.chars_per_memory)
        named = host.new_id("memory") if key is None else checks.name(key, "the key")
        await self._context.quota.use(user_id, len(text))
        return await self._context.store.write(
            memories_sql.remember,
            user_id,
            agent_id,
            named,
            text,
            host.clock.now(),
            limits.memories_per_agent,
        )

    async def forget(self, user_id: str, agent_id: str, key: str) -> bool:
        """Delete the memory under a key. Return False if there is none."""
        self._check(user_id, agent_id)
        checks.name(key, "the key")
        return await self._context.store.write(memories_sql.forget, user_id, agent_id, key)

    # --- inside ----------------------------------------------------------------------------------

    async def _paused(self, user_id: str, agent_id: str, paused: bool) -> Agent:
        self._check(user_id, agent_id)
        key = _key(user_id, agent_id)
        change = self._change(State.IDLE, "paused" if paused else "resumed", user_id, agent_id)
        await self._context.store.write(
            lifecycle.pause,
            user_id,
            agent_id,
            paused,
            change,
            then=lambda changed: self._then.paused(key, paused, changed),
        )
        return await self.get(user_id, agent_id)

    def _failure_event(self, user_id: str, agent_id: str, fault: str) -> Publish:
        data = {"agent": agent_id, "reason": f"it was {fault}", "fault": fault}
        return self._dispatcher.composer.event(user_id, f"agent:{_key(user_id, agent_id)}", FAILED, data, optional=True)

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

    def _check(self, user_id: str, agent_id: str) -> None:
        checks.name(user_id, "the user id")
        addresses.agent_id(agent_id)


def _id(agent: Agent) -> str:
    return agent.agent_id


def _has(agent: Agent, text: str) -> bool:
    return text in agent.agent_id.casefold() or text in agent.config.description.casefold()


def _key(user_id: str, agent_id: str) -> str:
    return f"{user_id}/{agent_id}"
