"""An activation: an agent that is awake, on a loop of its own, with the lanes it works on.

Envelopes come in on any thread and are put into lanes; lanes that can go on wait in order of urgency; up to
`max_concurrent_tasks` of them are worked on at a time, each by a task that takes lane after lane. What a
try leaves behind is written in groups: one write is under way, and the others gather behind it.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from roost.core.addresses import of_key
from roost.core.agents import AgentConfig, State
from roost.core.envelopes import Change, Envelope, Kind, Recorded, Taken, Verdict, WorkClosing, WorkSettled
from roost.core.runs import Why
from roost.errors import Invalid, Unavailable
from roost.ports import Loop, Pending, Profile
from roost.runtime.shop import Shop
from roost.runtime.work import Work

if TYPE_CHECKING:
    from roost.runtime.hall import Hall

log = logging.getLogger("roost.agent")

IN_MEMORY = 2_000
"""Envelopes of one agent that are kept in memory; more stay in the store until there is room."""


class _Lane:
    __slots__ = ("busy", "due", "name", "waiting", "work")

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: deque[Envelope] = deque()
        self.busy = False
        self.work: Work | None = None
        self.due = 0.0
        """When its first envelope is tried again, if it failed before."""


class Activation:
    """`put`, `call` and what is read are for any thread; everything else happens on the loop."""

    loop: Loop

    def __init__(self, hall: Hall, taken: Taken) -> None:
        self.hall = hall
        self.shop: Shop = hall.shop
        self.office = hall.office
        self.address = taken.address
        self.owner, self.agent_id = of_key(taken.address).user_id, str(of_key(taken.address).agent_id)
        self.full_address = f"agent:{taken.address}"
        self.config = AgentConfig.from_json(taken.config)
        self.epoch = taken.epoch
        self.memory_text = taken.memory
        self.letters: dict[str, Any] = {}
        self.state = State.IDLE
        self.depth = 0
        self.lanes: dict[str, _Lane] = {}
        self.inbound: deque[Callable[[], None]] = deque()
        self.begun = False
        self.retired = False
        """It is no more: what it still does counts for nothing."""
        self.ending = False
        """It begins nothing new: it is stopped, falls asleep, is paused, or the program closes."""
        self._known: set[str] = set()
        self._ready: list[tuple[float, str, str]] = []
        self._servers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._orphans: set[asyncio.Task[Any] | None] = set()
        self._closings: list[tuple[WorkClosing, _Lane]] = []
        self._writing = False
        self._changes: list[Change] = []
        self._more = False
        self._rung = False
        self._rest: asyncio.TimerHandle | None = None
        self.at_rest: Pending[None] = hall.shop.host.pending()

    # --- from any thread -------------------------------------------------------------------------

    def put(self, envelopes: tuple[Envelope, ...], *, more: bool = False) -> None:
        self.call(partial(self._accept, envelopes, more))

    def call(self, act: Callable[[], None]) -> None:
        """Do it on the loop, in order; while there is none yet, when it has one."""
        self.inbound.append(act)
        if self.begun and not self._rung:
            self._rung = True
            self.loop.call(self._drain)

    def begin(self, loop: Loop) -> None:
        """It has a loop now."""
        self.loop = loop
        self.begun = True
        self._rung = True
        loop.call(self._drain)

    @property
    def is_clean(self) -> bool:
        """Whether its loop can be lent to another: nothing of a brain's is left on it."""
        return not self._orphans

    @property
    def running(self) -> tuple[Envelope, ...]:
        lanes = list(self.lanes.values())
        return tuple(work.envelope for lane in lanes if (work := lane.work) is not None)

    # --- on the loop: what comes in --------------------------------------------------------------

    def _drain(self) -> None:
        self._rung = False
        if self.retired:
            return
        inbound = self.inbound
        while inbound:
            act = inbound.popleft()
            try:
                act()
            except Exception:  # one that fails must not keep the others from being done
                log.exception("a delivery has failed", extra={"agent": self.address})
        self._go_on()

    def _accept(self, envelopes: tuple[Envelope, ...], more: bool) -> None:
        self._more = self._more or more
        for envelope in envelopes:
            if envelope.envelope_id in self._known:
                continue
            if len(self._known) >= IN_MEMORY:
                self._more = True
                return
            self._known.add(envelope.envelope_id)
            lane = self.lanes.get(envelope.lane)
            if lane is None:
                lane = self.lanes[envelope.lane] = _Lane(envelope.lane)
            self._queue(lane, envelope)
        self.depth = len(self._known)

    def _queue(self, lane: _Lane, envelope: Envelope) -> None:
        waiting = lane.waiting
        if waiting and waiting[-1].envelope_id > envelope.envelope_id:  # from the store, and older than what came since
            ordered = sorted([*waiting, envelope], key=lambda e: e.envelope_id)
            waiting.clear()
            waiting.extend(ordered)
        else:
            waiting.append(envelope)
        # A lane is as urgent as the most urgent in it: it is listed again, and what is listed twice is skipped.
        if not lane.busy and not lane.due:
            heapq.heappush(self._ready, (envelope.rank, envelope.envelope_id, lane.name))

    def _go_on(self) -> None:
        """Start as many tasks as there are lanes to work on, up to the bound; rest if there is nothing at all."""
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        room = min(self.config.max_concurrent_tasks - self._servers, len(self._ready))
        if not self.ending:
            for _ in range(room):
                self._servers += 1
                task = asyncio.get_running_loop().create_task(self._serve(), name=f"agent {self.address}")
                self._tasks.add(task)
                task.add_done_callback(self._served)
        if not self._servers and not self._closings and not self._writing:
            self._idle()

    def _idle(self) -> None:
        if self._changes:
            changes, self._changes = tuple(self._changes), []
            self.shop.store.write(self.shop.statements.agents.note, self.address, changes, key=self.address)
        if self.ending:
            self._let_go()
        elif self._more:
            self._more = False
            self.hall.look(self.address)
        elif not self.lanes:
            wait = 0.0 if self.hall.is_crowded else self.config.idle_timeout
            self._rest = asyncio.get_running_loop().call_later(wait, self._retire)
        elif not self._ready:  # only what is tried again later: the timer in the store sees to it
            self._rest = asyncio.get_running_loop().call_later(self.config.idle_timeout, self._retire)

    def _let_go(self) -> None:
        """What was handed over and never begun was not tried."""
        now = self.shop.host.clock.now()
        begun = [e for lane in self.lanes.values() for e in lane.waiting if e.claimed and not lane.due]
        self.lanes.clear()
        self._ready.clear()
        if begun:
            released = [WorkClosing("", e, self.epoch, Verdict.RELEASED, "", now, now) for e in begun]
            self._closings = [(closing, _Lane("")) for closing in released]
            self._writing = True
            self._write()
            return
        self.at_rest.set(None)
        self.hall.release(self)

    def _retire(self) -> None:
        self._rest = None
        if not self._servers and not self._closings and not self._writing and not self._ready:
            self.hall.release(self)

    # --- working ---------------------------------------------------------------------------------

    async def _serve(self) -> None:
        me = asyncio.current_task()
        while not self.ending and me not in self._orphans and (lane := self._next()) is not None:
            lane.busy = True
            await self._handle(lane)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task in self._orphans:
            self._orphans.discard(task)
            return
        self._servers -= 1
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None and not self.ending:
            log.error("the work of an agent was cut off", exc_info=error, extra={"agent": self.address})
            self.hall.lose(self)
        else:
            self._go_on()

    def _next(self) -> _Lane | None:
        while self._ready:
            _, _, name = heapq.heappop(self._ready)
            lane = self.lanes.get(name)
            if lane is not None and not lane.busy and lane.waiting and not lane.due:
                return lane
        return None

    async def _handle(self, lane: _Lane) -> None:
        envelope = lane.waiting[0]
        recorded: tuple[Recorded, ...] = ()
        now = self.shop.host.clock.now()
        if envelope.expires is not None and envelope.expires <= now:
            self._close(_expired(envelope, self.epoch, now), lane)
            return
        if not envelope.claimed or envelope.kind is Kind.MAIL:
            claimed = await self._claim(envelope)
            if claimed is None or self.ending:
                self._forget(lane, envelope)
                return
            envelope, recorded = claimed
        if envelope.attempts > envelope.most_attempts:  # its tries were cut off: it may have cut them off
            self._close(_worn_out(envelope, self.epoch, now), lane)
            return
        lane.work = work = Work(self, envelope, recorded)
        if self.state is State.IDLE:
            self._move(State.ACTIVE, f"{envelope.kind} from {envelope.sender}")
        await work.think()
        if lane.work is work and work.why is not Why.LOST:
            self._close(work.closing(), lane)

    async def _claim(self, envelope: Envelope) -> tuple[Envelope, tuple[Recorded, ...]] | None:
        while not self.ending:
            try:
                if envelope.kind is Kind.MAIL and not await self._read_letter(envelope):
                    return None
                if envelope.claimed:
                    return envelope, ()
                claimed = await self.shop.store.write(
                    self.shop.statements.inbox.claim, envelope, self.epoch, key=self.address
                )
                return (replace(envelope, attempts=claimed[0], claimed=True), claimed[1]) if claimed else None
            except Unavailable as error:
                await self._patience(error)
        return None

    async def _read_letter(self, envelope: Envelope) -> bool:
        letter = await self.shop.store.read(self.shop.statements.mail.letter, envelope.body)
        if letter is not None:
            self.letters[envelope.envelope_id] = letter
        return letter is not None

    def profile(self) -> Profile:
        brains = self.shop.brains
        try:
            return brains.profile(self.config.profile or brains.default)
        except Invalid:
            return Profile(self.config.profile, "")

    def remember(self, before: str | None, after: str) -> str:
        """Take over what a turn has changed in the memory it was given, beside what others have changed since."""
        if self.memory_text == before:
            self.memory_text = after
            return after
        was, new = json.loads(before or "{}"), json.loads(after)
        merged = json.loads(self.memory_text or "{}")
        for name in was.keys() - new.keys():
            merged.pop(name, None)
        merged |= {name: value for name, value in new.items() if name not in was or was[name] != value}
        self.memory_text = json.dumps(merged)
        return self.memory_text

    # --- settling --------------------------------------------------------------------------------

    def _close(self, closing: WorkClosing, lane: _Lane) -> None:
        """The next in the lane may begin before this is written: if it is refused, all of it is discarded."""
        lane.work, lane.busy = None, False
        if closing.verdict is Verdict.RETRY:
            lane.due = closing.due
            pause = max(0.0, closing.due - self.shop.host.clock.now())
            asyncio.get_running_loop().call_later(pause, self._again, lane, closing)
        else:
            lane.waiting.popleft()
            self._list(lane)
        if self.state is State.ACTIVE and not self._ready and not self._works():
            self._move(State.IDLE, "nothing left to do")
        if closing.verdict is Verdict.CANCELLED:  # whoever cancelled it has written so
            self._known.discard(closing.envelope.envelope_id)
            return
        if self._changes:
            closing = replace(closing, changes=tuple(self._changes))
            self._changes.clear()
        self._closings.append((closing, lane))
        if not self._writing:
            self._writing = True
            self._write()

    def _write(self) -> None:
        group, self._closings = self._closings, []
        closings = tuple(closing for closing, _ in group)
        pending = self.shop.store.write(
            self.shop.statements.inbox.settle, closings, key=self.address, then=self.hall.settled
        )
        task = asyncio.get_running_loop().create_task(self._written(group, pending), name=f"settle {self.address}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _written(self, group: list[tuple[WorkClosing, _Lane]], pending: Any) -> None:
        try:
            settled: tuple[WorkSettled, ...] = await pending
        except Unavailable as error:
            await self._patience(error)
            self._closings = group + self._closings
            self._write()
            return
        for (closing, _), one in zip(group, settled, strict=True):
            if closing.verdict is not Verdict.RETRY:
                self._known.discard(closing.envelope.envelope_id)
            if not one.taken and closing.verdict is not Verdict.RELEASED:
                self.ending = True  # whoever stopped it, or took it over, has the rest
            if one.taken and closing.sleep is not None:
                self.ending = True
        self.depth = len(self._known)
        if self._closings:
            self._write()
        else:
            self._writing = False
            self._go_on()

    def _again(self, lane: _Lane, closing: WorkClosing) -> None:
        lane.due = 0.0
        if lane.waiting and lane.waiting[0].envelope_id == closing.envelope.envelope_id:
            lane.waiting[0] = replace(closing.envelope, claimed=False)
        self._list(lane)
        self._go_on()

    def _forget(self, lane: _Lane, envelope: Envelope) -> None:
        """It is gone from the store."""
        lane.busy = False
        if lane.waiting and lane.waiting[0] is envelope:
            lane.waiting.popleft()
        self._known.discard(envelope.envelope_id)
        self._list(lane)

    def _list(self, lane: _Lane) -> None:
        if lane.busy or lane.due:
            return
        if not lane.waiting:
            self.lanes.pop(lane.name, None)
        else:
            urgent = min(envelope.rank for envelope in lane.waiting) if len(lane.waiting) > 1 else lane.waiting[0].rank
            heapq.heappush(self._ready, (urgent, lane.waiting[0].envelope_id, lane.name))

    def _works(self) -> bool:
        return any(lane.busy for lane in self.lanes.values())

    def _move(self, after: State, cause: str) -> None:
        host = self.shop.host
        self._changes.append(Change(host.new_id("change"), host.clock.now(), self.state, after, cause, "roost"))
        self.state = after

    async def _patience(self, error: Unavailable) -> None:
        log.warning("the store is unavailable, trying again: %s", error, extra={"agent": self.address})
        await asyncio.sleep(0.2 + 0.8 * self.shop.host.jitter())

    # --- being told ------------------------------------------------------------------------------

    def cancel(self, envelope_id: str) -> None:
        """A task was cancelled: it is gone from the store already."""
        for lane in list(self.lanes.values()):
            if lane.work is not None and lane.work.envelope.envelope_id == envelope_id:
                lane.work.stop(Why.STOP, self.shop.host.clock.now())
            elif any(e.envelope_id == envelope_id for e in lane.waiting):
                lane.waiting = deque(e for e in lane.waiting if e.envelope_id != envelope_id)
                self._known.discard(envelope_id)
                self._list(lane)

    def finish(self) -> None:
        """Begin nothing new; what runs may end."""
        self.ending = True
        self._go_on()

    def end(self) -> None:
        """Begin nothing new, and end what runs; it is tried again another time."""
        self.ending = True
        now = self.shop.host.clock.now()
        for lane in list(self.lanes.values()):
            if lane.work is not None:
                lane.work.stop(Why.DRAIN, now)
        self._go_on()

    def abandoned(self, work: Work) -> None:
        """A brain would not stop: its task is left to itself, and another one takes its place."""
        lane = self.lanes.get(work.envelope.lane)
        if lane is not None and lane.work is work and work.task is not None:
            self._orphans.add(work.task)
            self._servers -= 1
            self._close(work.closing(), lane)
            self._go_on()


def _expired(envelope: Envelope, epoch: int, now: float) -> WorkClosing:
    reason = "it was not begun before it expired"
    return WorkClosing("", envelope, epoch, Verdict.DEAD, "", now, now, reason=reason, fault="expired")


def _worn_out(envelope: Envelope, epoch: int, now: float) -> WorkClosing:
    reason = f"it was tried {envelope.most_attempts} times, and each time the program or its thread ended meanwhile"
    return WorkClosing("", envelope, epoch, Verdict.DEAD, "", now, now, reason=reason, fault="lost_worker")
