"""Tasks of agents: send, wait, cancel."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from roost.core.envelopes.sender import SenderContext
from roost.core.envelopes.tasks import OVER, Task, TaskStatus
from roost.core.monitoring.facts import FactRow, Name
from roost.core.talks.messages import MOST, PAGE, at
from roost.core.values import addresses, checks
from roost.core.values.traits import NewId, idempotent, reads
from roost.errors import LimitReached, Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.filtering import AFTER_ALL_IDS, fitting
from roost.stores.sql import tasks
from roost.stores.sql.sending import effects

SLOW_LOOK = 5.0


class Tasks:
    """Tasks of the service. Its coroutines await only pending results, so that plain threads can drive them."""

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
    ) -> NewId:
        """Send a task to an agent; return its id. A repeated call with the same `key` returns the same task."""
        checks.name(user_id, "the user id")
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: send the task again after its restart")
        self._context.ram.check()
        to_agent = addresses.of_agent(to, user_id)
        address = to_agent.key
        try:
            effect = await self._dispatcher.composer.task(
                SenderContext.of_user(user_id),
                to_agent.text,
                prompt,
                priority=priority,
                key=key,
                expires_in=expires_in,
                max_attempts=max_attempts,
            )
        except LimitReached:
            known_id = key and await self._context.store.read(tasks.by_key, user_id, key, address, prompt)
            if known_id:
                return known_id
            raise
        await self._context.quota.use(user_id, len(prompt))
        posted = await self._context.store.write(
            effects.post,
            effect,
            facts=partial(self._context.facts.sent, address, (effect,)),
            then=partial(self._dispatcher.sent, address, effect),
        )
        if posted or key is None:
            return effect.envelope.envelope_id
        known_id = await self._context.store.read(tasks.by_key, user_id, key, address, prompt)
        return known_id or effect.envelope.envelope_id

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
        """Return tasks, newest first; `before` is the last id of the previous page."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        address = None if agent is None else addresses.of_agent(agent, user_id).key
        wanted = None if status is None else checks.choice(status, "the status", TaskStatus)
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        kept = wanted if wanted is None or wanted in OVER else TaskStatus.QUEUED

        async def page(size: int, before: str) -> builtins.list[Task]:
            found = await self._context.store.read(tasks.listed, user_id, address, kept, size, before)
            return [self._live(task) for task in found]

        return await fitting(page, lambda task: wanted in (None, task.status), limit, last, lambda task: task.task_id)

    @idempotent
    async def cancel(self, user_id: str, task_id: str) -> Task:
        """Cancel a task in any state; has no effect on a finished task."""
        self._check(user_id, task_id)
        now = self._context.host.clock.now()
        facts = partial(self._cancel_facts, now)
        return await self._context.store.write(tasks.cancel, user_id, task_id, now, facts=facts, then=self._cancelled)

    @reads
    async def wait(self, user_id: str, task_id: str, timeout: float | None = None) -> Task:  # noqa: ASYNC109
        """Wait until the task has ended, or until the timeout; return it."""
        self._check(user_id, task_id)
        if timeout is not None:
            checks.seconds(timeout, "the timeout")
        clock, ends = self._context.host.clock, self._dispatcher.task_waiters
        latest = None if timeout is None else clock.monotonic() + timeout
        while True:
            waiter = ends.listen(task_id)  # listen first, then check, then wait
            self._dispatcher.notifier.awaits(task_id)
            try:
                known = not self._dispatcher.closing and ends.is_under_way(f"user:{user_id}", task_id)
                task = None if known else await self.get(user_id, task_id)
                poll = self._context.poll_interval(SLOW_LOOK)
                left = poll if latest is None else min(poll, latest - clock.monotonic())
                if task is not None and (task.is_over or left <= 0 or self._dispatcher.closing):
                    return task
                if await waiter.within(left) and (ended := await waiter) is not None:
                    return ended
                ends.forget(task_id)
            finally:
                ends.unlisten(task_id, waiter)

    def _cancel_facts(self, now: float, task: Task) -> Sequence[FactRow]:
        if task.status is not TaskStatus.CANCELLED or task.ended != at(now):  # or it was cancelled before
            return []
        address, data = f"{task.user_id}/{task.agent_id}", {"task_id": task.task_id}
        return [self._context.facts.fact(Name.TASK_CANCELLED, address, data, root=task.task_id)]

    def _cancelled(self, task: Task) -> None:
        address = f"{task.user_id}/{task.agent_id}"
        self._dispatcher.notifier.cancel_task(address, task.task_id)
        self._dispatcher.notifier.changed(task.task_id)

    def _live(self, task: Task) -> Task:
        """Return the task with its present status: the start of a task is not stored."""
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
