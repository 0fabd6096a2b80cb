"""Tasks: sent to agents, waited for, cancelled."""

from __future__ import annotations

import builtins
from dataclasses import replace
from functools import partial

from roost.core.envelopes.tasks import OVER, Task, TaskStatus
from roost.core.monitoring.facts import Name
from roost.core.talks.messages import MOST, PAGE, at
from roost.core.values import addresses, checks
from roost.errors import LimitReached, Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.agents import LAST
from roost.runtime.handlers.filtering import fitting
from roost.stores.sql import tasks
from roost.stores.sql.sending import effects

SLOW_LOOK = 5.0


class Tasks:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher

    async def send(
        self,
        user_id: str,
        to: str,
        prompt: str,
        *,
        priority: str = "normal",
        key: str | None = None,
        expires_in: float | None = None,
        max_attempts: int | None = None,
    ) -> str:
        """Give an agent something to do; the task's id. With the same `key` again it is the same task."""
        checks.name(user_id, "the user id")
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: send the task again after its restart")
        self._context.memory.check()
        to_agent = addresses.of_agent(to, user_id)
        address = to_agent.key
        try:
            effect = await self._dispatcher.composer.task(
                user_id,
                f"user:{user_id}",
                to_agent.text,
                prompt,
                priority=priority,
                key=key,
                expires_in=expires_in,
                max_attempts=max_attempts,
            )
        except LimitReached:
            there = key and await self._context.store.read(tasks.by_key, user_id, key, address, prompt)
            if there:
                return there
            raise
        await self._context.quota.use(user_id, len(prompt))
        posted = await self._context.store.write(
            effects.post, effect, then=partial(self._dispatcher.sent, address, effect)
        )
        if posted or key is None:
            return effect.envelope.envelope_id
        there = await self._context.store.read(tasks.by_key, user_id, key, address, prompt)
        return there or effect.envelope.envelope_id

    async def get(self, user_id: str, task_id: str) -> Task:
        self._check(user_id, task_id)
        return self._live(await self._context.store.read(tasks.get, user_id, task_id))

    async def list(
        self,
        user_id: str,
        *,
        agent: str | None = None,
        status: str | None = None,
        limit: int = PAGE,
        before: str | None = None,
    ) -> builtins.list[Task]:
        """Newest first; `before` is the id of the last one of the page before."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        address = None if agent is None else addresses.of_agent(agent, user_id).key
        wanted = None if status is None else checks.choice(status, "the status", TaskStatus)
        last = checks.place(before, "`before`") or LAST
        kept = wanted if wanted is None or wanted in OVER else TaskStatus.QUEUED

        async def page(size: int, before: str) -> builtins.list[Task]:
            found = await self._context.store.read(tasks.listed, user_id, address, kept, size, before)
            return [self._live(task) for task in found]

        return await fitting(page, lambda task: wanted in (None, task.status), limit, last, lambda task: task.task_id)

    async def cancel(self, user_id: str, task_id: str) -> Task:
        """End it wherever it stands; one that is over stays as it is."""
        self._check(user_id, task_id)
        now = self._context.host.clock.now()
        return await self._context.store.write(tasks.cancel, user_id, task_id, now, then=partial(self._cancelled, now))

    async def wait(self, user_id: str, task_id: str, timeout: float | None = None) -> Task:  # noqa: ASYNC109
        """Wait until it is over, or until the timeout; return the task as it is then."""
        self._check(user_id, task_id)
        if timeout is not None:
            checks.seconds(timeout, "the timeout")
        clock, ends = self._context.host.clock, self._dispatcher.task_waiters
        latest = None if timeout is None else clock.monotonic() + timeout
        while True:
            bell = ends.listen(task_id)  # listen first, then look, then wait
            try:
                known = not self._dispatcher.closing and ends.is_under_way(f"user:{user_id}", task_id)
                task = None if known else await self.get(user_id, task_id)
                left = SLOW_LOOK if latest is None else min(SLOW_LOOK, latest - clock.monotonic())
                if task is not None and (task.is_over or left <= 0 or self._dispatcher.closing):
                    return task
                if await bell.within(left) and (ended := await bell) is not None:
                    return ended
                ends.forget(task_id)
            finally:
                ends.unlisten(task_id, bell)

    def _cancelled(self, now: float, task: Task) -> None:
        address = f"{task.user_id}/{task.agent_id}"
        if task.status is TaskStatus.CANCELLED and task.ended == at(now):  # and not before
            self._context.monitor.record(Name.TASK_CANCELLED, address, {"task_id": task.task_id}, root=task.task_id)
        self._dispatcher.notifier.cancel_task(address, task.task_id)
        self._dispatcher.notifier.changed(task.task_id)

    def _live(self, task: Task) -> Task:
        """As it is now: that it has begun is not written while it runs."""
        awake = self._dispatcher.awake(f"{task.user_id}/{task.agent_id}")
        if not task.is_over and awake is not None:
            for work in awake.works:
                if work.envelope.envelope_id == task.task_id:
                    status = TaskStatus.WAITING if work.is_parked else TaskStatus.RUNNING
                    return replace(task, status=status, attempts=work.envelope.attempts)
        return task

    def _check(self, user_id: str, task_id: str) -> None:
        checks.name(user_id, "the user id")
        checks.name(task_id, "the task id")
