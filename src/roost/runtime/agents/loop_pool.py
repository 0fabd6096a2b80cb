"""Pool of loops for awake agents, one thread each.

A few loops are kept warm. More are started only when no loop in use is returned within a moment, because starting one
takes longer than most agents work.

`awake_agents` is the number of slots. An agent has a slot while it has a loop, with one exception: if other agents wait
for a slot, an agent all of whose turns wait for an answer releases its slot. It keeps its loop, and starts or continues
no turn until it has a slot again. Agents that were sent a request get a slot first: others wait for their answers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from roost.ports import Loop
from roost.runtime.agents.phase import PhaseMachine
from roost.runtime.agents.slot import Slot
from roost.runtime.context import RuntimeContext

FEW = 128
"""Agents that can wake at once with a new loop each."""
PACE = 0.001
"""Seconds between two loops that are started at once, beyond those few."""
MOMENT = 0.01
"""Seconds that an agent waits for a returned loop before one is started for it."""
GROWTH = 32
"""Loops that are started in a moment in which none was returned; twice as many in the next one."""
FASTEST = 256
RELEASED = 256
"""Slots that can be released at a time, at least; twice the number of slots, if that is more."""
LONGEST = 2.0
"""Seconds that agents may wait for returned loops before new loops are started."""


class LoopUser(Protocol):
    """An activation, as the pool sees it."""

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
        self._report_end = ended
        self.lock = context.host.lock()
        self.few = max(FEW, context.limits.warm_loops)
        self._queue: deque[LoopUser] = deque()
        """Agents that wait for a loop."""
        self._regaining: deque[LoopUser] = deque()
        """Agents that have released their slot and need it again."""
        self._released: set[Loop] = set()
        """Loops of agents that have released their slot."""
        self._full_since: float | None = None
        self._free: list[Loop] = []
        self._over: dict[Loop, asyncio.Event] = {}
        self._count = 0
        self._started = 0.0
        self._returned = 0
        """Number of loops that were returned in this moment."""
        self._growth = GROWTH
        self._closing = False
        self._on_shortage: Callable[[], None] = lambda: None

    def listen(self, on_shortage: Callable[[], None]) -> None:
        """Have `on_shortage` called when agents begin to wait for a loop or a slot."""
        self._on_shortage = on_shortage

    @property
    def counts(self) -> tuple[int, int]:
        """Return the number of loops, and of those that are free."""
        return self._count, len(self._free)

    @property
    def is_short(self) -> bool:
        """Return True if agents wait for a loop or a slot."""
        return bool(self._queue or self._regaining)

    @property
    def awake(self) -> int:
        """Number of agents that have a slot."""
        return self._count - len(self._free) - len(self._released)

    @property
    def waiting(self) -> int:
        """Number of agents that wait for a slot; most of them for a moment."""
        return len(self._queue) + len(self._regaining)

    @property
    def short_for(self) -> float:
        """Seconds for which agents have waited while all slots were in use."""
        since = self._full_since
        return 0.0 if since is None else self._context.host.clock.monotonic() - since

    @property
    def _is_full(self) -> bool:
        return self._count - len(self._released) >= self._context.limits.awake_agents

    # --- slots -----------------------------------------------------------------------------------

    def release_slot(self, user: LoopUser) -> None:
        """Release the slot of an agent whose turns all wait, if others wait for one; on its loop."""
        with self.lock:
            most = max(RELEASED, 2 * self._context.limits.awake_agents)
            if not self.is_short or user.slot.is_released or len(self._released) >= most:
                return
            user.slot.is_released = True
            self._released.add(user.loop)
        self._admit()

    def request_slot(self, user: LoopUser) -> None:
        """Give the agent a slot again, now or when there is one."""
        with self.lock:
            self._regaining.append(user)
            spare = self._free.pop() if self._is_full and self._free else None
        if spare is not None:
            self.end(spare)
        self._admit()
        if self._regaining:
            self._on_shortage()

    def _admit(self) -> None:
        """Fill free slots: first with agents that regain one, since others may wait for their answers."""
        attached: list[tuple[LoopUser, Loop]] = []
        regained: list[LoopUser] = []
        with self.lock:
            while not self._is_full and not self._closing:
                if self._regaining:
                    user = self._regaining.popleft()
                    if not user.phases.is_retired:
                        self._released.discard(user.loop)
                        user.slot.is_released = False
                        regained.append(user)
                elif self._released and (waiting := self._next_waiting()) is not None:
                    attached.append((waiting, self._free.pop() if self._free else self._start()))
                else:
                    break
        for user in regained:
            user.slot.granted()
        for user, loop in attached:
            self._attach(user, loop)

    # --- loops -----------------------------------------------------------------------------------

    def assign(self, activations: Sequence[LoopUser], *, few: bool = True) -> None:
        """Give each agent a loop, now or when there is one; unless they are `few`, most wait for a returned one."""
        assigned: list[tuple[LoopUser, Loop]] = []
        with self.lock:
            were_waiting = bool(self._queue)
            for activation in activations:
                if self._free:
                    assigned.append((activation, self._free.pop()))
                elif self._may_start(few):
                    assigned.append((activation, self._start()))
                elif activation.is_asked:
                    self._queue.appendleft(activation)
                else:
                    self._queue.append(activation)
            begins_to_wait = self._queue and not were_waiting
        for activation, loop in assigned:
            self._attach(activation, loop)
        if begins_to_wait:
            self._on_shortage()

    def return_loop(self, loop: Loop, *, clean: bool) -> None:
        """Assign it to a waiting agent, keep it warm, or end it. Unless it is `clean`, an abandoned task runs there."""
        self._returned += 1
        if self._regaining or loop in self._released:  # its slot is in use, or goes to an agent that has a loop
            self.end(loop)
            return
        is_usable = clean and loop in self._over
        waiting = self._next_waiting() if is_usable else None  # without a lock: thousands may wait
        if waiting is None and is_usable:
            with self.lock:
                waiting = self._next_waiting()
                if waiting is None and len(self._free) < self._context.limits.warm_loops:
                    self._free.append(loop)
                    return
        if waiting is not None:
            self._attach(waiting, loop)
        else:
            self.end(loop)

    def grow(self, idle: Sequence[LoopUser]) -> None:
        """Have idle agents return their loops; if there are not enough of them, start some, up to the limit.

        Called every moment while agents wait.
        """
        self._admit()
        for activation in idle[: self.waiting]:
            activation.call(activation.retire_if_idle)
        returned, self._returned = self._returned, 0
        if idle or (returned and len(self._queue) / returned * MOMENT < LONGEST):
            self._growth = GROWTH
            return
        growth, self._growth = self._growth, min(self._growth * 2, FASTEST)
        for _ in range(min(growth, len(self._queue))):
            with self.lock:
                if self._closing or self._is_full:
                    return
                waiting = self._next_waiting()
                if waiting is None:
                    return
                loop = self._start()
            self._attach(waiting, loop)

    def _next_waiting(self) -> LoopUser | None:
        while self._queue:
            try:
                activation = self._queue.popleft()
            except IndexError:
                return None  # another thread took it
            if not activation.phases.is_retired:
                return activation
        return None

    def _attach(self, activation: LoopUser, loop: Loop) -> None:
        if not activation.attach(loop):  # it was retired while it waited; the loop may not have started yet
            loop.call(partial(self.return_loop, loop, clean=True))

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
            self._released.discard(loop)
            if loop in self._free:
                self._free.remove(loop)
        self._report_end(loop, error)
        if self._regaining or self._queue:
            self._admit()

    def watch(self) -> None:
        """Note since when agents have waited for a slot; called periodically."""
        if not (self.is_short and self._is_full):
            self._full_since = None
        elif self._full_since is None:
            self._full_since = self._context.host.clock.monotonic()
