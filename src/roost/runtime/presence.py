"""The presence of an agent that is awake: the loop it is lent, how it is called on there, and how it comes to rest."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from roost.core.agents import AgentConfig
from roost.ports import Loop, Pending
from roost.runtime.course import BRIEF, Course
from roost.runtime.desk import Desk
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.hall import Hall

log = logging.getLogger("roost.agent")

TICK = 0.001
"""Seconds that no timer is exact to."""


class Presence(ABC):
    """`call`, `begin` and `unpark` are for any thread; everything else happens on the loop."""

    loop: Loop
    # What most of them never set stands here, once for all: thousands are awake at a time.
    retired = False
    """It is no more: what it still does counts for nothing."""
    ending = False
    """It begins nothing new: it is stopped, falls asleep, is paused, or the program closes."""
    _rest: asyncio.TimerHandle | None = None
    _rests_on = False
    """Whether it is on record that it rests, and only its idle timeout is waited for."""
    _quiet_since = 0.0

    def __init__(self, hall: Hall, address: str, config: AgentConfig) -> None:
        self.hall = hall
        self.shop: Shop = hall.shop
        self.address = address
        self.config = config
        self.course = Course(hall.shop.host)
        self.desk = Desk()
        self.inbound: deque[Callable[[], None]] = deque()
        self.begun = False
        """Whether it has a loop."""
        self.parking: list[Presence] = []
        """Itself, while it has lent its loop until what it did is written: whoever takes it out unparks it."""
        self.at_rest: Pending[None] = hall.shop.host.pending()
        self._rung = False

    @abstractmethod
    def go_on(self) -> None:
        """Go on with what there is to do, or rest."""

    @abstractmethod
    def _is_quiet(self) -> bool:
        """Whether nothing is being done."""

    @abstractmethod
    def _record(self) -> None:
        """Have it written what states it has been in."""

    @abstractmethod
    def retire(self) -> None:
        """Give the loop back, unless something has come."""

    # --- called on by others ---------------------------------------------------------------------

    def call(self, act: Callable[[], None]) -> None:
        """Do it on the loop, in order; while there is none yet, when it has one."""
        self.inbound.append(act)
        if self.parked:
            self.hall.unpark(self)
        elif self.begun and not self._rung:
            self._ring()

    def begin(self, loop: Loop) -> None:
        """It has a loop now."""
        self.loop = loop
        self.begun = True
        self._ring()

    def _ring(self) -> None:
        self._rung = True
        loop = self.loop  # which may be another one by the time it is called
        loop.call(self._drain, loop)

    @property
    def parked(self) -> bool:
        return bool(self.parking)

    def unpark(self) -> bool:
        """Whether it was parked. Of several who ask at once, one is told so."""
        try:
            self.parking.pop()
        except IndexError:
            return False
        return True

    def _drain(self, loop: Loop) -> None:
        if self.retired:
            return
        self._rung = False
        if not self.begun or loop is not self.loop:  # rung before it lent this loop: it is done where it is next
            if self.parked:
                self.hall.unpark(self)
            elif self.begun:
                self._ring()
            return
        inbound = self.inbound
        while inbound:
            act = inbound.popleft()
            try:
                act()
            except Exception:  # one that fails must not keep the others from being done
                log.exception("a delivery has failed", extra={"agent": self.address})
        self.go_on()

    # --- coming to rest --------------------------------------------------------------------------

    def _begin_rest(self) -> None:
        loop = asyncio.get_running_loop()
        self._quiet_since = loop.time()
        if self._rest is not None and self._rests_on:  # what it has done since is to be recorded
            self._rest.cancel()
            self._rest = None
        if self._rest is None:
            self._rests_on = False
            self._rest = loop.call_later(self._pause(), self._rested)

    def _rested(self) -> None:
        """After a pause it is known to be idle, and after its idle timeout it gives its loop back."""
        self._rest = None
        if not self._is_quiet() or self.desk.has_ready():
            return
        loop = asyncio.get_running_loop()
        quiet = loop.time() - self._quiet_since
        if quiet < self._shortest_pause() - TICK:
            self._rest = loop.call_later(self._pause(), self._rested)
            return
        self._record()
        left = self.config.idle_timeout - quiet
        if left < TICK or (self.desk.lanes and self.desk.is_at_rest):  # who waits for a person has waited for a while
            self.retire()
        else:  # not all at the same moment
            self._rests_on = True
            self._rest = loop.call_later(left * (1.0 + 0.1 * self.shop.host.jitter()), self._rested)

    def _pause(self) -> float:
        return self._shortest_pause() * (1.0 + self.shop.host.jitter())

    def _shortest_pause(self) -> float:
        """The more are awake, the longer: thousands that woke at once would fight for the interpreter."""
        return min(BRIEF * max(1.0, self.hall.count / 100), self.config.idle_timeout)

    def _leave_loop(self) -> None:
        """Nothing of it may be left there: the next time it may be on another one."""
        self._record()
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    @property
    def rests(self) -> bool:
        """Whether it has a loop and nothing to do."""
        return self.begun and not self._rung and self._is_quiet() and self.desk.is_at_rest
