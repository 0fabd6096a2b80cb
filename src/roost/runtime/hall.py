"""The hall: which agents are awake here, each on a loop of its own, borrowed while it is awake.

Loops are lent from a pool. A few are kept warm; more are started only when those that are lent do not come
back within a moment, since starting one takes longer than most agents take to do what woke them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from roost.core.envelopes import Effect, Envelope, Taken, Verdict, WorkClosing, WorkSettled
from roost.core.facts import Name
from roost.core.runs import Outcome, Why
from roost.errors import Unavailable
from roost.ports import Loop, Now, Pending
from roost.runtime.activation import Activation
from roost.runtime.office import Office
from roost.runtime.settler import Settler
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.agents import Agents
    from roost.runtime.inbox import Inbox
    from roost.runtime.waker import Waker
    from roost.runtime.worker import TalkLanes

log = logging.getLogger("roost.hall")

LOST = 5.0
"""Seconds after which a look that has not come back is taken for lost."""
PACE = 0.001
"""Seconds between two loops that are started at once, beyond those that are kept warm."""
GROWTH = 32
"""Loops that are started in a moment: most agents have done what woke them before that."""
MOMENT = 0.01
"""Seconds that an agent waits for a loop to come back before one is started for it."""
IN_MEMORY = 100_000
"""Envelopes that are kept in memory, of all agents; more stay in the store until there is room."""


class Hall:
    """Any thread may call."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.office = Office(shop, self)
        self.settler = Settler(shop, self)
        self.load: float | None = None
        """The share of the processors in use, as last looked at."""
        self.closing = False
        self._lock = shop.host.lock()
        self._awake: dict[str, Activation] = {}
        self._looking: dict[str, tuple[float, bool]] = {}
        """Who is being looked at since when, and whether once more after that: one look at a time."""
        self._queue: deque[Activation] = deque()
        self._free: list[Loop] = []
        self._loops: dict[Loop, asyncio.Event | None] = {}
        self._count = 0
        self._started = 0.0
        self.crowded: Callable[[], None] = lambda: None
        """Rung when agents begin to wait for a loop."""
        self.waker: Waker | None = None
        self.inbox: Inbox
        """Where talks are handed over; set by whoever starts the parts."""
        self.agents: Agents
        self.asked: dict[str, Pending[Any]] = {}
        """Turns here that wait for an answer, by the id of what they asked."""
        self.waiters: dict[str, list[Pending[Any]]] = {}
        """Who waits for a task to be over."""
        self.leaving: list[tuple[float, Activation]] = []
        """Stopped, and not at rest yet: since when."""

    # --- who is awake ----------------------------------------------------------------------------

    def is_awake(self, address: str) -> bool:
        return address in self._awake

    def awake(self, address: str) -> Activation | None:
        return self._awake.get(address)

    def has_room(self, address: str, count: int) -> bool:
        """Whether so many more can be handed over to it; whoever is not awake fetches all of it anyway."""
        activation = self._awake.get(address)
        return activation is None or activation.has_room(count)

    @property
    def share(self) -> int:
        """How many envelopes each of those who are awake may have in memory."""
        return max(100, min(10_000, IN_MEMORY // (len(self._awake) + 1)))

    def all(self) -> list[Activation]:
        return list(self._awake.values())

    @property
    def loops(self) -> tuple[int, int]:
        """How many there are, and how many of them nobody has."""
        return self._count, len(self._free)

    @property
    def is_crowded(self) -> bool:
        """Whether agents wait for a loop."""
        return bool(self._queue)

    # --- after a commit, on the writer's thread --------------------------------------------------

    def settled(self, closings: tuple[WorkClosing, ...], all_settled: tuple[WorkSettled, ...]) -> None:
        self.shop.monitor.settled(closings, all_settled)
        self.deliver(tuple(envelope for one in all_settled for envelope in one.posted))
        for one in all_settled:
            if one.over is not None:
                self.tell(one.over)
            if one.answered is not None and (bell := self.asked.get(one.answered)) is not None:
                bell.set(None)

    def tell(self, task_id: str) -> None:
        """Whoever waits for this task looks again."""
        for bell in self.waiters.pop(task_id, ()):
            bell.set(None)

    def unlisten(self, task_id: str, bell: Pending[Any]) -> None:
        bells = self.waiters.get(task_id)
        if bells is not None:
            if bell in bells:
                bells.remove(bell)
            if not bells:
                self.waiters.pop(task_id, None)

    def sent(self, address: str, effect: Effect, envelopes: tuple[Envelope, ...]) -> None:
        """A person has sent something; `address` says to which agent, or `ann/` in whose name."""
        self.shop.monitor.sent(address, (effect,), envelopes)
        self.posted(envelopes)

    def posted(self, envelopes: tuple[Envelope, ...] | None) -> None:
        if envelopes:
            self.deliver(envelopes)

    def deliver(self, envelopes: tuple[Envelope, ...]) -> None:
        """Hand over what was posted; whoever is not awake is looked at."""
        self.shop.monitor.posted(envelopes)
        now = self.shop.host.clock.now()
        boxes: dict[str, list[Envelope]] = {}
        for envelope in envelopes:
            if envelope.due > now:
                self.ring(envelope.due)
                if not self.is_awake(envelope.address):
                    self.look(envelope.address)  # it may be what a sleeper waits for
            else:
                boxes.setdefault(envelope.address, []).append(envelope)
        for address, box in boxes.items():
            with self._lock:
                activation = self._awake.get(address)
                if activation is not None:
                    activation.put(tuple(box))
            if activation is None:
                self.look(address)

    def ring(self, due: float) -> None:
        """A timer was set for then."""
        if self.waker is not None:
            self.waker.ring(due)

    def look(self, address: str) -> None:
        """Look into the store what an agent has to do, and whether it may; the rest follows by itself."""
        if self.closing:
            return
        host = self.shop.host
        moment = host.clock.monotonic()
        with self._lock:
            since = self._looking.get(address)
            if since is not None and moment - since[0] < LOST:
                self._looking[address] = (since[0], True)
                return
            self._looking[address] = (moment, False)
        now = Now(host.clock.now(), host.new_id("change"), self.load, len(self._awake))
        anew = address not in self._awake
        try:
            self.shop.store.write(self.shop.statements.agents.take, address, now, anew, key=address, then=self._taken)
        except Unavailable as error:
            log.warning("an agent is looked at later: %s", error, extra={"agent": address})

    def _taken(self, taken: Taken) -> None:
        with self._lock:
            _, again = self._looking.pop(taken.address, (0.0, False))
        if taken.woken is not None:
            self.shop.monitor.tell(Name.AGENT_WOKE, taken.address, {"reason": taken.woken})
        self._give(taken)
        if again:
            self.look(taken.address)

    def _give(self, taken: Taken) -> None:
        if not taken.ready:
            return
        if self.closing:
            self._put_back(taken)
            return
        with self._lock:
            known = activation = self._awake.get(taken.address)
            if activation is None and taken.anew and (taken.envelopes or taken.talks):
                activation = self._awake[taken.address] = Activation(self, taken)
            if activation is not None:
                activation.put(taken.envelopes, taken=True, more=taken.more)
        if activation is None:
            if not taken.anew:  # it came to rest while it was looked at
                self.look(taken.address)
            return
        if known is None:
            self._lend(activation)
        for talk_id, user_id in taken.talks:
            if not self.inbox.holds(talk_id):
                self.inbox.deliver(talk_id, user_id, None, taken.address)

    def _put_back(self, taken: Taken) -> None:
        """Nobody begins anything any more: what was just taken was not tried."""
        now = self.shop.host.clock.now()
        closings = tuple(
            WorkClosing("", envelope, taken.epoch, Verdict.RELEASED, "", now, now)
            for envelope in taken.envelopes
            if envelope.claimed
        )
        if closings:
            with suppress(Unavailable):
                self.shop.store.write(self.shop.statements.inbox.settle, closings, key=taken.address)

    def release_talk(self, keeper: TalkLanes, talk_id: str) -> bool:
        return self.inbox.release(keeper, talk_id)

    # --- lending loops ---------------------------------------------------------------------------

    def _lend(self, activation: Activation) -> None:
        with self._lock:
            if self._free:
                loop = self._free.pop()
            elif self._may_start():
                loop = self._start_loop()
            else:
                self._queue.append(activation)
                if len(self._queue) == 1:
                    self.crowded()
                return
        activation.begin(loop)

    def _may_start(self) -> bool:
        """Few at once are given a loop each; of many, most wait for one that comes back."""
        limits, now = self.shop.limits, self.shop.host.clock.monotonic()
        if self._count >= limits.warm_loops and (now - self._started < PACE or self._count >= limits.awake_agents):
            return False
        self._started = now
        return True

    def grow(self) -> None:
        """Called every moment while agents wait: start some loops for those that do, up to the bound."""
        for _ in range(min(GROWTH, len(self._queue))):
            if self.closing:
                return
            with self._lock:
                if self._count >= self.shop.limits.awake_agents or not self._queue:
                    return
                activation, loop = self._queue.popleft(), self._start_loop()
            activation.begin(loop)

    def _start_loop(self) -> Loop:
        self._count += 1
        return self.shop.host.start_loop(f"roost-agent-{self._count}", self._keep, self._ended)

    async def _keep(self, loop: Loop) -> None:
        self._loops[loop] = over = asyncio.Event()
        if self.closing:
            over.set()
        await over.wait()

    def _ended(self, loop: Loop, error: BaseException | None) -> None:
        """Called on the dying thread."""
        with self._lock:
            self._loops.pop(loop, None)
            self._count -= 1
            if loop in self._free:
                self._free.remove(loop)
        for activation in self.all():
            if activation.begun and activation.loop is loop and not self.closing:
                log.error("the thread of an agent has ended", exc_info=error, extra={"agent": activation.address})
                self.lose(activation)

    def _give_back(self, activation: Activation) -> None:
        loop = activation.loop
        with self._lock:
            following = self._queue.popleft() if self._queue else None
            spare = len(self._free) >= self.shop.limits.warm_loops
            if following is None and not spare and activation.is_clean and loop in self._loops:
                self._free.append(loop)
                return
        if following is not None and activation.is_clean:
            following.begin(loop)
            return
        self._end_loop(loop)
        if following is not None:
            self._lend(following)

    def _end_loop(self, loop: Loop) -> None:
        over = self._loops.get(loop)
        if over is not None:
            loop.call(over.set)

    # --- coming to rest --------------------------------------------------------------------------

    def release(self, activation: Activation) -> None:
        """It has nothing to do, or may not go on: it gives its loop back, unless something has just come for it."""
        with self._lock:
            if activation.retired or activation.inbound:
                return  # what has just come is looked at first, and then it comes here again
            again = activation.ending
            self._forget(activation)
            activation.talks.retired = True
        self._give_back(activation)
        if again:  # what came meanwhile may wake it again
            self.look(activation.address)

    def dismiss(self, address: str) -> None:
        """It was stopped or deleted: whatever it does counts for nothing any more."""
        with self._lock:
            activation = self._awake.pop(address, None)
        if activation is not None:
            for lane in list(activation.lanes.values()):
                if lane.work is not None:
                    lane.work.fence(Why.DRAIN, self.shop.host.clock.now())
            self.inbox.forget(activation.talks, Why.DRAIN)
            self.leaving.append((self.shop.host.clock.monotonic(), activation))
            activation.call(activation.end)

    def lose(self, activation: Activation) -> None:
        """Its thread or its tasks are no more: what it did is tried again on another loop."""
        with self._lock:
            if activation.retired:
                return
            self._forget(activation)
        now = self.shop.host.clock.now()
        for lane in list(activation.lanes.values()):
            if lane.work is not None:
                lane.work.fence(Why.LOST, now)
                self.shop.monitor.cut_off(lane.work.envelope, lane.work.run_id, Outcome.LOST, lane.work.started)
        self.inbox.forget(activation.talks, Why.LOST)
        self._end_loop(activation.loop)
        self.look(activation.address)

    def _forget(self, activation: Activation) -> None:
        activation.retired = True
        if self._awake.get(activation.address) is activation:
            del self._awake[activation.address]
        self.leaving = [(since, one) for since, one in self.leaving if one is not activation]

    def insist(self) -> None:
        """Give up the loops of agents that were stopped and do not come to rest."""
        latest = self.shop.host.clock.monotonic() - self.shop.limits.stop_patience - 1.0
        for since, activation in list(self.leaving):
            if since < latest:
                log.error("an agent would not stop and was abandoned", extra={"agent": activation.address})
                with self._lock:
                    self._forget(activation)
                if activation.begun:
                    activation.loop.abandon()

    async def close(self) -> None:
        """No new work; what runs gets a bounded time to end, and what did not end is tried again at the next start."""
        self.closing = True
        clock, limits = self.shop.host.clock, self.shop.limits
        latest = clock.monotonic() + limits.drain
        for activation in self.all():
            activation.call(activation.finish)
        for activation in self.all():
            if activation.begun:
                await activation.at_rest.within(max(0.0, latest - clock.monotonic()))
        for activation in self.all():
            activation.call(activation.end)
        latest = clock.monotonic() + limits.stop_patience + 1.0
        for activation in self.all():
            if activation.begun:
                await activation.at_rest.within(max(0.0, latest - clock.monotonic()))
        loops = list(self._loops)
        for loop in loops:
            self._end_loop(loop)
        for loop in loops:
            if await loop.over.within(max(0.5, latest + 1.0 - clock.monotonic())):
                loop.join()
