"""Recipients: who may be reached, and who gets a broadcast."""

from __future__ import annotations

from roost.core.agents.agent import AgentConfig
from roost.core.agents.audience import Audience
from roost.core.values import addresses
from roost.core.values.addresses import Address
from roost.errors import LimitReached, NotFound
from roost.runtime.context import RuntimeContext
from roost.runtime.ports.active_agents import ActiveAgents
from roost.stores.sql.agents import agents

PAGE = 1_000
"""Agents per read."""
MAX_AGE = 1.0
"""Seconds for which recipients are cached."""
MAX_CACHED = 100
"""Audiences in the cache."""
Reached = list[tuple[str, AgentConfig]]
"""Keys of agents, with their settings."""


class Recipients:
    """Finds recipients. Those of broadcasts are cached for a moment: the same sender often broadcasts again.

    Its coroutines await only the store.
    """

    def __init__(self, context: RuntimeContext, active: ActiveAgents) -> None:
        self._context = context
        self._active = active
        self._cache: dict[tuple[str, str, Audience], tuple[float, Reached]] = {}
        """Recipients with their expiry, by owner, sender and audience."""

    def forget(self) -> None:
        """Empty the cache: an agent was created, configured or deleted."""
        self._cache = {}

    async def reach(self, user_id: str, address: Address, *, known: bool = False, exact: bool = False) -> AgentConfig:
        """Return the settings of an agent. Raises NotFound, or LimitReached if its inbox is full.

        `known`: it has written to the sender before. `exact`: count in the store, with mail that waits for its time.
        """
        awake = None if exact else self._active.awake(address.key)
        if awake is not None:
            config, is_full = awake.config, awake.is_full
            if address.user_id != user_id and not config.shared and not known:
                raise addresses.unknown(address.agent_id)
        else:
            config, depth = await self._context.store.read(agents.recipient, user_id, address.key, known)
            is_full = depth >= config.inbox_limit
        if is_full:
            raise LimitReached(
                f"the inbox of the agent {address.agent_id!r} is full ({config.inbox_limit:,}): try again later"
            )
        return config

    async def invitable(self, user_id: str, who: str) -> str:
        """Return the full address of a participant that this user may invite: own and shared agents, as with mail."""
        address = addresses.parse(who, user_id)
        if address.is_agent:
            await self.reach(user_id, address)
        elif address.user_id != user_id:
            raise NotFound(f"there is no {address.text!r} you may invite")
        return address.text

    # --- broadcasts ------------------------------------------------------------------------------

    async def find(self, user_id: str, audience: Audience, sender: str) -> Reached:
        """Return the agents of an audience without the sender. Raises LimitReached if there are too many."""
        name, cache, now = (user_id, sender, audience), self._cache, self._context.host.clock.monotonic()
        until, reached = cache.get(name, (0.0, []))
        if now < until:
            return reached
        reached, is_short = await self._read(user_id, audience, sender)
        if is_short and audience.state is None:
            if len(cache) >= MAX_CACHED:
                cache.clear()
            cache[name] = (now + MAX_AGE, reached)  # into the old cache, if `forget` was called meanwhile
        return reached

    async def depths(self, reached: Reached) -> dict[str, int]:
        """Return the queue depths of those agents that are not awake, up to the largest limit."""
        keys = [key for key, _ in reached if not self._active.is_awake(key)]
        if not keys:
            return {}
        most = max(config.inbox_limit for _, config in reached)
        return await self._context.store.read(agents.depths, keys, most)

    async def _read(self, user_id: str, audience: Audience, sender: str) -> tuple[Reached, bool]:
        """Return the recipients, and whether one page of agents was read."""
        most, default = self._context.limits.agents_per_broadcast, self._context.brains.default
        reached: Reached = []
        after: str | None = ""
        pages = 0
        while after is not None:
            pages += 1
            page = await self._context.store.read(
                agents.audience, user_id, audience.group, PAGE, after, audience.state is not None
            )
            for agent_id, resting, config in page:
                key = f"{user_id}/{agent_id}"
                state = self._active.state_of(key, resting)
                is_admitted = audience.admits(agent_id, config.groups, config.profile or default, state)
                if is_admitted and sender != f"agent:{key}":
                    reached.append((key, config))
            if len(reached) > most:
                raise LimitReached(
                    f"a broadcast may go to {most:,} agents, and this one would go to more: name a group, a profile"
                    " or a pattern of ids"
                )
            after = page[-1][0] if len(page) == PAGE else None
        return reached, pages == 1
