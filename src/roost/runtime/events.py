"""Events: published to whoever subscribed, and looked up again."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from roost.core import checks, patterns
from roost.core.events import Event
from roost.core.messages import MOST, PAGE
from roost.core.schedules import timestamp
from roost.errors import Unavailable
from roost.runtime.agents import LAST
from roost.runtime.hall import Hall
from roost.runtime.shop import Shop


class Events:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall

    async def publish(
        self, user_id: str, name: str, data: Any = None, *, priority: str = "normal", optional: bool = False
    ) -> str:  # fmt: skip
        """Tell all agents of the user that subscribed to it, or sleep and wait for it; the event's id.

        An urgent one wakes whoever takes it. One that nobody takes is a dead letter, unless it is `optional`.
        """
        checks.name(user_id, "the user id")
        if self._hall.closing:
            raise Unavailable("this Roost is closing: publish the event again after its restart")
        self._shop.memory.check()
        effect = self._hall.office.event(
            user_id, f"user:{user_id}", name, data, priority=priority, optional=checks.flag(optional, "`optional`")
        )
        await self._shop.store.write(
            self._shop.statements.inbox.post, effect, then=partial(self._hall.sent, f"{user_id}/", effect)
        )
        return effect.event_id

    async def history(
        self, user_id: str, *, name: str | None = None, since: datetime | float | None = None,
        until: datetime | float | None = None, limit: int = PAGE, before: str | None = None,
    ) -> list[Event]:  # fmt: skip
        """What was published, newest first, from `since` on and before `until`; `name` may be a pattern.

        `before` is the id of the last one of the page before.
        """
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        pattern = None if name is None else patterns.check_pattern(name)
        times = [None if time is None else timestamp(time, "the time") for time in (since, until)]
        found: list[Event] = []
        size = limit if pattern is None else max(limit, PAGE)  # what the store takes for a match may be none
        last = checks.place(before, "`before`") or LAST
        while True:
            page = await self._shop.store.read(
                self._shop.statements.events.listed, user_id, pattern, *times, size, last
            )
            found += [event for event in page if pattern is None or patterns.matches(pattern, event.name)]
            if len(found) >= limit or len(page) < size:
                return found[:limit]
            last = page[-1].event_id
