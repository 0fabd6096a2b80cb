"""Agents: everything the service's face says about them, on the store and on those that are awake."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from roost.core import addresses, checks, memories, wake
from roost.core.agents import Agent, AgentChange, AgentConfig, State, configured
from roost.core.audience import audience
from roost.core.envelopes import Change, Publish
from roost.core.events import FAILED
from roost.core.health import Inspection, Running
from roost.core.memories import Memory
from roost.core.messages import MOST, PAGE, at
from roost.errors import Invalid, Unavailable
from roost.ports import Tx
from roost.runtime.course import FOR_A_PERSON
from roost.runtime.followups import Followups
from roost.runtime.hall import Hall
from roost.runtime.paging import fitting
from roost.runtime.shop import Shop

LAST = "\x7f"
"""After every id there is."""
SHOWN = 20
"""How many changes and runs are shown of an agent that is looked at."""


class Agents:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        self._ops = shop.statements.agents
        self._then = Followups(shop, hall)
        hall.agents = self

    async def create(self, user_id: str, agent_id: str, *, start: bool = True, **config: Any) -> Agent:
        """Make an agent, which lives until it is deleted. Settings: see AgentConfig."""
        await self.create_many(user_id, [agent_id], start=start, **config)
        return await self.get(user_id, agent_id)

    async def create_many(
        self, user_id: str, agent_ids: Sequence[str], *, start: bool = True, **config: Any
    ) -> None:  # fmt: skip
        """All of them or none, with the same settings."""
        checks.name(user_id, "the user id")
        made = self._configured(AgentConfig(), config)
        ids = addresses.agent_ids(agent_ids)
        after = State.IDLE if checks.flag(start, "`start`") else State.STOPPED
        change = self._change(after, "created", user_id)
        await self._shop.store.write(
            self._ops.create, user_id, ids, made, change, self._shop.limits.agents_per_user,
            then=lambda _: self._then.made(user_id, ids),
        )  # fmt: skip

    async def get(self, user_id: str, agent_id: str) -> Agent:
        self._check(user_id, agent_id)
        return self._live(await self._shop.store.read(self._ops.get, user_id, agent_id))

    async def list(
        self, user_id: str, *, limit: int = PAGE, after: str = "", state: str | None = None
    ) -> builtins.list[Agent]:  # fmt: skip
        """By id; `after` is the id of the last one of the page before."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        wanted = None if state is None else checks.choice(state, "the state", State)
        after = checks.place(after, "`after`")
        kept = wanted if wanted in (State.SLEEPING, State.STOPPED) else None  # what others do, the store does not know

        async def page(size: int, after: str) -> builtins.list[Agent]:
            found = await self._shop.store.read(self._ops.listed, user_id, size, after, kept)
            return [self._live(agent) for agent in found]

        return await fitting(page, lambda agent: wanted in (None, agent.state), limit, after, _id)

    async def configure(self, user_id: str, agent_id: str, **config: Any) -> Agent:
        """Change settings; those not named stay as they are."""
        self._check(user_id, agent_id)
        self._configured(AgentConfig(), config)  # what is refused is refused before anybody waits for it

        def configure(tx: Tx) -> Agent:
            """Read and written at once: of two who change different settings, neither undoes the other's."""
            made = self._configured(self._ops.get(tx, user_id, agent_id).config, config)
            return self._ops.configure(tx, user_id, agent_id, made, self._shop.host.clock.now())

        changed: Agent = await self._shop.store.write(configure, then=self._then.configured)
        return self._live(changed)

    async def start(self, user_id: str, agent_id: str) -> Agent:
        """Let a stopped one work again; one that is not stopped stays as it is."""
        self._check(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.IDLE, "started", user_id)
        await self._shop.store.write(
            self._ops.start, user_id, agent_id, change, then=partial(self._then.started, key)
        )  # fmt: skip
        return await self.get(user_id, agent_id)

    async def stop(self, user_id: str, agent_id: str) -> Agent:
        """End what it does, at once; what is in its inbox stays until it is started again."""
        self._check(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.STOPPED, "stopped", user_id, agent_id)
        news = self._news(user_id, agent_id, "stopped")
        await self._shop.store.write(
            self._ops.stop, user_id, agent_id, change, news, then=partial(self._then.stopped, key)
        )  # fmt: skip
        return await self.get(user_id, agent_id)

    async def restart(self, user_id: str, agent_id: str) -> Agent:
        """Stop it and start it again, at once: who waits for an answer of its goes on waiting."""
        self._check(user_id, agent_id)
        key, stopped = _key(user_id, agent_id), self._change(State.STOPPED, "stopped", user_id, agent_id)
        started = self._change(State.IDLE, "started", user_id)
        await self._shop.store.write(
            self._ops.restart, user_id, agent_id, stopped, started, then=partial(self._then.restarted, key)
        )  # fmt: skip
        return await self.get(user_id, agent_id)

    async def pause(self, user_id: str, agent_id: str) -> Agent:
        """Have it begin nothing new, for looking at it in peace; what runs goes on."""
        return await self._paused(user_id, agent_id, True)

    async def resume(self, user_id: str, agent_id: str) -> Agent:
        return await self._paused(user_id, agent_id, False)

    async def sleep(
        self, user_id: str, agent_id: str, seconds: float | None = None, *, until: datetime | float | None = None,
        wake_on: wake.Condition | None = None,
    ) -> Agent:  # fmt: skip
        """Have it sleep when what it does has ended: for so long, until then, or until what is waited for."""
        agent = await self.get(user_id, agent_id)
        default = wake.mail(agent.config.wake_on_priority)
        condition = wake.wanted(self._shop.host.clock.now(), seconds, until, wake_on, default)
        change = self._change(State.SLEEPING, "put to sleep", user_id, agent_id)
        key = _key(user_id, agent_id)
        await self._shop.store.write(
            self._ops.sleep, user_id, agent_id, wake.to_json(condition), change,
            then=lambda _: self._then.fell_asleep(key),
        )  # fmt: skip
        if (due := wake.next_time(condition)) is not None:
            self._hall.ring(due)
        return await self.get(user_id, agent_id)

    async def wake(self, user_id: str, agent_id: str, reason: str = "asked for") -> Agent:
        """Wake it, whatever it waits for; one that does not sleep stays as it is."""
        checks.name(reason, "the reason")
        self._check(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(State.IDLE, reason, user_id)
        await self._shop.store.write(
            self._ops.rouse, user_id, agent_id, change, then=partial(self._then.woken, key, reason)
        )  # fmt: skip
        return await self.get(user_id, agent_id)

    async def broadcast(
        self, user_id: str, text: str, *, group: str | None = None, profile: str | None = None, ids: str | None = None,
        state: str | None = None, priority: str = "normal",
    ) -> int:  # fmt: skip
        """Tell all of the user's agents, or those to whom all of this applies; how many it has reached.

        In `ids` a `*` stands for any characters. For each whose inbox is full there is a dead letter instead.
        """
        checks.name(user_id, "the user id")
        if self._hall.closing:
            raise Unavailable("this Roost is closing: broadcast it again after its restart")
        self._shop.memory.check()
        whom = audience(group, profile, ids, state)
        effect = await self._hall.office.broadcast(user_id, f"user:{user_id}", text, whom, priority=priority)
        posted = await self._shop.store.write(
            self._shop.statements.inbox.post, effect, then=partial(self._hall.sent, f"{user_id}/", effect)
        )
        return len(posted)

    async def delete(self, user_id: str, agent_id: str) -> None:
        """With everything that belongs to it; those with whom it is in meetings are told."""
        self._check(user_id, agent_id)
        key, news = _key(user_id, agent_id), self._news(user_id, agent_id, "deleted")
        await self._shop.store.write(self._ops.delete, user_id, agent_id, news, then=partial(self._then.deleted, key))

    async def history(
        self, user_id: str, agent_id: str, *, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[AgentChange]:  # fmt: skip
        """The changes of its state, newest first; `before` is the id of the last one of the page before.

        That it was paused or resumed is among them, from its state to the same.
        """
        self._check(user_id, agent_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        last = checks.place(before, "`before`") or LAST
        found = await self._shop.store.read(self._ops.history, user_id, agent_id, limit + 1, last)
        if before is None:
            found = _as_it_is(found, (await self.get(user_id, agent_id)).state)
        return found[:limit]

    # --- looking at them -------------------------------------------------------------------------

    async def inspect(self, user_id: str, agent_id: str) -> Inspection:
        """Everything about one agent: how it is, what it does, what waits, what it remembers, what it did last."""
        self._check(user_id, agent_id)
        seen = await self._shop.store.read(self._shop.statements.watching.seen, user_id, agent_id, SHOWN)
        agent, awake = self._live(seen.agent), self._hall.awake(_key(user_id, agent_id))
        waiting, memory = dict(seen.lanes), seen.memory
        running: builtins.list[Running] = []
        if awake is not None:
            memory = awake.memory.text
            for work in awake.works:
                e = work.envelope
                running.append(Running(work.run_id, e.envelope_id, e.kind, at(work.started)))
                waiting[e.lane] = waiting.get(e.lane, 0) - 1
        return Inspection(
            agent, self._shop.monitor.health_of(agent), tuple(running),
            {lane: depth for lane, depth in waiting.items() if depth > 0}, json.loads(memory or "{}"),
            seen.memories, seen.timers, tuple(_as_it_is(seen.changes, agent.state)), seen.runs,
        )  # fmt: skip

    async def find(
        self, user_id: str, text: str, *, limit: int = PAGE, after: str = ""
    ) -> builtins.list[Agent]:  # fmt: skip
        """Those with the text in their id or description, by id; `after` is the last id of the page before."""
        checks.name(user_id, "the user id")
        checks.name(text, "what is looked for")
        checks.count(limit, "the limit", least=1, most=MOST)
        after = checks.place(after, "`after`")

        async def page(size: int, after: str) -> builtins.list[Agent]:
            found = await self._shop.store.read(self._shop.statements.watching.find, user_id, text, size, after)
            return [self._live(agent) for agent in found]

        return await fitting(page, lambda agent: _has(agent, text.casefold()), limit, after, _id)

    async def set_memory(self, user_id: str, agent_id: str, state: Mapping[str, Any]) -> None:
        """Have it remember this and nothing else. Turns under way add to it what they change, and no more."""
        self._check(user_id, agent_id)
        if not isinstance(state, Mapping):
            raise Invalid(f"the memory must be a mapping of names to values, not {type(state).__name__}")
        memory = json.dumps(checks.data(dict(state), "the memory", most=self._shop.limits.memory_chars))
        key = _key(user_id, agent_id)
        await self._shop.store.write(
            self._shop.statements.watching.set_memory, user_id, agent_id, memory,
            then=lambda _: self._then.given_memory(key, memory),
        )  # fmt: skip

    # --- what they remember ----------------------------------------------------------------------

    async def memories(
        self, user_id: str, agent_id: str, query: str = "", *, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[Memory]:
        """What it remembers beside its `turn.state`: what has the most of the query first, then the newest.

        Any text is a query; with an empty one all of it, newest first. `before` is the key of the last one of the
        page before.
        """
        self._check(user_id, agent_id)
        wanted = memories.asked(query)
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._shop.store.read(
            self._shop.statements.memories.listed, user_id, agent_id, wanted, limit, before
        )  # fmt: skip

    async def remember(self, user_id: str, agent_id: str, text: str, *, key: str | None = None) -> Memory:
        """Have it remember this, in place of what is under the key. Without a key it gets one of its own."""
        self._check(user_id, agent_id)
        limits, host = self._shop.limits, self._shop.host
        memories.check_text(text, limits.chars_per_memory)
        named = host.new_id("memory") if key is None else checks.name(key, "the key")
        return await self._shop.store.write(
            self._shop.statements.memories.remember, user_id, agent_id, named, text, host.clock.now(),
            limits.memories_per_agent,
        )  # fmt: skip

    async def forget(self, user_id: str, agent_id: str, key: str) -> bool:
        """Have it forget what is under the key. False: nothing is."""
        self._check(user_id, agent_id)
        checks.name(key, "the key")
        return await self._shop.store.write(self._shop.statements.memories.forget, user_id, agent_id, key)

    # --- inside ----------------------------------------------------------------------------------

    async def _paused(self, user_id: str, agent_id: str, paused: bool) -> Agent:
        self._check(user_id, agent_id)
        key = _key(user_id, agent_id)
        change = self._change(State.IDLE, "paused" if paused else "resumed", user_id, agent_id)
        await self._shop.store.write(
            self._ops.pause, user_id, agent_id, paused, change,
            then=lambda changed: self._then.paused(key, paused, changed),
        )  # fmt: skip
        return await self.get(user_id, agent_id)

    def _news(self, user_id: str, agent_id: str, fault: str) -> Publish:
        data = {"agent": agent_id, "reason": f"it was {fault}", "fault": fault}
        return self._hall.office.event(user_id, f"agent:{_key(user_id, agent_id)}", FAILED, data, optional=True)

    def _live(self, agent: Agent) -> Agent:
        """As it is now, of one that is awake."""
        awake = self._hall.awake(_key(agent.user_id, agent.agent_id))
        if awake is None:
            return agent
        running = tuple(envelope.envelope_id for envelope in awake.running)
        state = self._hall.state_of(awake.address, agent.state)
        return replace(agent, state=state, current_tasks=running)

    def _configured(self, before: AgentConfig, changes: Mapping[str, Any]) -> AgentConfig:
        made = configured(before, changes)
        if "profile" in changes and made.profile:  # one that it has already may be known elsewhere
            self._shop.brains.profile(made.profile)
        return made

    def _change(self, after: State, cause: str, user_id: str, agent_id: str = "") -> Change:
        """From the state that it is in here, if it is awake: what it does, the store does not know."""
        host, awake = self._shop.host, self._hall.awake(_key(user_id, agent_id))
        before = awake.course.state if awake is not None else None
        return Change(host.new_id("change"), host.clock.now(), before, after, cause, f"user:{user_id}")

    def _check(self, user_id: str, agent_id: str) -> None:
        checks.name(user_id, "the user id")
        addresses.agent_id(agent_id)


def _id(agent: Agent) -> str:
    return agent.agent_id


def _has(agent: Agent, text: str) -> bool:
    return text in agent.agent_id.casefold() or text in agent.config.description.casefold()


def _as_it_is(changes: Sequence[AgentChange], state: State) -> builtins.list[AgentChange]:
    """Newest first. One that rests while it waits for a person is idle on record, and waits for all others."""
    if state is not State.WAITING:
        return list(changes)
    moved = next((n for n, one in enumerate(changes) if one.before is not one.after), len(changes))
    stayed = [replace(one, before=state, after=state) if one.after is State.IDLE else one for one in changes[:moved]]
    older = list(changes[moved:])
    if older and older[0].after is State.IDLE:
        rested = older.pop(0)
        older[:0] = [] if rested.before is state else [replace(rested, after=state, cause=FOR_A_PERSON)]
    return stayed + older


def _key(user_id: str, agent_id: str) -> str:
    return f"{user_id}/{agent_id}"
