"""The outbox of a turn: what it sends waits there for the turn to settle, and is posted with it, or not at all.

Of a turn that takes long it is posted before that and put on record, so that a repeated turn sends nothing twice: sends
are numbered as they are asked for, also those that fail, and those on record are not sent again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from roost.core.envelopes import Effect
from roost.core.steps import Recorded, StepKind, Try
from roost.errors import RoostError, Unavailable

if TYPE_CHECKING:
    from roost.runtime.hall import Hall
    from roost.runtime.journal import Journal
    from roost.runtime.shop import Shop
    from roost.runtime.thinking import Thinking

log = logging.getLogger("roost.outbox")

E = TypeVar("E", bound=Effect)

PROMPTLY = 0.05
"""Seconds after which something sent is posted although its turn goes on."""


class Outbox:
    """Belongs to one try of one envelope; used on its loop. Of a talk nothing leaves before the turn settles."""

    def __init__(
        self, shop: Shop, hall: Hall, thinking: Thinking, place: Try, recorded: tuple[Recorded, ...], root: str,
        seen: dict[str, list[Any]], journal: Callable[[], Journal],
    ) -> None:  # fmt: skip
        self._shop = shop
        self._hall = hall
        self._thinking = thinking
        self._place = place
        self._root = root
        self._seen = seen
        self._journal = journal
        self._there = _sent(recorded) if recorded else {}
        """What is on record of each send, by its number."""
        self._count = 0
        """How many sends there were, those on record included."""
        self._unsent: list[Effect] = []
        self._numbers: list[int] = []
        """Of those, as far as they may be posted before the turn settles."""
        self._posting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_empty(self) -> bool:
        return not self._unsent and self._posting is None

    async def send(
        self, make: Callable[[], Awaitable[E]], name: Callable[[E], str] | None = None, *,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> str:  # fmt: skip
        """Send what is made, unless it is on record; its name, either way. `before` is called first, either way.

        What is given, or why it is refused, is kept for a replay.
        """
        self._count = number = self._count + 1
        there = self._there.get(number)
        try:
            if before is not None:
                await before()
            if there is None:
                effect = await make()
                there = name(effect) if name is not None else ""
                self._put(effect, number)
        except RoostError as error:
            self._seen.setdefault("sends", []).append([number, refused_as(error)])
            raise
        if there:
            self._seen.setdefault("sends", []).append([number, there])
        return there

    def add(self, *effects: Effect) -> None:
        """These leave with the settle, and never before."""
        self._unsent += effects

    def unsent(self) -> tuple[Effect, ...]:
        """What is posted when the turn settles."""
        if self._timer is not None:
            self._timer.cancel()
        return tuple(self._unsent)

    async def finish(self) -> None:
        """Once the brain is over: what is being posted is posted before the turn settles."""
        if self._timer is not None:
            self._timer.cancel()
        if self._posting is not None:
            await self._posting

    async def leave(self) -> None:
        """Post all that was sent until now, before what comes next."""
        while self._unsent or self._posting is not None:
            if self._posting is None:
                self._post_now()
            if self._posting is None:
                return
            await asyncio.wait({self._posting})

    def _put(self, effect: Effect, number: int) -> None:
        self._unsent.append(effect)
        self._numbers.append(number)
        if self._timer is None and not self._place.is_talk:
            self._timer = asyncio.get_running_loop().call_later(PROMPTLY, self._post_now)

    def _post_now(self) -> None:
        self._timer = None
        if self._unsent and not self._thinking.over and self._posting is None:
            name = f"post {self._place.envelope_id}"
            self._posting = asyncio.get_running_loop().create_task(self._post(), name=name)

    async def _post(self) -> None:
        effects, self._unsent = tuple(self._unsent), []
        numbers, self._numbers = tuple(self._numbers), []
        step = self._journal().next_number()
        try:
            while not self._thinking.fenced and not await self._has_posted(effects, numbers, step):  # noqa: ASYNC110
                await asyncio.sleep(0.2 + 0.8 * self._shop.host.jitter())
        finally:
            self._posting = None

    async def _has_posted(self, effects: tuple[Effect, ...], numbers: tuple[int, ...], step: int) -> bool:
        """False: try again, as the same step, since it may have been done all the same."""
        place = self._place
        try:
            posted = await self._shop.store.write(
                self._shop.statements.inbox.post_now, place.envelope_id, place.holder, place.epoch, step, effects,
                numbers, self._shop.host.clock.now(), place.given, then=self._hall.posted,
            )  # fmt: skip
        except Unavailable as error:
            log.warning("what a turn sends is posted later: %s", error, extra={"agent": place.holder})
            self._hall.missed(effects)
            return False
        if posted is not None:
            self._shop.monitor.sent(place.holder, effects, posted, self._root)
        else:
            self._unsent, self._numbers = [], []  # the turn was superseded: nothing it does counts any more
        return True


def refused_as(error: RoostError) -> list[str]:
    """What is kept of it, for a replay."""
    return [type(error).__name__, str(error)]


def _sent(recorded: tuple[Recorded, ...]) -> dict[int, str]:
    results = (json.loads(one.result or "{}") for one in recorded if one.kind == StepKind.SENT)
    return {int(number): name for result in results for number, name in result.items()}
