"""Agents: everything the service's face says about them, on the store and on those that are awake."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from roost.core.monitoring.health import CurrentRun, Inspection
from roost.core.talks.messages import MOST, PAGE, at
from roost.core.values import addresses, checks
from roost.errors import Invalid, LimitReached, RoostError, Unavailable
from roost.ports import Tx
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.agent_changes import AgentChanges
from roost.runtime.handlers.agent_health import health_of
from roost.runtime.handlers.filtering import fitting
from roost.stores.sql.agents import agents, inspection
from roost.stores.sql.brain_data import memories as memories_sql
from roost.stores.sql.sending import effects

LAST = "\x7f"
"""After every id there is."""
AT_ONCE = 100_000
"""Number of agents one call makes at most."""
PIECE = 2_000
"""How many are made in one write: others wait for it some hundredths of a second."""
SHOWN = 20
"""Number of changes and runs are shown of an agent that is looked at."""


class Agents:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._then = AgentChanges(context, dispatcher)

    async def create(self, user_id: str, agent_id: str, *, start: bool = True, **config: Any) -> Agent:
        """Make an agent, which lives until it is deleted. Settings: see AgentConfig."""
        await self.create_many(user_id, [agent_id], start=start, **config)
        return await self.get(user_id, agent_id)

    async def create_many(self, user_id: str, agent_ids: Sequence[str], *, start: bool = True, **config: Any) -> None:
        """Make agents with the same settings: all of them or none.

        More than 2,000 are written in pieces, so that others can write in between. They are checked before; what comes
        in the way later, such as a full disk, leaves those that were made, and the error says how many.
        """
        checks.name(user_id, "the user id")
        made = self._configured(AgentConfig(), config)
        ids = addresses.agent_ids(agent_ids)
        if len(ids) > AT_ONCE:
            raise LimitReached(f"{AT_ONCE:,} agents can be made by one call, not {len(ids):,}: call it several times")
        after = State.IDLE if checks.flag(start, "`start`") else State.STOPPED
        most = self._context.limits.agents_per_user
        if len(ids) > PIECE:
            await self._context.store.read(agents.check_new, user_id, ids, most)
        await self._context.quota.use(user_id, len(ids) * len(made.to_json()))
        for done in range(0, len(ids), PIECE):
            piece, change = ids[done : done + PIECE], self._change(after, "created", user_id)
            try:
                await self._context.store.write(
                    agents.create, user_id, piece, made, change, most, then=partial(self._coroutines, user_id, piece)
                )
            except RoostError as error:
                if not done:
                    raise
                raise type(error)(f"{error} ({done:,} of {len(ids):,} agents were made before)") from error

    def _coroutines(self, user_id: str, ids: Sequence[str], _: None) -> None:
        self._then.made(user_id, ids)

    async def get(self, user_id: str, agent_id: str) -> Agent:
        self._check(user_id, agent_id)
        return self._live(await self._context.store.read(agents.get, user_id, agent_id))

    async def list(
        self, user_id: str, *, limit: int = PAGE, after: str = "", state: str | None = None
    ) -> builtins.list[Agent]:
        """By id; `after` is the id of the last one of the page before."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        wanted = None if state is None else checks.choice(state, "the state", State)
        after = checks.place(after, "`after`")
        kept = wanted if wanted in (State.SLEEPING, State.STOPPED) else None  # what others do, the store does not know

        async def page(size: int, after: str) -> builtins.list[Agent]:
            found = await self._context.store.read(agents.listed, user_id, size, after, kept)
            return [self._live(agent) for agent in found]

        return await fitting(page, lambda agent: wanted in (None, agent.state), limit, after, _id)

    async def configure(self, user_id: str, agent_id: str, **config: Any) -> Agent:
        """Change settings; those not named stay as they are."""
        self._check(user_id, agent_id)
        self._configured(AgentConfig(), config)  # what is refused is refused before anybody waits for it

        def configure(tx: Tx) -> Agent:
            """Read and written at once: of two who change different settings, neither undoes the other's."""
            made = self._configured(agents.get(tx, user_id, agent_id).config, config)
            return agents.configure(tx, user_id, agent_id, made, self._context.host.clock.now())

        changed: Agent = await self._context.store.write(configure, then=self._then.configured)
        return self._live(changed)

    async def start(self, user_id: str, agent_id: str) -> Agent:
        """Let a stopped one work again; one that is not stopped stays as it is."""
        self._check(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.IDLE, "started", user_id)
        await self._context.store.write(agents.start, user_id, agent_id, change, then=partial(self._then.started, key))
        return await self.get(user_id, agent_id)

    async def stop(self, user_id: str, agent_id: str) -> Agent:
        """End what it does, at once; what is in its inbox stays until it is started again."""
        self._check(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.STOPPED, "stopped", user_id, agent_id)
        news = self._news(user_id, agent_id, "stopped")
        await self._context.store.write(
            agents.stop, user_id, agent_id, change, news, then=partial(self._then.stopped, key)
        )
        return await self.get(user_id, agent_id)

    async def restart(self, user_id: str, agent_id: str) -> Agent:
        """Stop it and start it again in one step; callers that wait for its answers keep waiting."""
        self._check(user_id, agent_id)
        key, stopped = _key(user_id, agent_id), self._change(State.STOPPED, "stopped", user_id, agent_id)
        started = self._change(State.IDLE, "started", user_id)
        await self._context.store.write(
            agents.restart, user_id, agent_id, stopped, started, then=partial(self._then.restarted, key)
        )
        return await self.get(user_id, agent_id)

    async def pause(self, user_id: str, agent_id: str) -> Agent:
        """Pause it: it begins nothing new, and running turns continue."""
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
        """Have it sleep when what it does has ended: for so long, until then, or until what is waited for."""
        agent = await self.get(user_id, agent_id)
        default = wake.mail(agent.config.wake_on_priority)
        condition = wake.wanted(self._context.host.clock.now(), seconds, until, wake_on, default)
        change = self._change(State.SLEEPING, "put to sleep", user_id, agent_id)
        key = _key(user_id, agent_id)
        await self._context.store.write(
            agents.sleep,
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
        """Wake it from any sleep; one that does not sleep stays as it is."""
        checks.name(reason, "the reason")
        self._check(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.IDLE, reason, user_id)
        await self._context.store.write(
            agents.wake_now, user_id, agent_id, change, then=partial(self._then.woken, key, reason)
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

        In `ids` a `*` stands for any characters. For each whose inbox is full there is a dead letter instead.
        """
        checks.name(user_id, "the user id")
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: broadcast it again after its restart")
        self._context.memory.check()
        audience_ = audience(group, profile, ids, state)
        effect = await self._dispatcher.composer.broadcast(
            user_id, f"user:{user_id}", text, audience_, priority=priority
        )
        posted = await self._context.store.write(
            effects.post, effect, then=partial(self._dispatcher.sent, f"{user_id}/", effect)
        )
        return len(posted)

    async def delete(self, user_id: str, agent_id: str) -> None:
        """Delete it with everything that belongs to it; participants of its meetings are notified."""
        self._check(user_id, agent_id)
        key, news = _key(user_id, agent_id), self._news(user_id, agent_id, "deleted")
        await self._context.store.write(agents.delete, user_id, agent_id, news, then=partial(self._then.deleted, key))

    async def history(
        self, user_id: str, agent_id: str, *, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[AgentChange]:
        """Return the changes of its state, newest first; `before` is the id of the last one of the page before.

        That it was paused or resumed is among them, from its state to the same.
        """
        self._check(user_id, agent_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        last = checks.place(before, "`before`") or LAST
        found = await self._context.store.read(agents.history, user_id, agent_id, limit, last)
        if before is None and await self._came_to_rest(user_id, agent_id, found):
            found = await self._context.store.read(agents.history, user_id, agent_id, limit, last)
        return found

    # --- looking at them -------------------------------------------------------------------------

    async def inspect(self, user_id: str, agent_id: str) -> Inspection:
        """Everything about one agent: how it is, what it does, what waits, what it remembers, what it did last."""
        self._check(user_id, agent_id)
        look = inspection.seen
        seen = await self._context.store.read(look, user_id, agent_id, SHOWN)
        if await self._came_to_rest(user_id, agent_id, seen.changes):
            seen = await self._context.store.read(look, user_id, agent_id, SHOWN)
        agent, awake = self._live(seen.agent), self._dispatcher.awake(_key(user_id, agent_id))
        waiting, memory = dict(seen.lanes), seen.memory
        running: builtins.list[CurrentRun] = []
        if awake is not None:
            memory = awake.memory.text
            for work in awake.works:
                e = work.envelope
                running.append(CurrentRun(work.run_id, e.envelope_id, e.kind, at(work.started)))
                waiting[e.lane] = waiting.get(e.lane, 0) - 1
        return Inspection(
            agent,
            health_of(self._dispatcher, agent),
            tuple(running),
            {lane: depth for lane, depth in waiting.items() if depth > 0},
            json.loads(memory or "{}"),
            seen.memories,
            seen.timers,
            seen.changes,
            seen.runs,
            seen.meetings,
        )

    async def find(self, user_id: str, text: str, *, limit: int = PAGE, after: str = "") -> builtins.list[Agent]:
        """Return those with the text in their id or description, by id; `after` is the last id of the page before."""
        checks.name(user_id, "the user id")
        checks.name(text, "what is looked for")
        checks.count(limit, "the limit", least=1, most=MOST)
        after = checks.place(after, "`after`")

        async def page(size: int, after: str) -> builtins.list[Agent]:
            found = await self._context.store.read(inspection.find, user_id, text, size, after)
            return [self._live(agent) for agent in found]

        return await fitting(page, lambda agent: _has(agent, text.casefold()), limit, after, _id)

    async def set_memory(self, user_id: str, agent_id: str, state: Mapping[str, Any]) -> None:
        """Have it remember this and nothing else. Turns under way add to it what they change, and no more."""
        self._check(user_id, agent_id)
        if not isinstance(state, Mapping):
            raise Invalid(f"the memory must be a mapping of names to values, not {type(state).__name__}")
        memory = json.dumps(checks.data(dict(state), "the memory", most=self._context.limits.memory_chars))
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
        """Return what it remembers beside its `turn.state`: what has the most of the query first, then the newest.

        Any text is a query; with an empty one all of it, newest first. `before` is the key of the last one of the
        page before.
        """
        self._check(user_id, agent_id)
        wanted = memories.asked(query)
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(memories_sql.listed, user_id, agent_id, wanted, limit, before)

    async def remember(self, user_id: str, agent_id: str, text: str, *, key: str | None = None) -> Memory:
        """Have it remember this, in place of what is under the key. Without a key it gets one of its own."""
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
        """Have it forget what is under the key. False: nothing is."""
        self._check(user_id, agent_id)
        checks.name(key, "the key")
        return await self._context.store.write(memories_sql.forget, user_id, agent_id, key)

    # --- inside ----------------------------------------------------------------------------------

    async def _paused(self, user_id: str, agent_id: str, paused: bool) -> Agent:
        self._check(user_id, agent_id)
        key = _key(user_id, agent_id)
        change = self._change(State.IDLE, "paused" if paused else "resumed", user_id, agent_id)
        await self._context.store.write(
            agents.pause,
            user_id,
            agent_id,
            paused,
            change,
            then=lambda changed: self._then.paused(key, paused, changed),
        )
        return await self.get(user_id, agent_id)

    def _news(self, user_id: str, agent_id: str, fault: str) -> Publish:
        data = {"agent": agent_id, "reason": f"it was {fault}", "fault": fault}
        return self._dispatcher.composer.event(user_id, f"agent:{_key(user_id, agent_id)}", FAILED, data, optional=True)

    def _live(self, agent: Agent) -> Agent:
        """As it is now, of one that is awake."""
        awake = self._dispatcher.awake(_key(agent.user_id, agent.agent_id))
        if awake is None:
            return agent
        running = tuple(work.envelope.envelope_id for work in awake.works)
        state = self._dispatcher.state_of(awake.address, agent.state)
        return replace(agent, state=state, current_tasks=running)

    def _configured(self, before: AgentConfig, changes: Mapping[str, Any]) -> AgentConfig:
        made = configured(before, changes)
        if "profile" in changes and made.profile:  # one that it has already may be known elsewhere
            self._context.brains.profile(made.profile)
        return made

    def _change(self, after: State, cause: str, user_id: str, agent_id: str = "") -> StateChange:
        """With what it has done until now, if it is awake here: that may not be on record yet."""
        host, awake = self._context.host, self._dispatcher.awake(_key(user_id, agent_id))
        earlier = awake.state_log.pending() if awake is not None else ()
        return StateChange(
            host.new_id("change"), host.clock.now(), None, after, cause, f"user:{user_id}", earlier=earlier
        )

    async def _came_to_rest(self, user_id: str, agent_id: str, changes: Sequence[AgentChange]) -> bool:
        """Return True if its history may end otherwise now: nobody works for it, as its newest entries say.

        Roost was ended before that was written, or what rested until a person has decided is over.
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
        await self._context.store.write(agents.record_idle, user_id, agent_id, change)
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
