"""Token budgets of profiles: the tokens used today."""

from __future__ import annotations

from roost.core.failures.faults import Fault
from roost.core.limits.usage import Usage
from roost.core.talks.messages import at
from roost.errors import BrainFailed
from roost.ports import Host, Profile, Store
from roost.stores.sql.tables import token_usage


class TokenBudget:
    """Tokens used today by profile, in RAM. Each run stores its use when it settles. Any thread may call."""

    def __init__(self, host: Host, store: Store) -> None:
        self._clock = host.clock
        self._store = store
        self._lock = host.lock()
        self._used: dict[tuple[str, str], int] = {}
        """Tokens by day and profile; only today's."""

    @property
    def day(self) -> str:
        """Return the current day, in UTC."""
        return at(self._clock.now()).date().isoformat()

    async def open(self, profile: Profile) -> None:
        """Read the tokens used today, before a run of this profile."""
        key = (self.day, profile.name)
        if profile.tokens_per_day is not None and key not in self._used:
            used = await self._store.read(token_usage.tokens_used, *key)
            with self._lock:
                self._used = {k: v for k, v in self._used.items() if k[0] == key[0]}
                self._used.setdefault(key, used)

    def add(self, profile: Profile, usage: Usage) -> None:
        with self._lock:
            key = (self.day, profile.name)
            if key in self._used:
                self._used[key] += usage.tokens

    def allowance(self, profile: Profile, used: Usage) -> int | None:
        """Return the tokens that a run may still use; None: no limit. Raises BrainFailed."""
        left = []
        if (most := profile.tokens_per_run) is not None:
            if used.tokens >= most:
                raise BrainFailed(f"{used.tokens:,} tokens are used, and a run may use {most:,}", kind=Fault.RUN_TOKENS)
            left.append(most - used.tokens)
        if (most := profile.tokens_per_day) is not None:
            today = self._used.get((self.day, profile.name), 0)
            if today >= most:
                raise BrainFailed(f"{today:,} tokens are used today, and {most:,} are allowed", kind=Fault.DAY_TOKENS)
            left.append(most - today)
        return min(left, default=None)
