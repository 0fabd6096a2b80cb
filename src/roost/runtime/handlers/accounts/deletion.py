"""Deletion of users: everything of a person, step by step; continued after a crash."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from roost.core.accounts.deletions import Deletion
from roost.errors import NotFound, Unavailable
from roost.ports import Pending
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.accounts.actions import new_action
from roost.runtime.handlers.agents.agents import Agents
from roost.runtime.handlers.talks.talks import Talks
from roost.runtime.handlers.tasks import Tasks
from roost.runtime.handlers.webhooks.webhooks import Webhooks
from roost.stores.sql.accounts import deletion, mentions
from roost.stores.sql.accounts.deletion import DeletionOrder
from roost.stores.sql.meetings import membership
from roost.stores.sql.meetings.outcomes import Received

log = logging.getLogger("roost.accounts")

FIRST = 1.0
"""Seconds between the start and the first look for deletions that a crash has cut off."""
EVERY = 60.0
BATCH = 200
"""Rows per write."""
POLL = 0.25
"""Seconds between two looks at a deletion that is waited for."""
FILES = 8
"""Files per write: each has up to ten megabytes."""


class Deletions:
    """Deletes users. Each step is a short write that can be repeated, so others write in between."""

    def __init__(
        self,
        context: RuntimeContext,
        dispatcher: Dispatcher,
        agents: Agents,
        talks: Talks,
        tasks: Tasks,
        webhooks: Webhooks,
        *,
        supervised: bool,
    ) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._agents = agents
        self._talks = talks
        self._tasks = tasks
        self._webhooks = webhooks
        self._next = context.host.clock.monotonic() + FIRST
        self._sweeping = False
        self._lock = context.host.lock()
        self._ordered = False
        self._running: dict[str, Pending[None]] = {}
        """Deletions in progress, by user."""
        self._progress: dict[str, Deletion] = {}
        self._supervised = supervised
        self.closing = False

    @property
    def is_due(self) -> bool:
        is_time = self._ordered or self._context.host.clock.monotonic() >= self._next
        return is_time and not self._sweeping and not self.closing

    async def sweep(self) -> None:
        """Continue all deletions that have begun."""
        self._sweeping, self._ordered = True, False
        try:
            for order in await self._context.store.read(deletion.unfinished):
                await self._continue(order)
        except Unavailable as error:
            log.warning("unfinished deletions could not be read; retrying later: %s", error)
        finally:
            self._sweeping = False
            self._next = self._context.host.clock.monotonic() + EVERY

    async def _continue(self, order: DeletionOrder) -> None:
        """Continue one deletion. If it fails, the next sweep tries again; those of other users follow."""
        log.info("continuing the deletion of a user", extra={"pseudonym": order.pseudonym})
        try:
            await self.run(order)
        except Unavailable as error:
            log.warning("a user could not be deleted; retrying later: %s", error)
        except Exception:  # logged here: nobody awaits the sweep
            log.exception("a user could not be deleted; retrying later")

    async def wait(self, order: DeletionOrder, seconds: float) -> Deletion:
        """Have the supervisor delete a user, and wait for its end; return how far it is when the time is up.

        Without a supervisor, in a process that hosts nothing, it is deleted here, however long it takes.
        """
        if not self._supervised:
            return await self.run(order)
        clock, self._ordered = self._context.host.clock, True
        latest = clock.monotonic() + seconds
        while await self._context.store.read(deletion.find, order.user_id) == order:
            left = latest - clock.monotonic()
            if left <= 0 or self.closing:
                return self._progress_of(order.user_id)
            ended = self._running.get(order.user_id) or self._context.host.pending()  # it has not begun yet
            await ended.within(min(left, POLL))
        return Deletion(order.user_id, is_over=True)

    async def run(self, order: DeletionOrder) -> Deletion:
        """Delete everything of a user. A call waits for those before it, and never deletes a new user of this name."""
        while (ended := self._begun(order.user_id)) is not None:
            await ended
        try:
            await self._run(order)
        finally:
            with self._lock:
                self._progress.pop(order.user_id, None)
                ended = self._running.pop(order.user_id)
            ended.set(None)
        return Deletion(order.user_id, is_over=True)

    def _begun(self, user_id: str) -> Pending[None] | None:
        """Return the end of the call that deletes this user now. If there is none, this one begins."""
        with self._lock:
            running = self._running.get(user_id)
            if running is None:
                self._running[user_id] = self._context.host.pending()
            return running

    def _progress_of(self, user_id: str) -> Deletion:
        return self._progress.get(user_id) or Deletion(user_id)

    def _count(self, user_id: str, step: str, removed: int) -> None:
        self._progress[user_id] = Deletion(user_id, step, self._progress_of(user_id).removed + removed)

    async def _run(self, order: DeletionOrder) -> None:
        """Repeat all steps until nothing is left: a request that is still served may have added something."""
        while not self.closing and await self._context.store.read(deletion.find, order.user_id) == order:
            await self._delete_agents_and_talks(order.user_id)
            await self._leave_meetings(order)
            await self._repeat("files", deletion.remove_files, order.user_id, FILES)
            await self._repeat("records", deletion.remove_rows, order.user_id, BATCH)
            await self._rename(order)
            self._context.facts.forget_figures(order.user_id)
            by = new_action(self._context.host, order.actor, "users.delete", order.address)
            await self._context.store.write(deletion.finish, order, by, key="accounts")
        if self.closing:
            raise Unavailable("this Roost is closing: the deletion continues when it is started again")

    async def _delete_agents_and_talks(self, user_id: str) -> None:
        await self._each(
            "webhooks", deletion.webhook_ids, self._webhooks.delete, user_id
        )  # first: they need no news of the rest
        await self._each("tasks", deletion.open_tasks, self._tasks.cancel, user_id)
        await self._each("agents", deletion.agent_ids, self._agents.delete, user_id)
        await self._each("talks", deletion.talk_ids, self._talks.delete, user_id)

    async def _each(
        self,
        step: str,
        find: Callable[..., list[str]],
        act: Callable[[str, str], Awaitable[object]],
        user_id: str,
    ) -> None:
        """Act on each thing that is found, until nothing is found. Another call may have acted on it already."""
        self._count(user_id, step, 0)
        while not self.closing and (found := await self._context.store.read(find, user_id, BATCH)):
            for name in found:
                with suppress(NotFound):
                    await act(user_id, name)
                self._count(user_id, step, 1)

    async def _repeat(self, step: str, remove: Callable[..., int], user_id: str, limit: int) -> None:
        self._count(user_id, step, 0)
        count = 1
        while count and not self.closing:
            count = await self._context.store.write(remove, user_id, limit)
            self._count(user_id, step, count)

    async def _leave_meetings(self, order: DeletionOrder) -> None:
        """Leave the meetings of the person, and reduce those that others have too to minutes."""
        host, store, names = self._context.host, self._context.store, order.renaming
        me, reason = f"user:{order.user_id}", "the account was deleted"
        await store.write(membership.leave_deleted, host.new_id("post"), me, reason, host.clock.now(), then=self._left)
        while not self.closing and (shared := await store.read(mentions.shared_meetings, names, BATCH)):
            for meeting_id in shared:
                await store.write(mentions.reduce_meeting, meeting_id, names, host.clock.now())
                self._dispatcher.meeting_delivery.wake_waiters(meeting_id)

    def _left(self, received: Received) -> None:
        """Notify the other participants, on the writer's thread after the commit."""
        self._dispatcher.meeting_delivery.notify(received.changes)
        self._dispatcher.posted(received.posted)

    async def _rename(self, order: DeletionOrder) -> None:
        """Replace the name in what others keep: mail and tasks that they got, and the journals of their agents."""
        names, store = order.renaming, self._context.store
        self._count(order.user_id, "names", 0)
        for table, (keys, _) in mentions.COLUMNS.items():
            after: tuple[object, ...] = ()
            while not self.closing and (found := await store.read(mentions.find, table, names, after, BATCH)):
                await store.write(mentions.rename, table, names, found)
                after = tuple(found[-1][: len(keys)])
