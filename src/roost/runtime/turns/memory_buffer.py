"""Notes: what one turn remembers and forgets, kept until it settles; and what its agent remembers with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from roost.core.memory import memories
from roost.core.memory.memories import Memory, Remember
from roost.core.talks.messages import MOST, at
from roost.core.values import checks
from roost.runtime.context import RuntimeContext
from roost.runtime.ports.active_agents import ActiveAgents
from roost.stores.sql.brain_data import memories as memories_sql

PAUSE = 0.002
"""Seconds between two looks whether what was remembered just before is written."""


class MemoryBuffer:
    """Belong to one try of a turn: one that fails or is stopped leaves nothing behind."""

    def __init__(self, context: RuntimeContext, agents: ActiveAgents, address: str, envelope_id: str | None) -> None:
        self._context = context
        self._agents = agents
        self._address = address
        self._envelope_id = envelope_id
        self._notes: dict[str, Remember] = {}
        """By key, the oldest first."""
        self._known: dict[str, bool] = {}
        """True if there was one under the key in the store."""
        self._more = 0
        """How many more there are, with these, than in the store."""

    async def remember(self, text: str, key: str | None) -> str:
        limits, host = self._context.limits, self._context.host
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
        stored = await self._read(memories_sql.recalled, wanted, limit + len(self._notes))
        mine = [Memory(one.key, one.text, at(one.created)) for one in self._notes.values() if one.text is not None]
        found = [*reversed(mine), *(one for one in stored if one.key not in self._notes)]
        if wanted is not None:
            scores = {one.key: memories.score(one.text, wanted) for one in found}
            found = sorted((one for one in found if scores[one.key]), key=lambda one: -scores[one.key])
        return tuple(found[:limit])

    def effects(self) -> tuple[Remember, ...]:
        """Return what is done when the turn settles; until it has, those that come after it wait for it."""
        home = self._agents.awake(self._address)
        if home is not None and self._notes and self._envelope_id is not None:
            home.noted = home.unwritten() | {self._envelope_id}
        return tuple(self._notes.values())

    async def _read(self, op: Callable[..., Any], *args: Any) -> Any:
        """Of what the agent remembers, once all is written that its turns before this one have noted.

        The next turn of an agent may begin before the last one is written.
        """
        home = self._agents.awake(self._address)
        ended = home.unwritten() if home is not None else frozenset()
        while home is not None and (ended := ended & home.unwritten()):  # noqa: ASYNC110 — others write it
            await asyncio.sleep(PAUSE)
        return await self._context.store.read(op, self._address, *args)

    def _note(self, key: str, text: str | None) -> None:
        before = self._notes.pop(key, None)  # what is said again is the newest
        was = self._known[key] if before is None else before.text is not None
        self._more += (text is not None) - was
        self._notes[key] = Remember(self._address, key, text, self._context.host.clock.now())

    async def _look(self, key: str) -> tuple[bool, int]:
        """Return whether there is one under the key, and how many there are, as this turn sees it."""
        there, count = await self._read(memories_sql.known, key)
        noted = self._notes.get(key)
        if noted is not None:
            there = noted.text is not None
        else:
            self._known[key] = there
        return there, count + self._more
