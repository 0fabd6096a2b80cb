"""Events: publish, and query the history."""

from __future__ import annotations

import json
from datetime import datetime
from functools import partial
from typing import Any

from roost.core.envelopes.events import Event
from roost.core.envelopes.sender import SenderContext
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import checks, patterns
from roost.core.values.times import timestamp
from roost.core.values.traits import NewId, reads
from roost.errors import Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.filtering import AFTER_ALL_IDS
from roost.stores.sql import events
from roost.stores.sql.sending import effects


class Events:
    """Events of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher

    async def publish(
        self, user_id: str, name: str, data: Any = None, *, priority: str = "normal", optional: bool = False
    ) -> NewId:
        """Publish an event to the user's agents that subscribe to it or sleep until it; return its id.

        An urgent event wakes its subscribers. Without a subscriber it becomes a dead letter, unless it is `optional`.
        """
        checks.name(user_id, "the user id")
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: publish the event again after its restart")
        self._context.ram.check()
        effect = self._dispatcher.composer.event(
            SenderContext.of_user(user_id), name, data, priority=priority, optional=checks.flag(optional, "`optional`")
        )
        await self._context.quota.use(user_id, len(json.dumps(effect.data)))
        await self._context.store.write(
            effects.post,
            effect,
            facts=partial(self._context.facts.sent, f"{user_id}/", (effect,)),
            then=partial(self._dispatcher.sent, f"{user_id}/", effect),
        )
        return effect.event_id

    @reads
    async def history(
        self,
        user_id: str,
        *,
        name: str | None = None,
        since: datetime | float | None = None,
        until: datetime | float | None = None,
        limit: int = PAGE,
        before: str | None = None,
    ) -> list[Event]:
        """Return published events, newest first, from `since` on and before `until`; `name` may be a pattern.

        `before` is the last id of the previous page.
        """
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        pattern = None if name is None else patterns.check_pattern(name)
        times = [None if time is None else timestamp(time, "the time") for time in (since, until)]
        found: list[Event] = []
        size = limit if pattern is None else max(limit, PAGE)  # the query of the store is broader than the pattern
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        while True:
            page = await self._context.store.read(events.listed, user_id, pattern, *times, size, last)
            found += [event for event in page if pattern is None or patterns.matches(pattern, event.name)]
            if len(found) >= limit or len(page) < size:
                return found[:limit]
            last = page[-1].event_id
