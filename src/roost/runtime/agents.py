"""Agents: everything the service's face says about them, on the store and on those that are awake."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from roost.core import addresses, checks, wake
from roost.core.agents import Agent, AgentChange, AgentConfig, State, configured
from roost.core.envelopes import Change
from roost.core.messages import MOST, PAGE
from roost.runtime.hall import Hall
from roost.runtime.shop import Shop

LAST = "\x7f"
"""After every id there is."""


class Agents:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        self._ops = shop.statements.agents

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
        for agent_id in agent_ids:
            addresses.agent_id(agent_id)
        after = State.IDLE if start else State.STOPPED
        change = self._change(after, "created", user_id)
        await self._shop.store.write(
            self._ops.create, user_id, tuple(agent_ids), made, change, self._shop.limits.agents_per_user, key=user_id
        )

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
        found = await self._shop.store.read(self._ops.listed, user_id, limit, after, wanted)
        return [self._live(agent) for agent in found]

    async def configure(self, user_id: str, agent_id: str, **config: Any) -> Agent:
        """Change settings; those not named stay as they are."""
        agent = await self.get(user_id, agent_id)
        made = self._configured(agent.config, config)
        changed: Agent = await self._shop.store.write(
            self._ops.configure, user_id, agent_id, made.to_json(), key=_key(user_id, agent_id)
        )
        awake = self._hall.awake(_key(user_id, agent_id))
        if awake is not None:
            awake.config = made
        return self._live(changed)

    async def start(self, user_id: str, agent_id: str) -> Agent:
        """Let a stopped one work again; one that is not stopped stays as it is."""
        return await self._moved(self._ops.start, user_id, agent_id, State.IDLE, "started")

    async def stop(self, user_id: str, agent_id: str) -> Agent:
        """End what it does, at once; what is in its inbox stays until it is started again."""
        return await self._moved(self._ops.stop, user_id, agent_id, State.STOPPED, "stopped")

    async def restart(self, user_id: str, agent_id: str) -> Agent:
        await self.stop(user_id, agent_id)
        return await self.start(user_id, agent_id)

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
        change = self._change(State.SLEEPING, "put to sleep", user_id)
        key = _key(user_id, agent_id)
        await self._shop.store.write(
            self._ops.sleep, user_id, agent_id, wake.to_json(condition), change, key=key,
            then=lambda _: self._rest(key),
        )  # fmt: skip
        return await self.get(user_id, agent_id)

    async def wake(self, user_id: str, agent_id: str, reason: str = "asked for") -> Agent:
        """Wake it, whatever it waits for; one that does not sleep stays as it is."""
        checks.name(reason, "the reason")
        return await self._moved(self._ops.rouse, user_id, agent_id, State.IDLE, reason)

    async def delete(self, user_id: str, agent_id: str) -> None:
        """With everything that belongs to it."""
        self._check(user_id, agent_id)
        key = _key(user_id, agent_id)
        await self._shop.store.write(
            self._ops.delete, user_id, agent_id, key=key, then=lambda talks: self._deleted(key, talks)
        )

    async def history(
        self, user_id: str, agent_id: str, *, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[AgentChange]:  # fmt: skip
        """The changes of its state, newest first."""
        self._check(user_id, agent_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        found = await self._shop.store.read(self._ops.history, user_id, agent_id, limit, before or LAST)
        return [change for _, change in found]

    # --- inside ----------------------------------------------------------------------------------

    async def _moved(self, op: Any, user_id: str, agent_id: str, after: State, cause: str) -> Agent:
        self._check(user_id, agent_id)
        key, change = _key(user_id, agent_id), self._change(after, cause, user_id)
        await self._shop.store.write(
            op, user_id, agent_id, change, key=key, then=lambda _: self._look_again(key, after)
        )  # fmt: skip
        return await self.get(user_id, agent_id)

    async def _paused(self, user_id: str, agent_id: str, paused: bool) -> Agent:
        self._check(user_id, agent_id)
        key = _key(user_id, agent_id)
        await self._shop.store.write(
            self._ops.pause, user_id, agent_id, paused, key=key,
            then=lambda _: self._rest(key) if paused else self._hall.look(key),
        )  # fmt: skip
        return await self.get(user_id, agent_id)

    def _look_again(self, key: str, after: State) -> None:
        if after is State.STOPPED:
            self._hall.dismiss(key)
        else:
            self._hall.look(key)

    def _rest(self, key: str) -> None:
        """It shall begin nothing new; when all it does has ended, it is looked at again."""
        awake = self._hall.awake(key)
        if awake is not None:
            awake.call(awake.finish)
        else:
            self._hall.look(key)

    def _deleted(self, key: str, talks: Sequence[str]) -> None:
        self._hall.dismiss(key)
        for talk_id in talks:
            self._shop.talks.forget(talk_id)

    def _live(self, agent: Agent) -> Agent:
        """As it is now, of one that is awake."""
        awake = self._hall.awake(_key(agent.user_id, agent.agent_id))
        if awake is None:
            return agent
        running = tuple(envelope.envelope_id for envelope in awake.running)
        state = awake.state if running and agent.state is not State.STOPPED else agent.state
        return replace(agent, state=state, current_tasks=running)

    def _configured(self, before: AgentConfig, changes: Mapping[str, Any]) -> AgentConfig:
        made = configured(before, changes)
        if made.profile:
            self._shop.brains.profile(made.profile)
        return made

    def _change(self, after: State, cause: str, user_id: str) -> Change:
        host = self._shop.host
        return Change(host.new_id("change"), host.clock.now(), None, after, cause, f"user:{user_id}")

    def _check(self, user_id: str, agent_id: str) -> None:
        checks.name(user_id, "the user id")
        addresses.agent_id(agent_id)


def _key(user_id: str, agent_id: str) -> str:
    return f"{user_id}/{agent_id}"
