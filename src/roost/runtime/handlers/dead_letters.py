"""Dead letters: list, retry and drop work that could not be handled."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator

from roost.core.envelopes.dead_letters import DeadLetter, LetterKind
from roost.core.talks.messages import MOST, PAGE, at
from roost.core.values import addresses, checks
from roost.errors import Conflict, LimitReached, NotFound, Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.agents import AFTER_ALL_IDS
from roost.stores.sql import dead_letters


class DeadLetters:
    """Dead letters of the service. Its coroutines await only pending results, so that plain threads can drive them."""

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
        """Return dead letters, newest first; `before` is the last id of the previous page."""
        address = self._address(user_id, agent)
        checks.count(limit, "the limit", least=1, most=MOST)
        wanted = None if kind is None else checks.choice(kind, "the kind", LetterKind)
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        return await self._context.store.read(dead_letters.listed, user_id, address, wanted, limit, last)

    async def get(self, user_id: str, letter_id: str) -> DeadLetter:
        self._check(user_id, letter_id)
        return await self._context.store.read(dead_letters.get, user_id, letter_id)

    async def retry(self, user_id: str, letter_id: str) -> None:
        """Post the work again as if it were sent now. If that fails, the error is raised and the letter stays."""
        self._check(user_id, letter_id)
        self._check_open()
        now = self._context.host.clock.now()
        await self._context.store.write(dead_letters.retry, user_id, letter_id, now, then=self._dispatcher.posted)

    async def retry_all(self, user_id: str, *, agent: str | None = None) -> int:
        """Retry all dead letters, oldest first; return the number posted. The others stay."""
        self._check_open()
        now = self._context.host.clock.now()
        count = 0
        async for page in self._pages(user_id, agent, now):
            under_way = [
                self._context.store.write(dead_letters.retry, user_id, name, now, then=self._dispatcher.posted)
                for name in page
            ]
            for write in under_way:
                try:
                    await write
                    count += 1
                except (NotFound, Conflict, LimitReached):
                    continue  # the letter stays
        return count

    async def drop(self, user_id: str, letter_id: str) -> None:
        self._check(user_id, letter_id)
        await self._context.store.write(dead_letters.drop, user_id, letter_id)

    async def drop_all(self, user_id: str, *, agent: str | None = None) -> int:
        """Drop all dead letters; return their number."""
        count = 0
        async for page in self._pages(user_id, agent, self._context.host.clock.now()):
            under_way = [self._context.store.write(dead_letters.drop, user_id, name) for name in page]
            for write in under_way:
                try:
                    await write
                    count += 1
                except NotFound:
                    continue  # another caller has dropped it
        return count

    # --- inside ----------------------------------------------------------------------------------

    async def _pages(self, user_id: str, agent: str | None, until: float) -> AsyncIterator[builtins.list[str]]:
        """Yield the ids of the present letters; letters that result from retries are not included."""
        address, after = self._address(user_id, agent), ""
        until = at(until).timestamp()  # the precision of stored times
        while page := await self._context.store.read(dead_letters.letter_ids, user_id, address, until, PAGE, after):
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
