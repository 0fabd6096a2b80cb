"""Schedules: tasks of agents by time."""

from __future__ import annotations

import builtins
from datetime import datetime, timedelta
from typing import Any

from roost.core.schedules import rules
from roost.core.schedules.rules import MissedPolicy, Overlap
from roost.core.schedules.schedule import Schedule
from roost.core.talks.messages import MOST, PAGE, at
from roost.core.values import addresses, checks
from roost.core.values.priority import Priority
from roost.core.values.traits import idempotent, reads
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.stores.sql.schedules import schedules

DAY = 86_400.0


class Schedules:
    """Schedules of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher

    async def create(
        self,
        user_id: str,
        agent: str,
        prompt: str,
        *,
        cron: str | None = None,
        every: float | timedelta | None = None,
        at: datetime | None = None,
        zone: str | None = None,
        name: str | None = None,
        priority: str = "normal",
        overlap: str = "skip",
        missed: str = "once",
        catch_up: float = DAY,
    ) -> Schedule:
        """Create a schedule: by `cron` in a time zone, `every` some seconds, or once `at` a time.

        `zone` belongs to `cron`; the default is UTC. `overlap`: policy for a tick while an earlier one is not done
        (skip, queue_one, queue_all, replace). `missed`: policy for ticks during downtime (skip, once, or all of the
        last `catch_up` seconds; with `overlap="skip"`, one of them).
        """
        checks.name(user_id, "the user id")
        checks.text(prompt, "the task", most=self._context.limits.message_bytes)
        now = self._context.host.clock.now()
        rule = rules.parse(cron=cron, every=every, at=at, zone=zone, now=now)
        schedule_id = self._context.host.new_id("schedule")
        await self._context.quota.use(user_id, len(prompt))
        made: Schedule = await self._context.store.write(
            schedules.create,
            schedule_id,
            user_id,
            self._own(user_id, agent),
            checks.name(schedule_id if name is None else name, "the name"),
            prompt,
            checks.choice(priority, "the priority", Priority),
            rules.to_json(rule),
            checks.choice(overlap, "the overlap policy", Overlap),
            checks.choice(missed, "`missed`", MissedPolicy),
            checks.seconds(catch_up, "`catch_up`"),
            now,
            self._context.limits.schedules_per_agent,
        )
        self._ring(made)
        return made

    async def get(self, user_id: str, schedule_id: str) -> Schedule:
        self._check(user_id, schedule_id)
        return await self._context.store.read(schedules.get, user_id, schedule_id)

    async def list(
        self, user_id: str, *, agent: str | None = None, limit: int = PAGE, after: str = ""
    ) -> builtins.list[Schedule]:
        """Return schedules by id; `after` is the last id of the previous page."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        address = None if agent is None else self._own(user_id, agent)
        return await self._context.store.read(schedules.listed, user_id, address, limit, checks.place(after, "`after`"))

    async def change(
        self,
        user_id: str,
        schedule_id: str,
        *,
        prompt: str | None = None,
        cron: str | None = None,
        every: float | timedelta | None = None,
        at: datetime | None = None,
        zone: str | None = None,
        priority: str | None = None,
        overlap: str | None = None,
        missed: str | None = None,
        catch_up: float | None = None,
    ) -> Schedule:
        """Change a schedule; all other settings stay. A new time counts from now; a past one is due at once.

        Posted tasks stay.
        """
        values: dict[str, Any] = {}
        if prompt is not None:
            values["prompt"] = checks.text(prompt, "the task", most=self._context.limits.message_bytes)
        if cron is not None or every is not None or at is not None or zone is not None:
            known = (await self.get(user_id, schedule_id)).rule
            now = self._context.host.clock.now()
            rule = rules.changed(known, cron=cron, every=every, at=at, zone=zone, now=now)
            values["rule"] = rules.to_json(rule)
        if priority is not None:
            values["priority"] = checks.choice(priority, "the priority", Priority)
        if overlap is not None:
            values["overlap"] = checks.choice(overlap, "the overlap policy", Overlap)
        if missed is not None:
            values["missed"] = checks.choice(missed, "`missed`", MissedPolicy)
        if catch_up is not None:
            values["catch_up"] = checks.seconds(catch_up, "`catch_up`")
        return await self._changed(user_id, schedule_id, values)

    @idempotent
    async def pause(self, user_id: str, schedule_id: str) -> Schedule:
        return await self._changed(user_id, schedule_id, {"paused": 1})

    @idempotent
    async def resume(self, user_id: str, schedule_id: str) -> Schedule:
        """Resume a schedule; ticks during the pause are not made up for."""
        return await self._changed(user_id, schedule_id, {"paused": 0})

    async def delete(self, user_id: str, schedule_id: str) -> None:
        """Delete a schedule; its posted tasks stay."""
        self._check(user_id, schedule_id)
        await self._context.store.write(schedules.delete, user_id, schedule_id)

    @reads
    async def next_times(self, user_id: str, schedule_id: str, count: int = 5) -> builtins.list[datetime]:
        """Return the next `count` times; none while it is paused."""
        checks.count(count, "the count", least=1, most=100)
        found = await self.get(user_id, schedule_id)
        times: list[datetime] = []
        moment = found.next.timestamp() if found.next is not None else None
        while moment is not None and len(times) < count:
            times.append(at(moment))
            # A stored time has microseconds, and the tick itself may be a little later.
            moment = rules.next_after(found.rule, moment + 1e-5)
        return times

    async def _changed(self, user_id: str, schedule_id: str, values: dict[str, Any]) -> Schedule:
        self._check(user_id, schedule_id)
        if not values:
            return await self.get(user_id, schedule_id)
        now = self._context.host.clock.now()
        made: Schedule = await self._context.store.write(schedules.change, user_id, schedule_id, values, now)
        self._ring(made)
        return made

    def _ring(self, made: Schedule) -> None:
        if made.next is not None:
            self._dispatcher.notifier.wake_at(made.next.timestamp())

    def _own(self, user_id: str, agent: str) -> str:
        address = addresses.of_agent(agent, user_id)
        if address.user_id != user_id:
            raise addresses.unknown(address.agent_id)
        return address.key

    def _check(self, user_id: str, schedule_id: str) -> None:
        checks.name(user_id, "the user id")
        checks.name(schedule_id, "the schedule id")
