"""Storage quota of users.

Only the length of each message is counted, in RAM. After each sixteenth of the quota, and before anything is refused,
the store computes the real sum. So deleted data is free again without any bookkeeping, and a user may exceed the quota
by about a sixteenth, once after each start.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from roost.core.limits.limits import Limits
from roost.errors import LimitReached
from roost.ports import Host, Store
from roost.stores.sql import stored_size

RECOUNT_SHARE = 16
RECOUNT_INTERVAL = 10.0
"""Seconds between two sums for a user whose quota is used up."""
MAX_USERS = 100_000
"""Users in RAM; above it, all counts are dropped."""
MIB = 1024 * 1024


@dataclass(slots=True)
class _Account:
    stored: int = 0
    """Last sum of the store."""
    added: int = 0
    """Added since then."""
    summed: float = -inf
    """Time of the sum, by the monotonic clock."""


class StorageQuota:
    """Quotas of all users. Any thread may call."""

    def __init__(self, host: Host, store: Store, limits: Limits) -> None:
        self._clock = host.clock
        self._store = store
        self._most = int(limits.stored_mib_per_user * MIB)
        self._lock = host.lock()
        self._accounts: dict[str, _Account] = {}

    async def use(self, user_id: str, size: int) -> None:
        """Count new data of a user. Raises LimitReached if the quota would be exceeded."""
        if not self._most:
            return
        with self._lock:
            account = self._account(user_id)
            account.added += size
            fits = account.stored + account.added <= self._most
            if fits and account.added * RECOUNT_SHARE < self._most:
                return
            is_recent = self._clock.monotonic() - account.summed < RECOUNT_INTERVAL
        if fits or not is_recent:
            stored = await self._store.read(stored_size.stored_chars, user_id)
            with self._lock:
                account.stored, account.added = stored, size
                account.summed = self._clock.monotonic()
                fits = stored + size <= self._most
        if not fits:
            self._refuse(account, size)

    def _account(self, user_id: str) -> _Account:
        if len(self._accounts) >= MAX_USERS and user_id not in self._accounts:
            self._accounts.clear()
        return self._accounts.setdefault(user_id, _Account())

    def _refuse(self, account: _Account, size: int) -> None:
        with self._lock:
            account.added = max(0, account.added - size)
        raise LimitReached(
            f"you have stored {account.stored / MIB:,.1f} MiB, and {self._most / MIB:,.1f} are allowed"
            " (stored_mib_per_user): delete what you do not need, and try again"
        )
