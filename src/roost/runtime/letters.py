"""Dead letters: what could not be handled, looked at, retried and dropped."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator

from roost.core import addresses, checks
from roost.core.envelopes import DeadLetter, LetterKind
from roost.core.messages import MOST, PAGE, at
from roost.errors import Conflict, LimitReached, NotFound, Unavailable
from roost.runtime.agents import LAST
from roost.runtime.hall import Hall
from roost.runtime.shop import Shop


class DeadLetters:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        self._ops = shop.statements.letters

    async def list(
        self, user_id: str, *, agent: str | None = None, kind: str | None = None, limit: int = PAGE,
        before: str | None = None,
    ) -> builtins.list[DeadLetter]:  # fmt: skip
        """Newest first; `before` is the id of the last one of the page before."""
        address = self._address(user_id, agent)
        checks.count(limit, "the limit", least=1, most=MOST)
        wanted = None if kind is None else checks.choice(kind, "the kind", LetterKind)
        last = checks.place(before, "`before`") or LAST
        return await self._shop.store.read(self._ops.listed, user_id, address, wanted, limit, last)

    async def get(self, user_id: str, letter_id: str) -> DeadLetter:
        self._check(user_id, letter_id)
        return await self._shop.store.read(self._ops.get, user_id, letter_id)

    async def retry(self, user_id: str, letter_id: str) -> None:
        """Post it again, as if it were sent now. If it cannot be posted still, that is raised and it stays."""
        self._check(user_id, letter_id)
        self._check_open()
        now = self._shop.host.clock.now()
        await self._shop.store.write(
            self._ops.retry, user_id, letter_id, now, then=self._hall.posted
        )  # fmt: skip

    async def retry_all(self, user_id: str, *, agent: str | None = None) -> int:
        """Retry all there are, oldest first; how many could be posted. The others stay."""
        self._check_open()
        now = self._shop.host.clock.now()
        count = 0
        async for page in self._pages(user_id, agent, now):
            under_way = [
                self._shop.store.write(self._ops.retry, user_id, name, now, then=self._hall.posted) for name in page
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
        await self._shop.store.write(self._ops.drop, user_id, letter_id)

    async def drop_all(self, user_id: str, *, agent: str | None = None) -> int:
        """Drop all there are; how many."""
        count = 0
        async for page in self._pages(user_id, agent, self._shop.host.clock.now()):
            under_way = [self._shop.store.write(self._ops.drop, user_id, name) for name in page]
            for one in under_way:
                try:
                    await one
                    count += 1
                except NotFound:
                    continue  # someone else was quicker
        return count

    # --- inside ----------------------------------------------------------------------------------

    async def _pages(self, user_id: str, agent: str | None, until: float) -> AsyncIterator[builtins.list[str]]:
        """The ids of those there are until then: what comes of retrying them is not among them."""
        address, after = self._address(user_id, agent), ""
        until = at(until).timestamp()  # as exact as they are kept
        while page := await self._shop.store.read(self._ops.names, user_id, address, until, PAGE, after):
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
        if self._hall.closing:
            raise Unavailable("this Roost is closing: retry after its restart")
