"""An activation: an agent that is awake, on a loop of its own, with the lanes it works on.

Envelopes come in on any thread and are put into lanes; lanes that can go on wait in order of urgency; up to
`max_concurrent_tasks` of them are worked on at a time, each by a task that takes lane after lane. What a
try leaves behind is written in groups: one write is under way, and the others gather behind it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from roost.core import wake
from roost.core.agents import AgentConfig, State
from roost.core.envelopes import KEPT, NEVER, Envelope, Taken, Verdict, WorkClosing, WorkSettled
from roost.core.runs import Outcome, Why
from roost.errors import Invalid
from roost.ports import Profile
from roost.runtime import beginning
from roost.runtime.closings import expired, news
from roost.runtime.course import RESTS
from roost.runtime.desk import Lane
from roost.runtime.presence import Presence
from roost.runtime.recollection import Recollection
from roost.runtime.work import Work
from roost.runtime.worker import AgentTalks

if TYPE_CHECKING:
    from roost.runtime.hall import Hall

log = logging.getLogger("roost.agent")

SHARE = 100
"""Envelopes that each may have in memory, however many are awake."""


class Activation(Presence):
    """`put`, `call` and what is read are for any thread; everything else happens on the loop."""

    noted: frozenset[str] = frozenset()
    """Envelopes whose turns have ended and remember something, which may not be written yet."""
    stuck = False
    """Whether its loop has not turned for longer than it may, although it has work."""
    _waiting = 0
    """How many of those who serve wait for an answer: they leave their places to others."""
    _more = 0
    """How much more is in the store, as far as it is known, for which there was no room."""
    _handed_back: frozenset[str] = frozenset()
    """What was given back when it was stopped."""
    _returned = False
    """Whether something came again while its end is being written: then the store is asked for it after that."""

    def __init__(self, hall: Hall, taken: Taken) -> None:
        super().__init__(hall, taken.address, AgentConfig.from_json(taken.config))
        self.office = hall.office
        self.owner, _, self.agent_id = taken.address.rpartition("/")
        self.full_address = f"agent:{taken.address}"
        self.epoch = taken.epoch
        self.memory = Recollection(taken.memory, self.shop.limits.memory_chars)
        self.letters: dict[str, Any] = {}
        self._known: set[str] = set()
        self._servers = 0
        self._tasks: set[asyncio.Task[Any] | None] = set()
        self._orphans: set[asyncio.Task[Any] | None] = set()
        self._unsettled = 0
        """How many closings are being written."""
        self._arriving: list[tuple[Envelope, ...]] = []
        self.talks = AgentTalks(self, hall.release_talk)

    # --- from any thread -------------------------------------------------------------------------

    def put(self, envelopes: tuple[Envelope, ...], *, taken: bool = False, more: int = 0) -> None:
        """Hand these over; `taken` from the store, where there may be `more`."""
        self._arriving.append(envelopes)
        self.call(partial(self._accept, taken, more))

    def has_room(self, count: int) -> bool:
        """Whether so many more may be handed over: none while older ones are still in the store."""
        held = self.depth + count
        return not self._more and (held <= SHARE or held <= self.hall.share)

    def has_begun(self, task_id: str) -> bool:
        """Whether this task, which has a lane to itself, is being done, or was done and its end is being written."""
        lane = self.desk.lanes.get(task_id)
        return task_id in self._known and (lane is None or lane.busy or lane.due > 0)

    @property
    def depth(self) -> int:
        """How much there is for it to do, or to end."""
        return len(self._known) + sum(map(len, self._arriving)) + self._more

    def untried(self) -> list[str]:
        """What was handed over, and counted as tried, and not begun."""
        arriving = [e.envelope_id for envelopes in list(self._arriving) for e in envelopes if e.claimed]
        return [*arriving, *(envelope.envelope_id for envelope in self.desk.untried())]

    def hand_back(self) -> list[str]:
        """What counts as tried and is not ended here any more, begun or not; it is not released once more."""
        self._handed_back = frozenset([*self.untried(), *(self._known.copy() - self.desk.uncounted())])
        return list(self._handed_back)

    @property
    def is_clean(self) -> bool:
        """Whether its loop can be lent to another: nothing of a brain's is left on it."""
        return not self._orphans

    @property
    def works(self) -> tuple[Work, ...]:
        return self.desk.works

    @property
    def running(self) -> tuple[Envelope, ...]:
        return tuple(work.envelope for work in self.works)

    @property
    def has_work(self) -> bool:
        return bool(self.talks.lanes or self.desk.busy)

    # --- on the loop: what comes in --------------------------------------------------------------

    def _accept(self, taken: bool, more: int) -> None:
        envelopes = self._arriving.pop(0)
        if taken:
            self._more = more
        elif self._more or len(self._known) + len(envelopes) > self.hall.share:
            self._more += len(envelopes)  # these come after what is still in the store
            self.hall.not_begun(self.address, [envelope.envelope_id for envelope in envelopes if envelope.claimed])
            return
        again: dict[str, dict[str, Envelope]] = {}
        for envelope in envelopes:
            if envelope.envelope_id in self._known:
                again.setdefault(envelope.lane, {})[envelope.envelope_id] = envelope
                continue
            self._known.add(envelope.envelope_id)
            self.desk.put(envelope)
        for name, newer in again.items():
            self._accept_again(name, newer)
        if taken:
            self._give_up()

    def _give_up(self) -> None:
        """What it did not come to in time."""
        now = self.shop.host.clock.now()
        for lane in self.desk.unbegun():
            while lane.waiting and (lane.waiting[0].expires or NEVER) <= now:
                self.close(expired(lane.waiting[0], self.epoch, now), lane)

    def look_again(self) -> None:
        """There may be more in the store than it was told of; what comes now comes after that."""
        self._more = max(self._more, 1)
        self.hall.look(self.address)

    def _accept_again(self, name: str, newer: dict[str, Envelope]) -> None:
        """They are here, and a look has counted their first try; or their end is being written.

        What is in the store when all of that is written was posted anew, and is looked for then.
        """
        lane = self.desk.lanes.get(name)
        if lane is not None and lane.rests and lane.take_up(newer):
            self.desk.offer(lane)
        if lane is None or lane.replace(newer) < len(newer):
            self._returned = True

    def go_on(self) -> None:
        """Start as many tasks as there are lanes to work on, up to the bound; rest if there is nothing at all."""
        room = min(self.config.max_concurrent_tasks - self._servers + self._waiting, self.desk.offered)
        if not self.ending:
            for _ in range(room):
                self._servers += 1
                self._tasks.add(asyncio.get_running_loop().create_task(self._serve(), name=f"agent {self.address}"))
        if self._is_quiet():
            self._idle()
        elif self.hall.is_crowded and self._only_unsettled():
            self._leave_loop()
            self.hall.park(self)

    def _only_unsettled(self) -> bool:
        """Whether all that is left is that what it did is written."""
        left = self._servers or self.desk.lanes or self.talks.lanes or self._orphans or self._more or self.ending
        return not left

    def is_over(self, results: list[tuple[WorkClosing, WorkSettled]]) -> bool:
        """Whether nothing is left to do once these are written."""
        return len(results) == self._unsettled and not self.inbound and all(
            one.taken and closing.sleep is None and closing.verdict is not Verdict.RETRY for closing, one in results
        )  # fmt: skip

    def _is_quiet(self) -> bool:
        busy = self._servers or self._unsettled or self.talks.lanes
        return not busy and (self.ending or not self.desk.lanes or not self.desk.is_held)

    def _idle(self) -> None:
        if self.ending:
            self._let_go()
        elif self._more or self._returned:
            self._returned = False
            self.hall.look(self.address)
        elif self.hall.is_crowded and self.desk.is_at_rest:
            asyncio.get_running_loop().call_soon(self.retire)
        elif not self.desk.has_ready():  # of what is tried again later, the timer in the store sees to it
            self._begin_rest()

    def _let_go(self) -> None:
        now = self.shop.host.clock.now()
        untried = [envelope for envelope in self.desk.untried() if envelope.envelope_id not in self._handed_back]
        self.desk.clear()
        if untried:
            for envelope in untried:
                self._settle(WorkClosing("", envelope, self.epoch, Verdict.RELEASED, "", now, now))
            return
        self._settle_down("begins nothing new")
        self._leave_loop()
        self.at_rest.set(None)
        self.hall.release(self)

    @property
    def _is_dismissed(self) -> bool:
        """Whether it was stopped or deleted: another may have its name by now, with a course of its own."""
        return self.hall.awake(self.address) is not self

    def _record(self) -> None:
        if not self._is_dismissed:
            self._note()

    def _note(self) -> None:
        if changes := self.course.take():
            self.hall.settler.note(self, changes)

    def retire(self) -> None:
        """Give the loop back, unless something has come."""
        if self._is_quiet() and not self.desk.has_ready():
            untried = [envelope.envelope_id for envelope in self.desk.untried()]
            self._leave_loop()
            if self.hall.release(self) and untried:  # behind what waits for a person, or for its next try
                self.hall.look(self.address, untried)

    # --- working ---------------------------------------------------------------------------------

    async def _serve(self) -> None:
        me, cut_off = asyncio.current_task(), None
        try:
            while self._may_serve(me) and (lane := self.desk.next()) is not None:
                lane.busy = True
                await self._handle(lane)
        except GeneratorExit:  # thrown away together with its loop
            raise
        except BaseException as error:  # whatever it was, the agent goes on with the rest
            cut_off = error
        self._tasks.discard(me)
        if me in self._orphans:
            self._orphans.discard(me)
            return
        self._servers -= 1
        if cut_off is not None and not self.ending and not self.hall.closing:
            log.error("the work of an agent was cut off", exc_info=cut_off, extra={"agent": self.address})
            self.hall.lose(self)
        else:
            self.go_on()

    def _may_serve(self, me: asyncio.Task[Any] | None) -> bool:
        """Not if others have taken the place that it left while it waited."""
        crowded = self._servers - self._waiting > self.config.max_concurrent_tasks
        return not (self.ending or crowded or me in self._orphans)

    async def _handle(self, lane: Lane) -> None:
        work = await beginning.begin(self, lane)
        if work is not None:
            await work.think()
            if lane.work is work and work.why is not Why.LOST:
                self.close(work.closing(), lane)
                work.part()

    def profile(self) -> Profile:
        brains = self.shop.brains
        try:
            return brains.profile(self.config.profile or brains.default)
        except Invalid:
            return Profile(self.config.profile, "")

    def unwritten(self) -> frozenset[str]:
        """Of what is `noted`, that which is still to be written."""
        return self.noted & self._known

    def adopt(self, memory: str) -> None:
        """Its memory was edited."""
        self.memory.edited(memory)
        ops = self.shop.statements.watching
        self.shop.store.write(ops.set_memory, self.owner, self.agent_id, memory)

    # --- settling --------------------------------------------------------------------------------

    def close(self, closing: WorkClosing, lane: Lane) -> None:
        """The next in the lane may begin before this is written: if it is refused, all of it is discarded."""
        lane.work, lane.busy = None, False
        if closing.verdict is not Verdict.DONE:
            closing = self._not_done(closing, lane)
        if closing.verdict not in KEPT:
            lane.popleft()
            self.desk.offer(lane)
        if closing.verdict is Verdict.CANCELLED:  # whoever cancelled it has written so: this is only for the record
            self._settle_down()
            self.shop.monitor.cut_off(
                closing.envelope, closing.run_id, Outcome.STOPPED, closing.started, closing.profile, closing.usage
            )  # fmt: skip
            self._settle(closing)
            return
        if closing.verdict is not Verdict.RELEASED:  # with which nothing is written of it
            closing.changes.extend(self.course.take())
        if closing.sleep is not None:
            closing.changes.append(self.course.asleep(self.full_address))
        else:
            self._settle_down()
        self._settle(closing)

    def _not_done(self, closing: WorkClosing, lane: Lane) -> WorkClosing:
        """With what others are told of it; its lane waits, if it is tried again."""
        self.hall.ends.forget(closing.envelope.envelope_id)
        if closing.verdict is Verdict.WAITING:
            lane.due = NEVER
        elif closing.verdict is Verdict.RETRY:
            lane.due = closing.due
            pause = max(0.0, closing.due - self.shop.host.clock.now())
            asyncio.get_running_loop().call_later(pause, self._again, lane, closing)
        elif closing.verdict is Verdict.DEAD:
            return replace(closing, sent=closing.sent + news(self, closing))
        return closing

    def _settle(self, closing: WorkClosing) -> None:
        if closing.verdict is Verdict.RELEASED and closing.envelope.envelope_id in self._handed_back:
            closing = replace(closing, verdict=Verdict.CANCELLED)  # it is released already: this is only for the record
        self._unsettled += 1
        self.hall.settler.put(self, closing, self.memory.edits)

    def settled(self, results: list[tuple[WorkClosing, WorkSettled]]) -> None:
        """These are written, or were refused."""
        self._unsettled -= len(results)
        for closing, one in results:
            if closing.verdict not in KEPT:
                self._known.discard(closing.envelope.envelope_id)
            elif closing.verdict is Verdict.WAITING:
                self.hall.look(self.address)  # they may have decided meanwhile
            elif one.taken:
                self.hall.ring(closing.due)
            if not one.taken and closing.verdict not in (Verdict.RELEASED, Verdict.CANCELLED):
                self.ending = True  # whoever stopped it, or took it over, has the rest
                if closing.sleep is not None:
                    self.course.stay()
            elif closing.sleep is not None:
                self.fell_asleep(closing.sleep)

    def unsettled(self, error: Exception) -> None:
        """What was done could not be written: until it can be, it is kept in memory, and all that follows behind it."""
        log.warning("the store is unavailable, trying again: %s", error, extra={"agent": self.address})
        pause = 0.2 + 0.8 * self.shop.host.jitter()
        asyncio.get_running_loop().call_later(pause, self.hall.settler.resume, self)

    def _again(self, lane: Lane, closing: WorkClosing) -> None:
        lane.due = 0.0
        if lane.waiting and lane.waiting[0].envelope_id == closing.envelope.envelope_id:
            lane.waiting[0] = replace(closing.envelope, claimed=False)
        self.desk.offer(lane)
        self.go_on()

    def forget(self, lane: Lane, envelope: Envelope) -> None:
        """It is gone from the store."""
        lane.busy = False
        if lane.waiting and lane.waiting[0] is envelope:
            lane.popleft()
        self._known.discard(envelope.envelope_id)
        self.desk.offer(lane)

    # --- being told ------------------------------------------------------------------------------

    def cancel(self, envelope_id: str) -> None:
        """A task was cancelled: it is gone from the store already."""
        for lane in list(self.desk.lanes.values()):
            if lane.work is not None and lane.work.envelope.envelope_id == envelope_id:
                lane.work.stop(Why.STOP, self.shop.host.clock.now())
            elif any(e.envelope_id == envelope_id for e in lane.waiting):
                if lane.rests and lane.waiting[0].envelope_id == envelope_id:
                    lane.due = 0.0
                lane.fill(e for e in lane.waiting if e.envelope_id != envelope_id)
                self._known.discard(envelope_id)
                self.desk.offer(lane)

    def waits(self, waiting: bool, cause: str, *, rests: bool) -> None:
        """A turn waits, or does not any more, unless it `rests` now; if all do that run, the agent is waiting."""
        self._waiting += 1 if waiting else -1
        busy = self.desk.busy
        if self.course.state is State.ACTIVE and self._waiting == busy and not self.talks.lanes:
            self.course.move(State.WAITING, cause)
        elif self.course.state is State.WAITING and self._waiting < busy and not rests:
            self.course.move(State.ACTIVE, "goes on")
        self.go_on()

    def talking(self, user_id: str) -> None:
        if self.course.state is State.IDLE:
            self.course.move(State.ACTIVE, f"talk from user:{user_id}")

    def talked(self) -> None:
        """One of its talks has nothing left to be answered."""
        self._settle_down()
        self.go_on()

    def _settle_down(self, why: str = "nothing left to do") -> None:
        """It is idle if there is nothing left to do."""
        busy = self.desk.has_ready() or self.course.state is State.IDLE or self.has_work
        if not busy and not self._is_dismissed:
            self.course.move(State.IDLE, RESTS if self.desk.rests else why)

    def fell_asleep(self, condition: str) -> None:
        """A turn of a talk has asked for it, and it is written."""
        if (due := wake.next_time(wake.from_json(condition))) is not None:
            self.hall.ring(due)
        self.conclude()
        self.finish()

    def conclude(self) -> None:
        """It is written that it sleeps or is stopped, while it may still be busy."""
        self._note()
        self.course.end()

    def finish(self) -> None:
        """Begin nothing new; what runs may end. What waits for a person goes on another time."""
        self.ending = True
        for work in self.works:
            if work.is_parked:
                work.stop(Why.WAIT if work.may_rest else Why.DRAIN, self.shop.host.clock.now())
        self.talks.finish()
        self.go_on()

    def end(self) -> None:
        """Begin nothing new, and end what runs; it is tried again another time."""
        self.ending = True
        now = self.shop.host.clock.now()
        for lane in list(self.desk.lanes.values()):
            if lane.work is not None:
                lane.work.stop(Why.DRAIN, now)
        self.talks.end()
        self.go_on()

    def orphan(self, task: asyncio.Task[Any]) -> None:
        """Something that its brain began would not stop: nobody else is lent a loop on which that still runs."""
        self._orphans.add(task)
        task.add_done_callback(self._orphans.discard)

    def abandoned(self, work: Work) -> None:
        """A brain would not stop: its task is left to itself, and another one takes its place."""
        lane = self.desk.lanes.get(work.envelope.lane)
        if lane is not None and lane.work is work and work.task is not None:
            self._orphans.add(work.task)
            self._servers -= 1
            self.close(work.closing(), lane)
            self.go_on()
