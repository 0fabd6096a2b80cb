"""Dead letters: list, retry and drop work that could not be handled."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator

from roost.core.envelopes.dead_letters import DeadLetter, LetterKind
from roost.core.envelopes.envelope import Envelope
from roost.core.talks.messages import MOST, PAGE, at
from roost.core.values import addresses, checks
from roost.core.values.traits import Count
from roost.errors import Conflict, LimitReached, NotFound, Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.filtering import AFTER_ALL_IDS
from roost.runtime.webhooks.outbox import WebhookOutbox
from roost.stores.sql import dead_letters
from roost.stores.sql.dead_letters import LetterFilter


class DeadLetters:
    """Dead letters of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher, outbox: WebhookOutbox) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._outbox = outbox

    async def list(
        self,
        user_id: str,
        *,
        agent: str | None = None,
        kind: str | None = None,
        fault: str | None = None,
        limit: int = PAGE,
        before: str | None = None,
    ) -> builtins.list[DeadLetter]:
        """Return dead letters, newest first: all, or those of an agent, with this kind, with this fault.

        `before` is the last id of the previous page.
        """
        wanted = self._filter(user_id, agent, kind, fault)
        checks.count(limit, "the limit", least=1, most=MOST)
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        return await self._context.store.read(dead_letters.listed, user_id, wanted, limit, last)

    async def get(self, user_id: str, letter_id: str) -> DeadLetter:
        self._check(user_id, letter_id)
        return await self._context.store.read(dead_letters.get, user_id, letter_id)

    async def retry(self, user_id: str, letter_id: str) -> None:
        """Post the work again as if it were sent now. If that fails, the error is raised and the letter stays."""
        self._check(user_id, letter_id)
        self._check_open()
        now = self._context.host.clock.now()
        await self._context.store.write(dead_letters.retry, user_id, letter_id, now, then=self._posted)

    async def retry_all(
        self, user_id: str, *, agent: str | None = None, kind: str | None = None, fault: str | None = None
    ) -> Count:
        """Retry all dead letters, or those that `list` would return, oldest first; return the number posted.

        The others stay.
        """
        wanted = self._filter(user_id, agent, kind, fault)
        self._check_open()
        now = self._context.host.clock.now()
        count = 0
        async for page in self._pages(user_id, wanted, now):
            under_way = [
                self._context.store.write(dead_letters.retry, user_id, name, now, then=self._posted) for name in page
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

    async def drop_all(
        self, user_id: str, *, agent: str | None = None, kind: str | None = None, fault: str | None = None
    ) -> Count:
        """Drop all dead letters, or those that `list` would return; return their number."""
        wanted = self._filter(user_id, agent, kind, fault)
        count = 0
        async for page in self._pages(user_id, wanted, self._context.host.clock.now()):
            under_way = [self._context.store.write(dead_letters.drop, user_id, name) for name in page]
            for write in under_way:
                try:
                    await write
                    count += 1
                except NotFound:
                    continue  # another caller has dropped it
        return count

    def _posted(self, envelopes: tuple[Envelope, ...]) -> None:
        if envelopes:
            self._dispatcher.posted(envelopes)
        else:  # a fact for a webhook
            self._outbox.look()

    # --- inside ----------------------------------------------------------------------------------

    async def _pages(self, user_id: str, wanted: LetterFilter, until: float) -> AsyncIterator[builtins.list[str]]:
        """Yield the ids of the present letters; letters that result from retries are not included."""
        after = ""
        until = at(until).timestamp()  # the precision of stored times
        while page := await self._context.store.read(dead_letters.letter_ids, user_id, wanted, until, PAGE, after):
            yield page
            after = page[-1]

    def _filter(self, user_id: str, agent: str | None, kind: str | None, fault: str | None) -> LetterFilter:
        checks.name(user_id, "the user id")
        return LetterFilter(
            None if agent is None else addresses.of_agent(agent, user_id).key,
            None if kind is None else checks.choice(kind, "the kind", LetterKind),
            None if fault is None else checks.name(fault, "the fault"),
        )

    def _check(self, user_id: str, letter_id: str) -> None:
        checks.name(user_id, "the user id")
        checks.name(letter_id, "the id of the dead letter")

    def _check_open(self) -> None:
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: retry after its restart")
