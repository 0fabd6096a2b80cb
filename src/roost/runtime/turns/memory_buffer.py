"""Memories that one turn adds and deletes, kept until it settles."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from roost.core.brain_data import memories
from roost.core.brain_data.memories import Memory, Remember
from roost.core.talks.messages import MOST, at
from roost.core.values import checks
from roost.runtime.context import RuntimeContext
from roost.runtime.ports.active_agents import ActiveAgents
from roost.stores.sql.brain_data import memories as memories_sql

POLL_INTERVAL = 0.002
"""Seconds between two checks whether earlier memories are written."""


class MemoryBuffer:
    """Changes of memories of one attempt; a failed or stopped attempt changes nothing."""

    def __init__(self, context: RuntimeContext, agents: ActiveAgents, address: str, envelope_id: str | None) -> None:
        self._context = context
        self._agents = agents
        self._address = address
        self._envelope_id = envelope_id
        self._notes: dict[str, Remember] = {}
        """Changes by key, the oldest first."""
        self._known: dict[str, bool] = {}
        """True if the store had a memory under the key."""
        self._more = 0
        """Number of memories with these changes, minus the number in the store."""

    async def remember(self, text: str, key: str | None) -> str:
        limits, host = self._context.limits, self._context.host
        memories.check_text(text, limits.chars_per_memory)
        name = host.new_id("memory") if key is None else checks.name(key, "the key")
        exists, count = await self._lookup(name)
        if not exists:
            memories.check_room(count, limits.memories_per_agent)
        self._note(name, text)
        return name

    async def forget(self, key: str) -> bool:
        exists, _ = await self._lookup(checks.name(key, "the key"))
        if exists:
            self._note(key, None)
        return exists

    async def recall(self, query: str, limit: int) -> tuple[Memory, ...]:
        wanted = memories.asked(query)
        checks.count(limit, "the limit", least=1, most=MOST)
        stored = await self._read(memories_sql.search, wanted, limit + len(self._notes))
        own = [
            Memory(memory.key, memory.text, at(memory.created))
            for memory in self._notes.values()
            if memory.text is not None
        ]
        found = [*reversed(own), *(memory for memory in stored if memory.key not in self._notes)]
        if wanted is not None:
            scores = {memory.key: memories.score(memory.text, wanted) for memory in found}
            found = sorted((memory for memory in found if scores[memory.key]), key=lambda memory: -scores[memory.key])
        return tuple(found[:limit])

    def effects(self) -> tuple[Remember, ...]:
        """Return the effects of the settlement; until then, later turns of the agent wait for it."""
        agent = self._agents.awake(self._address)
        if agent is not None and self._notes and self._envelope_id is not None:
            agent.noted = agent.unwritten() | {self._envelope_id}
        return tuple(self._notes.values())

    async def _read(self, op: Callable[..., Any], *args: Any) -> Any:
        """Read memories of the agent, after those of its earlier turns are written.

        The next turn of an agent may begin before the last one is written.
        """
        agent = self._agents.awake(self._address)
        ended = agent.unwritten() if agent is not None else frozenset()
        while agent is not None and (ended := ended & agent.unwritten()):  # noqa: ASYNC110 — others write it
            await asyncio.sleep(POLL_INTERVAL)
        return await self._context.store.read(op, self._address, *args)

    def _note(self, key: str, text: str | None) -> None:
        before = self._notes.pop(key, None)  # a repeated key becomes the newest
        was = self._known[key] if before is None else before.text is not None
        self._more += (text is not None) - was
        self._notes[key] = Remember(self._address, key, text, self._context.host.clock.now())

    async def _lookup(self, key: str) -> tuple[bool, int]:
        """Return whether the key exists, and the number of memories, as this turn sees them."""
        exists, count = await self._read(memories_sql.find_key, key)
        noted = self._notes.get(key)
        if noted is not None:
            exists = noted.text is not None
        else:
            self._known[key] = exists
        return exists, count + self._more
