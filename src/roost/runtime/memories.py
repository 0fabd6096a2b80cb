"""Notes: what one turn remembers and forgets, kept until it settles; and what its agent remembers with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from roost.core import checks, memories
from roost.core.memories import Memory, Remember
from roost.core.messages import MOST, at
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.hall import Hall

PAUSE = 0.002
"""Seconds between two looks whether what was remembered just before is written."""


class Notes:
    """Belong to one try of a turn: one that fails or is stopped leaves nothing behind."""

    def __init__(self, shop: Shop, hall: Hall, address: str, envelope_id: str | None) -> None:
        self._shop = shop
        self._hall = hall
        self._ops = shop.statements.memories
        self._address = address
        self._envelope_id = envelope_id
        self._notes: dict[str, Remember] = {}
        """By key, the oldest first."""
        self._known: dict[str, bool] = {}
        """Whether there was one under the key in the store."""
        self._more = 0
        """How many more there are, with these, than in the store."""

    async def remember(self, text: str, key: str | None) -> str:
        limits, host = self._shop.limits, self._shop.host
        memories.check_text(text, limits.chars_per_memory)
        named = host.new_id("memory") if key is None else checks.name(key, "the key")
        there, count = await self._look(named)
        if not there:
            memories.check_room(count, limits.memories_per_agent)
        self._note(named, text)
        return named

    async def forget(self, key: str) -> bool:
        there, _ = await self._look(checks.name(key, "the key"))
        if there:
            self._note(key, None)
        return there

    async def recall(self, query: str, limit: int) -> tuple[Memory, ...]:
        wanted = memories.asked(query)
        checks.count(limit, "the limit", least=1, most=MOST)
        stored = await self._read(self._ops.recalled, wanted, limit + len(self._notes))
        mine = [Memory(one.key, one.text, at(one.created)) for one in self._notes.values() if one.text is not None]
        found = [*reversed(mine), *(one for one in stored if one.key not in self._notes)]
        if wanted is not None:
            scores = {one.key: memories.score(one.text, wanted) for one in found}
            found = sorted((one for one in found if scores[one.key]), key=lambda one: -scores[one.key])
        return tuple(found[:limit])

    def effects(self) -> tuple[Remember, ...]:
        """What is done when the turn settles; until it has, those that come after it wait for it."""
        home = self._hall.awake(self._address)
        if home is not None and self._notes and self._envelope_id is not None:
            home.noted = home.unwritten() | {self._envelope_id}
        return tuple(self._notes.values())

    async def _read(self, op: Callable[..., Any], *args: Any) -> Any:
        """Of what the agent remembers, once all is written that its turns before this one have noted.

        The next turn of an agent may begin before the last one is written.
        """
        home = self._hall.awake(self._address)
        ended = home.unwritten() if home is not None else frozenset()
        while home is not None and (ended := ended & home.unwritten()):  # noqa: ASYNC110 — others write it
            await asyncio.sleep(PAUSE)
        return await self._shop.store.read(op, self._address, *args)

    def _note(self, key: str, text: str | None) -> None:
        before = self._notes.pop(key, None)  # what is said again is the newest
        was = self._known[key] if before is None else before.text is not None
        self._more += (text is not None) - was
        self._notes[key] = Remember(self._address, key, text, self._shop.host.clock.now())

    async def _look(self, key: str) -> tuple[bool, int]:
        """Whether there is one under the key, and how many there are, as this turn has it."""
        there, count = await self._read(self._ops.known, key)
        noted = self._notes.get(key)
        if noted is not None:
            there = noted.text is not None
        else:
            self._known[key] = there
        return there, count + self._more
