"""Dead letters: what could not be handled, looked at, retried and dropped."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator

from roost.core.envelopes.dead_letters import DeadLetter, LetterKind
from roost.core.talks.messages import MOST, PAGE, at
from roost.core.values import addresses, checks
from roost.errors import Conflict, LimitReached, NotFound, Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.agents import LAST
from roost.stores.sql import dead_letters


class DeadLetters:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher

    async def list(
        self,
        user_id: str,
        *,
        agent: str | None = None,
        kind: str | None = None,
        limit: int = PAGE,
        before: str | None = None,
    ) -> builtins.list[DeadLetter]:
        """Newest first; `before` is the id of the last one of the page before."""
        address = self._address(user_id, agent)
        checks.count(limit, "the limit", least=1, most=MOST)
        wanted = None if kind is None else checks.choice(kind, "the kind", LetterKind)
        last = checks.place(before, "`before`") or LAST
        return await self._context.store.read(dead_letters.listed, user_id, address, wanted, limit, last)

    async def get(self, user_id: str, letter_id: str) -> DeadLetter:
        self._check(user_id, letter_id)
        return await self._context.store.read(dead_letters.get, user_id, letter_id)

    async def retry(self, user_id: str, letter_id: str) -> None:
        """Post it again, as if it were sent now. If it cannot be posted still, that is raised and it stays."""
        self._check(user_id, letter_id)
        self._check_open()
        now = self._context.host.clock.now()
        await self._context.store.write(dead_letters.retry, user_id, letter_id, now, then=self._dispatcher.posted)

    async def retry_all(self, user_id: str, *, agent: str | None = None) -> int:
        """Retry all there are, oldest first; how many could be posted. The others stay."""
        self._check_open()
        now = self._context.host.clock.now()
        count = 0
        async for page in self._pages(user_id, agent, now):
            under_way = [
                self._context.store.write(dead_letters.retry, user_id, name, now, then=self._dispatcher.posted)
                for name in page
            ]
            for one in under_way:
                try:
                    await one
                    count += 1
                except (NotFound, Conflict, LimitReached):
                    continue  # it stays where it is
        return count

    async def drop(self, user_id: str, letter_id: str) -> None:
        self._check(user_id, letter_id)
        await self._context.store.write(dead_letters.drop, user_id, letter_id)

    async def drop_all(self, user_id: str, *, agent: str | None = None) -> int:
        """Drop all there are; how many."""
        count = 0
        async for page in self._pages(user_id, agent, self._context.host.clock.now()):
            under_way = [self._context.store.write(dead_letters.drop, user_id, name) for name in page]
            for one in under_way:
                try:
                    await one
                    count += 1
                except NotFound:
                    continue  # someone else was quicker
        return count

    # --- inside ----------------------------------------------------------------------------------

    async def _pages(self, user_id: str, agent: str | None, until: float) -> AsyncIterator[builtins.list[str]]:
        """Return the ids of the letters there are now: letters that result from retrying them are not included."""
        address, after = self._address(user_id, agent), ""
        until = at(until).timestamp()  # as exact as they are kept
        while page := await self._context.store.read(dead_letters.names, user_id, address, until, PAGE, after):
            yield page
            after = page[-1]

    def _address(self, user_id: str, agent: str | None) -> str | None:
        checks.name(user_id, "the user id")
        if agent is None:
            return None
        return addresses.of_agent(agent, user_id).key

    def _check(self, user_id: str, letter_id: str) -> None:
        checks.name(user_id, "the user id")
        checks.name(letter_id, "the id of the dead letter")

    def _check_open(self) -> None:
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: retry after its restart")
