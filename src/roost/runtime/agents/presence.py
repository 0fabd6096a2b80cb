"""Presence of an awake agent: its loop, calls to it, and its way to idle."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable

from roost.core.agents.agent import AgentConfig
from roost.ports import Loop, Pending
from roost.runtime.agents.host import AgentHost
from roost.runtime.agents.lane_queue import LaneQueue
from roost.runtime.agents.phase import Phase, PhaseMachine
from roost.runtime.agents.state_log import BRIEF, StateLog
from roost.runtime.context import RuntimeContext

log = logging.getLogger("roost.agent")

TICK = 0.001
"""Seconds that no timer is exact to."""


class Presence(ABC):
    """`call` and `attach` are for any thread; everything else happens on the loop."""

    loop: Loop
    # What most of them never set stands here, once for all: thousands are awake at a time.
    _rest: asyncio.TimerHandle | None = None
    _rests_on = False
    """True if it is on record that it rests, and only its idle timeout is waited for."""
    _quiet_since = 0.0
    is_asked = False
    """True if it was woken by a question."""
    aside = False
    """True if it has left its place to others while all its turns wait."""
    _returning: asyncio.Event | None = None
    _telling: asyncio.TimerHandle | None = None
    """By which it is recorded in a moment what it does."""

    def __init__(self, dispatcher: AgentHost, address: str, config: AgentConfig) -> None:
        self.dispatcher = dispatcher
        self.context: RuntimeContext = dispatcher.services.context
        self.address = address
        self.config = config
        self.state_log = StateLog(self.context.host)
        self.lane_queue = LaneQueue()
        self.inbound: deque[Callable[[], None]] = deque()
        self.phases = PhaseMachine(self.context.host.lock())
        self.at_rest: Pending[None] = self.context.host.pending()
        self._rung = False

    @abstractmethod
    def go_on(self) -> None:
        """Start the next lanes, or become idle."""

    @abstractmethod
    def _is_quiet(self) -> bool:
        """Return True if nothing is being done."""

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
        phase = self.phases.phase
        if phase is Phase.DETACHED:
            self.dispatcher.requeue(self)
        elif not self._rung and (phase is Phase.RUNNING or phase is Phase.DRAINING):
            self._ring()

    async def regain(self) -> None:
        """Wait for a place again after it stepped aside."""
        if (returning := self._returning) is None:
            self._returning = returning = asyncio.Event()
            self.dispatcher.loops.come_back(self)
        await returning.wait()

    def returned(self) -> None:
        """It has a place again; from any thread."""
        self.call(self._return)

    def _return(self) -> None:
        if self._returning is not None:
            self._returning.set()
            self._returning = None

    def attach(self, loop: Loop) -> bool:
        """Run on this loop; False: it does not need one any more."""
        self.loop = loop
        if not self.phases.move(Phase.QUEUED, Phase.RUNNING):
            return False
        self._ring()
        return True

    def _ring(self) -> None:
        self._rung = True
        loop = self.loop  # which may be another one by the time it is called
        loop.call(self._drain, loop)

    @property
    def is_detached(self) -> bool:
        return self.phases.phase is Phase.DETACHED

    @property
    def is_retired(self) -> bool:
        return self.phases.is_retired

    @property
    def is_ending(self) -> bool:
        """Return True if it starts no more turns."""
        return self.phases.is_ending

    def _drain(self, loop: Loop) -> None:
        if self.is_retired:
            return
        self._rung = False
        if loop is not self.loop or not self.phases.has_loop:  # called before it was detached: handled on its next loop
            if self.is_detached:
                self.dispatcher.requeue(self)
            elif self.phases.has_loop:
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
        if not self._is_quiet() or self.lane_queue.has_ready():
            return
        loop = asyncio.get_running_loop()
        quiet = loop.time() - self._quiet_since
        if quiet < self._shortest_pause() - TICK:
            self._rest = loop.call_later(self._pause(), self._rested)
            return
        self._record()
        left = self.config.idle_timeout - quiet
        if left < TICK or (self.lane_queue.lanes and self.lane_queue.is_at_rest):
            self.retire()
        else:  # not all at the same moment
            self._rests_on = True
            self._rest = loop.call_later(left * (1.0 + 0.1 * self.context.host.jitter()), self._rested)

    def _pause(self) -> float:
        return self._shortest_pause() * (1.0 + self.context.host.jitter())

    def _shortest_pause(self) -> float:
        """Return a pause that grows with the number of awake agents: thousands at once would contend for the GIL."""
        return min(BRIEF * max(1.0, self.dispatcher.count / 100), self.config.idle_timeout)

    def _leave_loop(self) -> None:
        """Nothing of it may be left there: the next time it may be on another one."""
        self._record()
        for timer in (self._rest, self._telling):
            if timer is not None:
                timer.cancel()
        self._rest = self._telling = None

    @property
    def rests(self) -> bool:
        """Return True if it has a loop and nothing to do."""
        return self.phases.has_loop and not self._rung and self._is_quiet() and self.lane_queue.is_at_rest
