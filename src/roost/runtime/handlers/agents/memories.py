"""Methods of agents for what they remember."""

from __future__ import annotations

import builtins
from typing import Annotated

from roost.core.brain_data import memories
from roost.core.brain_data.memories import Memory
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import addresses, checks
from roost.core.values.traits import ReplyField, reads
from roost.runtime.context import RuntimeContext
from roost.stores.sql.brain_data import memories as memories_sql


class AgentMemories:
    """Memories of an agent: texts under keys."""

    _context: RuntimeContext

    @reads
    async def memories(
        self, user_id: str, agent_id: str, query: str = "", *, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[Memory]:
        """Return memories of an agent: best match first, then the newest.

        Any text is a query; an empty one returns all, newest first. `before` is the last key of the previous page.
        """
        check_agent(user_id, agent_id)
        wanted = memories.asked(query)
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(memories_sql.listed, user_id, agent_id, wanted, limit, before)

    async def remember(self, user_id: str, agent_id: str, text: str, *, key: str | None = None) -> Memory:
        """Store a memory under a key, or under a new one; return the key. It replaces an older text."""
        check_agent(user_id, agent_id)
        limits, host = self._context.limits, self._context.host
        memories.check_text(text, limits.chars_per_memory)
        named = host.new_id("memory") if key is None else checks.name(key, "the key")
        await self._context.quota.use(user_id, len(text))
        return await self._context.store.write(
            memories_sql.remember,
            user_id,
            agent_id,
            named,
            text,
            host.clock.now(),
            limits.memories_per_agent,
        )

    async def forget(self, user_id: str, agent_id: str, key: str) -> Annotated[bool, ReplyField("existed")]:
        """Delete the memory under a key. Return False if there is none."""
        check_agent(user_id, agent_id)
        checks.name(key, "the key")
        return await self._context.store.write(memories_sql.forget, user_id, agent_id, key)


def check_agent(user_id: str, agent_id: str) -> None:
    checks.name(user_id, "the user id")
    addresses.agent_id(agent_id)
