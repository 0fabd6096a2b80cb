"""Budgets per origin: runs, messages, meetings and tokens that it has used."""

from __future__ import annotations

import logging
from contextlib import suppress

from roost.core.limits.budgets import PARTS, Resource, Spent, bounds, overspent
from roost.core.limits.limits import Limits
from roost.errors import BrainFailed, Unavailable
from roost.ports import Host, Store
from roost.stores.sql import budgets

log = logging.getLogger("roost.budgets")

MOST = 20_000
"""Origins in RAM; above it, the oldest that have used little are dropped."""


class OriginBudgets:
    """Use of budgets by origin, counted in RAM. Any thread may call.

    Counts are written each time an origin has used another twentieth of a budget. So a crash loses little, and an
    origin that uses less costs no write.
    """

    def __init__(self, host: Host, store: Store, limits: Limits) -> None:
        self._clock = host.clock
        self._store = store
        self._lock = host.lock()
        self._most = bounds(limits)
        self._parts = tuple(max(1, most // PARTS) for most in self._most)
        self._spent: dict[str, Spent] = {}
        self._is_loaded = False

    async def load(self) -> None:
        """Read the counts from before this process started; once."""
        if self._is_loaded:
            return
        rows = await self._store.read(budgets.load_all)
        with self._lock:
            self._is_loaded = True
            for root, counts in rows:
                spent = self._of(root)
                spent.counts = [now + before for now, before in zip(spent.counts, counts, strict=True)]

    def run(self, root: str) -> BrainFailed | None:
        """Count a run that is about to start; return the reason why it may not."""
        try:
            self.spend(root, Resource.RUNS)
        except BrainFailed as error:
            return error
        return None

    def send(self, root: str) -> None:
        """Count a message. Raises BrainFailed if the budget is used up."""
        self._check(root, Resource.RUNS)
        self.spend(root, Resource.MESSAGES)

    def spend(self, root: str, resource: Resource, count: int = 1) -> None:
        """Count the use of a resource. Raises BrainFailed if its budget is used up."""
        self._check(root, resource)
        self.add(root, resource, count)

    def add(self, root: str, resource: Resource, count: int) -> None:
        """Count use that has already happened."""
        with self._lock:
            spent = self._of(root)
            before = spent.counts[resource]
            spent.counts[resource] = after = before + count
            part = self._parts[resource]
            # Written before the load, they would be read as counts of an earlier process.
            is_due = self._is_loaded and after // part > before // part
            kept = tuple(spent.counts) if is_due else None
        if kept is not None:
            self._keep(root, kept)

    def left(self, root: str, resource: Resource) -> int:
        """Return the rest of a budget. Raises BrainFailed if there is none."""
        self._check(root, resource)
        spent = self._spent.get(root)
        return self._most[resource] - (spent.counts[resource] if spent is not None else 0)

    def is_first(self, root: str) -> bool:
        """Return True to the first caller for each origin, so that the cut-off is reported once."""
        with self._lock:
            spent = self._of(root)
            was_reported, spent.is_reported = spent.is_reported, True
        if not was_reported:
            log.warning("origin has used up a budget; its further work becomes dead letters", extra={"root": root})
        return not was_reported

    def _check(self, root: str, resource: Resource) -> None:
        spent, most = self._spent.get(root), self._most[resource]
        if spent is not None and spent.counts[resource] >= most:
            raise overspent(root, resource, most)

    def _of(self, root: str) -> Spent:
        spent = self._spent.get(root)
        if spent is None:
            if len(self._spent) >= MOST:
                self._forget()
            spent = self._spent[root] = Spent([0] * len(Resource))
        return spent

    def _forget(self) -> None:
        """Drop the oldest half, except those that have used much of a budget."""
        for root, spent in list(self._spent.items())[: MOST // 2]:
            if all(count < part for count, part in zip(spent.counts, self._parts, strict=True)):
                del self._spent[root]

    def _keep(self, root: str, counts: tuple[int, ...]) -> None:
        with suppress(Unavailable):  # later counts are written
            self._store.write(budgets.save, root, counts, self._clock.now(), key=root)
