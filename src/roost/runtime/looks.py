"""Looks into the store: what agents have to do, and whether they may.

One look is under way at a time, and those who are to be looked at gather behind it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from roost.core.envelopes import Taken
from roost.core.facts import Name
from roost.errors import Unavailable
from roost.ports import Look, Pending, World
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.hall import Hall

log = logging.getLogger("roost.looks")

TOGETHER = 1_000
"""Agents that are looked at together."""


class Looks:
    """Any thread may call. What is found is handed over to the hall."""

    def __init__(self, shop: Shop, hall: Hall, *, hosting: bool) -> None:
        self._shop = shop
        self._hall = hall
        self._hosting = hosting
        """Whether agents live here: else what there is for them stays in the store."""
        self._lock = shop.host.lock()
        self._looking: dict[str, bool] = {}
        """Who is being looked at, or will be, and whether once more after that."""
        self._next: deque[str] = deque()
        self._untried: dict[str, list[str]] = {}
        self._taking = False
        self._new_change = partial(shop.host.new_id, "change")
        self._over: Pending[None] = shop.host.pending()
        """Set when nobody is being looked at any more; whoever waits for that makes a new one."""
        self._missing: set[str] = set()
        """Profiles of which it was told that they are not known here."""

    @property
    def count(self) -> int:
        """How many are being looked at, or will be."""
        return len(self._looking)

    def look(self, address: str, untried: Sequence[str] = ()) -> None:
        """Look into the store what an agent has to do, and whether it may; the rest follows by itself.

        `untried`: what counts as tried there, and was not.
        """
        if not self._hosting or (self._hall.closing and not untried):
            return
        with self._lock:
            if untried:
                self._untried.setdefault(address, []).extend(untried)
            if address in self._looking:
                self._looking[address] = True
                return
            self._looking[address] = False
            self._next.append(address)
            if self._taking:
                return
            self._taking = True
        self._take()

    def not_begun(self, address: str, envelope_ids: Sequence[str]) -> None:
        """These count as tried, and were not, for want of room: the next look at the agent puts that right."""
        if envelope_ids:
            with self._lock:
                self._untried.setdefault(address, []).extend(envelope_ids)

    def put_back(self, envelope_ids: Sequence[str]) -> None:
        """These count as tried, and nobody has begun with them; or nobody ends what was begun."""
        if envelope_ids:
            with suppress(Unavailable):
                self._shop.store.write(self._shop.statements.inbox.release, envelope_ids)

    def knows(self, profile: str) -> bool:
        """Whether agents with this profile can think here; those without one have the default."""
        return not profile or self._shop.brains.has(profile)

    async def end(self, seconds: float) -> None:
        """Wait so long for the look that is under way; what it takes is put back, if the hall is closing."""
        with self._lock:
            self._over = self._shop.host.pending()
            taking = self._taking
        if taking:
            await self._over.within(seconds)

    def _take(self) -> None:
        with self._lock:
            addresses = [self._next.popleft() for _ in range(min(len(self._next), TOGETHER))]
            if not addresses:
                self._taking = False
                self._over.set(None)
                return
        hall = self._hall
        looks = tuple(
            Look(address, not hall.is_awake(address), tuple(self._untried.pop(address, ()))) for address in addresses
        )
        world = World(self._shop.host.clock.now(), self._new_change, hall.load, hall.count, self.knows)
        missed = partial(self._missed, looks)
        try:
            self._shop.store.write(self._shop.statements.inbox.take, looks, world, then=self._taken, failed=missed)
        except Unavailable as error:
            missed(error)

    def _missed(self, looks: tuple[Look, ...], error: Exception) -> None:
        """Whoever has something to do is found again by the supervisor."""
        log.warning("agents are looked at later: %s", error, extra={"agents": [look.address for look in looks[:10]]})
        with self._lock:
            for look in looks:
                self._looking.pop(look.address, None)
                if look.untried:
                    self._untried.setdefault(look.address, []).extend(look.untried)
        self._take()

    def _taken(self, all_taken: tuple[Taken, ...]) -> None:
        with self._lock:
            again = [taken.address for taken in all_taken if self._looking.pop(taken.address, False)]
        for taken in all_taken:
            if taken.woken is not None:
                self._shop.monitor.tell(Name.AGENT_WOKE, taken.address, {"reason": taken.woken})
            if taken.missing:
                self._leave_waiting(taken)
        if self._hall.closing:
            self.put_back([e.envelope_id for taken in all_taken for e in taken.envelopes if e.claimed])
        else:
            self._hall.give([taken for taken in all_taken if taken.ready])
        for address in again:
            self._hall.look(address)
        self._take()

    def _leave_waiting(self, taken: Taken) -> None:
        """It cannot think here: what it has to do waits for a program in which it can; but people are told at once."""
        if taken.missing not in self._missing:
            self._missing.add(taken.missing)
            log.warning(
                "agents wait, since their profile %r is not known here: start Roost where it is set up, "
                "or set another one for them", taken.missing, extra={"agent": taken.address},
            )  # fmt: skip
        self._hall.give_talks(taken)
