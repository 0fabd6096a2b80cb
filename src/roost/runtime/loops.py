"""The loops that agents are lent while they are awake, a thread each.

A few are kept warm; more are started only when those that are lent do not come back within a moment, since
starting one takes longer than most agents take to do what woke them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from roost.ports import Loop
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.presence import Presence

FEW = 128
"""So many agents may be woken at once and get a loop each: they are few enough to stay awake."""
PACE = 0.001
"""Seconds between two loops that are started at once, beyond those few."""
MOMENT = 0.01
"""Seconds that an agent waits for a loop to come back before one is started for it."""
GROWTH = 32
"""Loops that are started in a moment in which none came back; twice as many in the next one."""
FASTEST = 256
LONGEST = 2.0
"""Seconds that agents may be kept waiting by those who do give their loops back."""


class Loops:
    """Any thread may call. `ended` is told, on the dying thread, of a loop that is no more."""

    def __init__(self, shop: Shop, ended: Callable[[Loop, BaseException | None], None]) -> None:
        self._shop = shop
        self._tell = ended
        self.lock = shop.host.lock()
        self.few = max(FEW, shop.limits.warm_loops)
        self._queue: deque[Presence] = deque()
        self._free: list[Loop] = []
        self._over: dict[Loop, asyncio.Event] = {}
        self._count = 0
        self._started = 0.0
        self._back = 0
        """How many loops came back in this moment."""
        self._growth = GROWTH
        self._closing = False
        self.crowded: Callable[[], None] = lambda: None
        """Rung when agents begin to wait for a loop."""

    @property
    def counts(self) -> tuple[int, int]:
        """How many there are, and how many of them nobody has."""
        return self._count, len(self._free)

    @property
    def are_short(self) -> bool:
        """Whether agents wait for one."""
        return bool(self._queue)

    # --- lending ---------------------------------------------------------------------------------

    def lend(self, activations: Sequence[Presence], *, few: bool = True) -> None:
        """Each gets one now or when there is one; unless they are `few`, most wait for one that comes back."""
        lent: list[tuple[Presence, Loop]] = []
        with self.lock:
            waited = bool(self._queue)
            for activation in activations:
                if self._free:
                    lent.append((activation, self._free.pop()))
                elif self._may_start(few):
                    lent.append((activation, self._start()))
                else:
                    self._queue.append(activation)
            begins_to_wait = self._queue and not waited
        for activation, loop in lent:
            activation.begin(loop)
        if begins_to_wait:
            self.crowded()

    def give_back(self, loop: Loop, *, clean: bool) -> None:
        """It is lent to whoever waits, kept warm, or ended; always so if something of a brain's is left on it."""
        self._back += 1
        lasts = clean and loop in self._over
        following = self._following() if lasts else None  # without a lock: thousands may wait
        if following is None and lasts:
            with self.lock:
                following = self._following()
                if following is None and len(self._free) < self._shop.limits.warm_loops:
                    self._free.append(loop)
                    return
        if following is not None:
            following.begin(loop)
        else:
            self.end(loop)

    def grow(self, resting: Sequence[Presence]) -> None:
        """Called every moment while agents wait. Those who rest give their loops; if there are not enough of them,
        some are started, up to the bound."""
        for activation in resting[: len(self._queue)]:
            activation.call(activation.retire)
        back, self._back = self._back, 0
        if resting or (back and len(self._queue) / back * MOMENT < LONGEST):
            self._growth = GROWTH
            return
        growth, self._growth = self._growth, min(self._growth * 2, FASTEST)
        for _ in range(min(growth, len(self._queue))):
            with self.lock:
                if self._closing or self._count >= self._shop.limits.awake_agents:
                    return
                following = self._following()
                if following is None:
                    return
                loop = self._start()
            following.begin(loop)

    def _following(self) -> Presence | None:
        while self._queue:
            try:
                activation = self._queue.popleft()
            except IndexError:
                return None  # somebody else was quicker
            if not activation.retired:
                return activation
        return None

    def _may_start(self, few: bool) -> bool:
        limits, now = self._shop.limits, self._shop.host.clock.monotonic()
        if self._count >= limits.awake_agents:
            return False
        if self._count >= self.few and (not few or now - self._started < PACE):
            return False
        if self._count >= limits.warm_loops and not few:
            return False
        self._started = now
        return True

    def _start(self) -> Loop:
        self._count += 1
        return self._shop.host.start_loop(f"roost-agent-{self._count}", self._keep, self._ended)

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
        with self._shop.host.together():
            for loop in loops:
                self.end(loop)
        return loops

    def _ended(self, loop: Loop, error: BaseException | None) -> None:
        with self.lock:
            self._over.pop(loop, None)
            self._count -= 1
            if loop in self._free:
                self._free.remove(loop)
        self._tell(loop, error)
