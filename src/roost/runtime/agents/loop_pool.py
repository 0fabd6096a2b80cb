"""Pool of loops for awake agents, one thread each.

A few loops are kept warm. More are started only when no loop in use is returned within a moment, because starting one
takes longer than most agents work.

`awake_agents` is the number of places. An agent has a place while it has a loop, with one exception: if others wait
for a place, an agent all of whose turns wait for an answer steps aside. It keeps its loop, and begins or continues
nothing until it has a place again. Agents that were asked get a place first: others wait for their answers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from roost.ports import Loop
from roost.runtime.agents.phase import PhaseMachine
from roost.runtime.agents.slot import Slot
from roost.runtime.context import RuntimeContext

FEW = 128
"""Agents that may be woken at once with a new loop each."""
PACE = 0.001
"""Seconds between two loops that are started at once, beyond those few."""
MOMENT = 0.01
"""Seconds that an agent waits for a loop to come back before one is started for it."""
GROWTH = 32
"""Loops that are started in a moment in which none came back; twice as many in the next one."""
FASTEST = 256
ASIDE = 256
"""Agents that can step aside at a time, at least; twice as many as there are places, if that is more."""
LONGEST = 2.0
"""Seconds that agents may wait for loops that are given back, before new loops are started."""


class LoopUser(Protocol):
    """An agent that is awake, or wakes."""

    loop: Loop
    is_asked: bool
    phases: PhaseMachine
    slot: Slot

    def call(self, act: Callable[[], None]) -> None:
        """Run it on the loop, in order."""

    def attach(self, loop: Loop) -> bool:
        """Run on this loop; False: it does not need one any more."""

    def retire_if_idle(self) -> None:
        """Return the loop and retire, unless there is something to do; on the loop."""


class LoopPool:
    """Any thread may call. `ended` is called on the dying thread of a loop."""

    def __init__(self, context: RuntimeContext, ended: Callable[[Loop, BaseException | None], None]) -> None:
        self._context = context
        self._tell = ended
        self.lock = context.host.lock()
        self.few = max(FEW, context.limits.warm_loops)
        self._queue: deque[LoopUser] = deque()
        self._returning: deque[LoopUser] = deque()
        """Agents that stepped aside, and have something to do again."""
        self._aside: set[Loop] = set()
        """Loops of agents that stepped aside."""
        self._full_since: float | None = None
        self._free: list[Loop] = []
        self._over: dict[Loop, asyncio.Event] = {}
        self._count = 0
        self._started = 0.0
        self._back = 0
        """Number of loops came back in this moment."""
        self._growth = GROWTH
        self._closing = False
        self.crowded: Callable[[], None] = lambda: None
        """Rung when agents begin to wait for a loop."""

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many there are, and how many of them nobody has."""
        return self._count, len(self._free)

    @property
    def are_short(self) -> bool:
        """Return True if agents wait for one, or for a place."""
        return bool(self._queue or self._returning)

    @property
    def awake(self) -> int:
        """Number of agents that have a place."""
        return self._count - len(self._free) - len(self._aside)

    @property
    def waiting(self) -> int:
        """Number of agents that wait for a place; most of them for a moment."""
        return len(self._queue) + len(self._returning)

    @property
    def short_for(self) -> float:
        """Seconds for which agents have waited while all places were taken."""
        since = self._full_since
        return 0.0 if since is None else self._context.host.clock.monotonic() - since

    @property
    def _is_full(self) -> bool:
        return self._count - len(self._aside) >= self._context.limits.awake_agents

    # --- places ----------------------------------------------------------------------------------

    def release_slot(self, presence: LoopUser) -> None:
        """Leave the place to others, if any wait; on the loop of the agent, whose turns all wait."""
        with self.lock:
            most = max(ASIDE, 2 * self._context.limits.awake_agents)
            if not self.are_short or presence.slot.is_released or len(self._aside) >= most:
                return
            presence.slot.is_released = True
            self._aside.add(presence.loop)
        self._admit()

    def request_slot(self, presence: LoopUser) -> None:
        """Give the agent a place again, when there is one."""
        with self.lock:
            self._returning.append(presence)
            spare = self._free.pop() if self._is_full and self._free else None
        if spare is not None:
            self.end(spare)
        self._admit()
        if self._returning:
            self.crowded()

    def _admit(self) -> None:
        """Fill the places that are free: agents that come back first, since others may wait for their answers."""
        begun: list[tuple[LoopUser, Loop]] = []
        returned: list[LoopUser] = []
        with self.lock:
            while not self._is_full and not self._closing:
                if self._returning:
                    presence = self._returning.popleft()
                    if not presence.phases.is_retired:
                        self._aside.discard(presence.loop)
                        presence.slot.is_released = False
                        returned.append(presence)
                elif self._aside and (following := self._following()) is not None:
                    begun.append((following, self._free.pop() if self._free else self._start()))
                else:
                    break
        for presence in returned:
            presence.slot.granted()
        for presence, loop in begun:
            self._attach(presence, loop)

    # --- lending ---------------------------------------------------------------------------------

    def lend(self, activations: Sequence[LoopUser], *, few: bool = True) -> None:
        """Each gets one now or when there is one; unless they are `few`, most wait for one that comes back."""
        lent: list[tuple[LoopUser, Loop]] = []
        with self.lock:
            waited = bool(self._queue)
            for activation in activations:
                if self._free:
                    lent.append((activation, self._free.pop()))
                elif self._may_start(few):
                    lent.append((activation, self._start()))
                elif activation.is_asked:
                    self._queue.appendleft(activation)
                else:
                    self._queue.append(activation)
            begins_to_wait = self._queue and not waited
        for activation, loop in lent:
            self._attach(activation, loop)
        if begins_to_wait:
            self.crowded()

    def give_back(self, loop: Loop, *, clean: bool) -> None:
        """Give it to a waiting agent, keep it warm, or end it; end it always if a task of a brain is left on it."""
        self._back += 1
        if self._returning or loop in self._aside:  # its place is another's, or is given to one that has a loop
            self.end(loop)
            return
        lasts = clean and loop in self._over
        following = self._following() if lasts else None  # without a lock: thousands may wait
        if following is None and lasts:
            with self.lock:
                following = self._following()
                if following is None and len(self._free) < self._context.limits.warm_loops:
                    self._free.append(loop)
                    return
        if following is not None:
            self._attach(following, loop)
        else:
            self.end(loop)

    def grow(self, resting: Sequence[LoopUser]) -> None:
        """Called every moment while agents wait. Idle agents give up their loops; if there are not enough of them,
        some are started, up to the bound."""
        self._admit()
        for activation in resting[: self.waiting]:
            activation.call(activation.retire_if_idle)
        back, self._back = self._back, 0
        if resting or (back and len(self._queue) / back * MOMENT < LONGEST):
            self._growth = GROWTH
            return
        growth, self._growth = self._growth, min(self._growth * 2, FASTEST)
        for _ in range(min(growth, len(self._queue))):
            with self.lock:
                if self._closing or self._is_full:
                    return
                following = self._following()
                if following is None:
                    return
                loop = self._start()
            self._attach(following, loop)

    def _following(self) -> LoopUser | None:
        while self._queue:
            try:
                activation = self._queue.popleft()
            except IndexError:
                return None  # somebody else was quicker
            if not activation.phases.is_retired:
                return activation
        return None

    def _attach(self, activation: LoopUser, loop: Loop) -> None:
        if not activation.attach(loop):  # it was retired while it waited
            self.give_back(loop, clean=True)

    def _may_start(self, few: bool) -> bool:
        limits, now = self._context.limits, self._context.host.clock.monotonic()
        if self._is_full:
            return False
        if self._count >= self.few and (not few or now - self._started < PACE):
            return False
        if self._count >= limits.warm_loops and not few:
            return False
        self._started = now
        return True

    def _start(self) -> Loop:
        self._count += 1
        return self._context.host.start_loop(f"roost-agent-{self._count}", self._keep, self._ended)

    async def _keep(self, loop: Loop) -> None:
        self._over[loop] = over = asyncio.Event()
        if self._closing:
            over.set()
        await over.wait()

    # --- ending ----------------------------------------------------------------------------------

    def end(self, loop: Loop) -> None:
        over = self._over.get(loop)
        if over is not None:
            loop.call(over.set)

    def end_all(self) -> list[Loop]:
        self._closing = True
        loops = list(self._over)
        with self._context.host.together():
            for loop in loops:
                self.end(loop)
        return loops

    def _ended(self, loop: Loop, error: BaseException | None) -> None:
        with self.lock:
            self._over.pop(loop, None)
            self._count -= 1
            self._aside.discard(loop)
            if loop in self._free:
                self._free.remove(loop)
        self._tell(loop, error)
        if self._returning or self._queue:
            self._admit()

    def watch(self) -> None:
        """Called again and again: note since when agents have waited for a place."""
        if not (self.are_short and self._is_full):
            self._full_since = None
        elif self._full_since is None:
            self._full_since = self._context.host.clock.monotonic()
