"""Claims: take the work of agents from the store, and wake them if they may work.

One claim is under way at a time; the agents of the next one are collected meanwhile.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from roost.core.envelopes.claims import ClaimedWork
from roost.core.monitoring.facts import FactRow, Name
from roost.errors import Unavailable
from roost.ports import ClaimEnvironment, ClaimRequest, Pending
from roost.runtime.context import RuntimeContext
from roost.stores.sql.inbox import claims

if TYPE_CHECKING:
    from roost.runtime.dispatch.dispatcher import Dispatcher

log = logging.getLogger("roost.claims")

TOGETHER = 1_000
"""Agents in one claim."""


class Claims:
    """Any thread may call. Claimed work is passed to the dispatcher."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher, *, hosting: bool) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._hosting = hosting
        """True if agents run in this process; else their work stays in the store."""
        self._lock = context.host.lock()
        self._looking: dict[str, bool] = {}
        """Agents of the current and the next claims; True: claim once more after that."""
        self._next: deque[str] = deque()
        self._taking = hosting
        """True during a claim, and until the store has recovered from the death of a process."""
        self._new_change = partial(context.host.new_id, "change")
        self._over: Pending[None] = context.host.pending()
        """Set when no claim is under way; callers that wait for that create a new one."""
        self._missing: set[str] = set()
        """Unknown profiles that were logged."""

    @property
    def count(self) -> int:
        """Number of agents in the current and the next claims."""
        return len(self._looking)

    def start(self) -> None:
        """Start the claims that were requested before the store had recovered."""
        self._take()

    def look(self, address: str) -> None:
        """Claim the work of an agent, and wake it if it may work."""
        if not self._hosting or self._dispatcher.closing:
            return
        with self._lock:
            if address in self._looking:
                self._looking[address] = True
                return
            self._looking[address] = False
            self._next.append(address)
            if self._taking:
                return
            self._taking = True
        self._take()

    def knows(self, profile: str) -> bool:
        """Return True if agents with this profile can run here; those without one have the default."""
        return not profile or self._context.brains.has(profile)

    async def end(self, seconds: float) -> None:
        """Wait for the current claim, for at most `seconds`."""
        with self._lock:
            self._over = self._context.host.pending()
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
        dispatcher = self._dispatcher
        looks = tuple(ClaimRequest(address, not dispatcher.is_awake(address)) for address in addresses)
        world = ClaimEnvironment(
            self._context.host.clock.now(), self._new_change, dispatcher.load, dispatcher.loops.awake, self.knows
        )
        missed = partial(self._missed, looks)
        try:
            self._context.store.write(claims.claim, looks, world, facts=self._facts, then=self._taken, failed=missed)
        except Unavailable as error:
            missed(error)

    def _facts(self, all_taken: tuple[ClaimedWork, ...]) -> list[FactRow]:
        woken = [(taken.address, taken.woken) for taken in all_taken if taken.woken is not None]
        return [self._context.facts.fact(Name.AGENT_WOKE, address, {"reason": why}) for address, why in woken]

    def _missed(self, looks: tuple[ClaimRequest, ...], error: Exception) -> None:
        """Log the failure; the supervisor finds these agents again."""
        log.warning(
            "claim failed; the next sweep finds the agents again: %s",
            error,
            extra={"agents": [look.address for look in looks[:10]]},
        )
        with self._lock:
            for look in looks:
                self._looking.pop(look.address, None)
        self._take()

    def _taken(self, all_taken: tuple[ClaimedWork, ...]) -> None:
        with self._lock:
            again = [taken.address for taken in all_taken if self._looking.pop(taken.address, False)]
        for taken in all_taken:
            if taken.owner:
                self._dispatcher.notifier.look_elsewhere(taken.address, taken.owner)
            elif taken.missing and not self._dispatcher.notifier.look_where_known(taken.address, taken.missing):
                self._leave_waiting(taken)
        if not self._dispatcher.closing:
            self._dispatcher.deliver_claimed([taken for taken in all_taken if taken.ready])
        for address in again:
            self._dispatcher.notifier.look(address)
        self._take()

    def _leave_waiting(self, taken: ClaimedWork) -> None:
        """Leave work in the store for a process that knows the profile; answer talks with an error at once."""
        if taken.missing not in self._missing:
            self._missing.add(taken.missing)
            log.warning(
                "agents wait: their profile %r is not known here; start Roost where it is configured, "
                "or set another profile",
                taken.missing,
                extra={"agent": taken.address},
            )
        self._dispatcher.deliver_talks(taken)
