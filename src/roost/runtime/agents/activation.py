"""Activation: an awake agent on its own loop, with its lanes.

Any thread may deliver envelopes, which are put into lanes. Ready lanes wait in order of priority. Up to
`max_concurrent_tasks` lanes are processed at a time, each by a task that takes lane after lane. Settlements are
written in groups: one write is in flight, and the others are batched behind it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial
from typing import Any

from roost.core.agents import wake
from roost.core.agents.agent import AgentConfig, State
from roost.core.envelopes.claims import ClaimedWork
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.outcomes import KEPT, NEVER, MemoryWrite, StateChange, Verdict, WorkClosing, WorkSettled
from roost.core.talks.runs import RunOutcome, StopReason
from roost.errors import Invalid
from roost.ports import Profile
from roost.runtime.agents import meeting_turn, start
from roost.runtime.agents.exclusive import OFTEN, ExclusiveTurns
from roost.runtime.agents.failures import expired, news, withdrawn
from roost.runtime.agents.host import AgentHost
from roost.runtime.agents.lane_queue import Lane
from roost.runtime.agents.presence import Presence
from roost.runtime.agents.state_log import BRIEF
from roost.runtime.agents.work import Work
from roost.runtime.execution.cancellation import is_discarded
from roost.runtime.talks.worker import AgentTalks
from roost.runtime.turns.agent_state import AgentState
from roost.stores.sql.agents import inspection

log = logging.getLogger("roost.agent")

SHARE = 100
"""Envelopes that each may have in memory, however many are awake."""


class Activation(Presence):
    """`put`, `call` and what is read are for any thread; everything else happens on the loop."""

    noted: frozenset[str] = frozenset()
    """Envelopes whose turns have ended and remember something, which may not be written yet."""
    _waiting = 0
    """Number of serving tasks that wait for an answer; other lanes use their slots."""
    _talks_waiting = 0
    """Number of turns of its talks wait for an answer."""
    _more = 0
    """How much more is in the store, as far as it is known, for which there was no room."""
    _returned = False
    """True if something came again while its end is being written: then the store is asked for it after that."""

    def __init__(self, dispatcher: AgentHost, taken: ClaimedWork) -> None:
        super().__init__(dispatcher, taken.address, AgentConfig.from_json(taken.config))
        self.services = dispatcher.services
        self.owner, _, self.agent_id = taken.address.rpartition("/")
        self.full_address = f"agent:{taken.address}"
        self.epoch = taken.epoch
        self.turn_state = AgentState(self.context.host, taken.memory, self.context.limits.memory_chars, self._remember)
        self.alone = ExclusiveTurns()
        self.letters: dict[str, Any] = {}
        self._known: set[str] = set()
        self._servers = 0
        self._tasks: set[asyncio.Task[Any] | None] = set()
        self._orphans: set[asyncio.Task[Any] | None] = set()
        self._unsettled = 0
        """Number of closings are being written."""
        self._arriving: list[tuple[Envelope, ...]] = []
        self.talks = AgentTalks(dispatcher.services, dispatcher.live_talks, self, dispatcher.release_talk)
        if any(envelope.ask is not None for envelope in taken.envelopes):
            self.is_asked = True

    # --- from any thread -------------------------------------------------------------------------

    def put(self, envelopes: tuple[Envelope, ...], *, taken: bool = False, more: int = 0) -> None:
        """Hand these over; `taken` from the store, where there may be `more`."""
        self._arriving.append(envelopes)
        self.call(partial(self._accept, taken, more))

    def has_begun(self, task_id: str) -> bool:
        """Return True if this task is being done, or was done and its end is being written."""
        if task_id not in self._known:
            return False
        lane = self.lane_queue.lane_of(task_id)
        return lane is None or (lane.begins_with(task_id) and (lane.busy or lane.due > 0))

    @property
    def depth(self) -> int:
        """Return how much there is for it to do, or to end."""
        return len(self._known) + sum(map(len, self._arriving)) + self._more

    @property
    def is_clean(self) -> bool:
        """Return True if no task of a brain is left on its loop, so that it can be reused."""
        return not self._orphans

    @property
    def works(self) -> tuple[Work, ...]:
        return self.lane_queue.works

    @property
    def running(self) -> tuple[Envelope, ...]:
        return tuple(work.envelope for work in self.works)

    @property
    def has_work(self) -> bool:
        return bool(self.talks.lanes or self.lane_queue.busy)

    @property
    def needs_loop(self) -> bool:
        """Return True while its loop has to turn: something runs there, or waits to be looked at."""
        return self.begun and (self.has_work or bool(self.inbound))

    # --- on the loop: what comes in --------------------------------------------------------------

    def _accept(self, taken: bool, more: int) -> None:
        envelopes = self._arriving.pop(0)
        if taken:
            self._more = more
        elif self._more or len(self._known) + len(envelopes) > self.dispatcher.share:
            self._more += len(envelopes)  # these come after what is still in the store
            return
        again: dict[str, dict[str, Envelope]] = {}
        for envelope in envelopes:
            if envelope.envelope_id in self._known:
                again.setdefault(envelope.lane, {})[envelope.envelope_id] = envelope
                continue
            self._known.add(envelope.envelope_id)
            self.lane_queue.put(envelope)
        for name, newer in again.items():
            self._accept_again(name, newer)
        if taken:
            self._give_up()

    def _give_up(self) -> None:
        """What it did not come to in time."""
        now = self.context.host.clock.now()
        for lane in self.lane_queue.unbegun():
            while lane.waiting and (lane.waiting[0].expires or NEVER) <= now:
                self.close(expired(lane.waiting[0], self.epoch, now), lane)

    def look_again(self) -> None:
        """Ask the store for more; envelopes that arrive from now on are ordered after it."""
        self._more = max(self._more, 1)
        self.dispatcher.notifier.look(self.address)

    def _accept_again(self, name: str, newer: dict[str, Envelope]) -> None:
        """They are here, or their end is being written.

        What is in the store when all of that is written was posted anew, and is looked for then.
        """
        lane = self.lane_queue.lanes.get(name)
        if lane is not None and lane.rests and lane.take_up(newer):
            self.lane_queue.offer(lane)
        if lane is None or not lane.holds(newer):
            self._returned = True

    def go_on(self) -> None:
        """Start as many tasks as there are lanes to work on, up to the bound; rest if there is nothing at all."""
        room = min(self.config.max_concurrent_tasks - self._servers + self._waiting, self.lane_queue.offered)
        if self.retired:
            return  # whatever is left here runs elsewhere
        if not self.ending:
            for _ in range(room):
                self._servers += 1
                self._tasks.add(asyncio.get_running_loop().create_task(self._serve(), name=f"agent {self.address}"))
        if self._is_quiet():
            self._idle()
        elif self.dispatcher.is_crowded and self._only_unsettled():
            self._leave_loop()
            self.dispatcher.park(self)

    def _only_unsettled(self) -> bool:
        """Return True if only writes of its closings are left."""
        left = self._servers or self.lane_queue.lanes or self.talks.lanes or self._orphans or self._more or self.ending
        return not left

    def is_over(self, results: list[tuple[WorkClosing, WorkSettled]]) -> bool:
        """Return True if nothing is left to do once these are written."""
        return (
            len(results) == self._unsettled
            and not self.inbound
            and all(
                one.taken and closing.sleep is None and closing.verdict is not Verdict.RETRY for closing, one in results
            )
        )

    def _is_quiet(self) -> bool:
        busy = self._servers or self._unsettled or self.talks.lanes
        return not busy and (self.ending or not self.lane_queue.lanes or not self.lane_queue.is_held)

    def _idle(self) -> None:
        if self.ending:
            self._let_go()
        elif self._more or self._returned:
            self._returned = False
            self.dispatcher.notifier.look(self.address)
        elif self.dispatcher.is_crowded and self.lane_queue.is_at_rest:
            asyncio.get_running_loop().call_soon(self.retire)
        elif not self.lane_queue.has_ready():  # of what is tried again later, the timer in the store sees to it
            self._begin_rest()

    def _let_go(self) -> None:
        self.lane_queue.clear()
        self._settle_down("begins nothing new")
        self._leave_loop()
        self.at_rest.set(None)
        self.dispatcher.release(self)

    @property
    def _is_dismissed(self) -> bool:
        """Return True if it was stopped or deleted: another may have its name by now, with a course of its own."""
        return self.dispatcher.awake(self.address) is not self

    def _record(self) -> None:
        if not self._is_dismissed and (changes := self.state_log.take()):
            self.dispatcher.settler.note(self, changes)

    def show(self, state: State, cause: str) -> None:
        """It does something, or waits: on record with what it does, or in a moment if that takes longer."""
        self.state_log.move(state, cause)
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(2 * BRIEF, self._tell)

    def _tell(self) -> None:
        self._telling = None
        self._record()

    def retire(self) -> None:
        """Give the loop back, unless something has come."""
        if self._is_quiet() and not self.lane_queue.has_ready():
            self._leave_loop()
            self.dispatcher.release(self)

    # --- working ---------------------------------------------------------------------------------

    async def _serve(self) -> None:
        me, cut_off = asyncio.current_task(), None
        try:
            while self._may_serve(me) and (lane := self.lane_queue.next()) is not None:
                lane.busy = True
                await (self._handle(lane) if lane.repeats < OFTEN else self._handle_alone(lane))
        except BaseException as error:  # the agent continues with its other lanes
            if isinstance(error, GeneratorExit) and is_discarded(me):
                raise
            cut_off = error
        self._tasks.discard(me)
        if me in self._orphans:
            self._orphans.discard(me)
            return
        self._servers -= 1
        if cut_off is not None and not self.ending and not self.dispatcher.closing:
            log.error("the work of an agent was cut off", exc_info=cut_off, extra={"agent": self.address})
            self.dispatcher.lose(self)
        else:
            self.go_on()

    def _may_serve(self, me: asyncio.Task[Any] | None) -> bool:
        """Not if others have taken the place that it left while it waited."""
        crowded = self._servers - self._waiting > self.config.max_concurrent_tasks
        return not (self.ending or self.retired or crowded or me in self._orphans)

    async def _handle(self, lane: Lane) -> None:
        if self.aside:
            await self.regain()
        work = await start.begin(self, lane)
        if work is not None:
            await work.think()
            if self.alone.lane is not None and work.has_changed_memory:
                await self.alone.give_way(lane)
            if lane.work is work and work.why is not StopReason.LOST:
                self.close(work.closing(), lane)
                work.release()

    async def _handle_alone(self, lane: Lane) -> None:
        async with self.alone.during(lane):
            await self._handle(lane)

    def profile(self) -> Profile:
        brains = self.context.brains
        try:
            return brains.profile(self.config.profile or brains.default)
        except Invalid:
            return Profile(self.config.profile, "")

    def unwritten(self) -> frozenset[str]:
        """Return the noted envelopes that are not written yet."""
        return self.noted & self._known

    def adopt(self, memory: str) -> None:
        """Its memory was edited."""
        self.turn_state.edited(memory)
        self.context.store.write(inspection.set_memory, self.owner, self.agent_id, memory)

    # --- settling --------------------------------------------------------------------------------

    def close(self, closing: WorkClosing, lane: Lane) -> None:
        """The next in the lane may begin before this is written: if it is refused, all of it is discarded."""
        lane.work, lane.busy = None, False
        if closing.envelope.suspect:
            self.context.quarantine.leave(closing.envelope.envelope_id)
        if closing.verdict is not Verdict.DONE:
            closing = self._not_done(closing, lane)
        if closing.verdict not in KEPT:
            lane.popleft()
            self.lane_queue.offer(lane)
        if closing.verdict is Verdict.CANCELLED:  # the cancel is written already: this is only for the record
            self._settle_down()
            self.context.monitor.cut_off(
                closing.envelope, closing.run_id, RunOutcome.STOPPED, closing.started, closing.profile, closing.usage
            )
            self._settle(closing)
            return
        if closing.verdict is not Verdict.RELEASED:  # with which nothing is written of it
            closing.changes.extend(self.state_log.take())
        if closing.sleep is not None:
            closing.changes.append(self.asleep())
        else:
            self._settle_down()
        self._settle(closing)

    def _not_done(self, closing: WorkClosing, lane: Lane) -> WorkClosing:
        """Add the notifications of a failure; delay the lane if there is a retry."""
        self.dispatcher.forget_task(closing.envelope.envelope_id)
        if closing.verdict is Verdict.WAITING:
            lane.due = NEVER
        elif closing.verdict is Verdict.RETRY:
            lane.due = closing.due
            pause = max(0.0, closing.due - self.context.host.clock.now())
            asyncio.get_running_loop().call_later(pause, self._again, lane, closing)
        elif closing.verdict is Verdict.REPEATED:
            lane.repeats += 1
            if closing.envelope.suspect and lane.waiting:
                lane.waiting[0] = replace(lane.waiting[0], suspect=0)
            self.lane_queue.offer(lane)
        elif closing.verdict is Verdict.DEAD:
            return replace(closing, sent=closing.sent + news(self, closing))
        return closing

    def _settle(self, closing: WorkClosing) -> None:
        self._unsettled += 1
        if closing.memory is not None:
            self.turn_state.write_queued()
        self.dispatcher.settler.put(self, closing, self.turn_state.edits)

    def _remember(self, write: MemoryWrite) -> None:
        """What a turn of a talk has changed goes to the store in order with the ends of other turns."""
        self.dispatcher.settler.put(self, write, self.turn_state.edits)

    def settled(self, results: list[tuple[WorkClosing, WorkSettled]]) -> None:
        """These are written, or were refused."""
        self._unsettled -= len(results)
        for closing, one in results:
            if closing.memory is not None:
                self.turn_state.write_finished()
            if closing.verdict not in KEPT:
                self._known.discard(closing.envelope.envelope_id)
            elif closing.verdict is Verdict.WAITING:
                self.dispatcher.notifier.look(self.address)  # they may have decided meanwhile
            elif one.taken and closing.verdict is Verdict.RETRY:
                self.dispatcher.notifier.wake_at(closing.due)
            if not one.taken and closing.verdict not in (Verdict.RELEASED, Verdict.CANCELLED):
                self.ending = True  # it was stopped or taken over
            elif closing.sleep is not None:
                self.fell_asleep(closing.sleep)

    def unsettled(self, error: Exception) -> None:
        """What was done could not be written: until it can be, it is kept in memory, and all that follows behind it."""
        log.warning("the store is unavailable, trying again: %s", error, extra={"agent": self.address})
        pause = 0.2 + 0.8 * self.context.host.jitter()
        asyncio.get_running_loop().call_later(pause, self.dispatcher.settler.resume, self)

    def _again(self, lane: Lane, closing: WorkClosing) -> None:
        lane.due = 0.0
        if lane.waiting and lane.waiting[0].envelope_id == closing.envelope.envelope_id:
            e = closing.envelope
            lane.waiting[0] = replace(e, attempts=e.attempts + 1, journaled=True, suspect=0)
        self.lane_queue.offer(lane)
        self.go_on()

    def forget(self, lane: Lane, envelope: Envelope) -> None:
        """It is gone from the store."""
        lane.busy = False
        if lane.waiting and lane.waiting[0] is envelope:
            lane.popleft()
        self._known.discard(envelope.envelope_id)
        self.lane_queue.offer(lane)

    # --- being told ------------------------------------------------------------------------------

    def cancel(self, envelope_id: str) -> None:
        """A task was cancelled: it is gone from the store already."""
        for lane in list(self.lane_queue.lanes.values()):
            if lane.work is not None and lane.work.envelope.envelope_id == envelope_id:
                lane.work.stop(StopReason.STOP, self.context.host.clock.now())
            elif any(e.envelope_id == envelope_id for e in lane.waiting):
                if lane.rests and lane.waiting[0].envelope_id == envelope_id:
                    lane.due = 0.0
                lane.fill(e for e in lane.waiting if e.envelope_id != envelope_id)
                self._known.discard(envelope_id)
                self.lane_queue.offer(lane)

    def withdraw(self, envelope_id: str) -> None:
        """Nobody waits for the answer to this any more: it is not begun. If it has begun, it may end."""
        for lane in list(self.lane_queue.lanes.values()):
            begun = int(lane.busy)
            envelope = next((e for e in list(lane.waiting)[begun:] if e.envelope_id == envelope_id), None)
            if envelope is not None:
                lane.fill(e for e in lane.waiting if e is not envelope)
                self.lane_queue.offer(lane)
                self._settle(withdrawn(envelope, self.epoch, self.context.host.clock.now()))
                self._settle_down()

    def waits(self, waiting: bool, cause: str, *, rests: bool, talk: bool = False) -> None:
        """A turn waits, or does not any more, unless it `rests` now; if all do that run, the agent is waiting.

        The turn of a `talk` has no place to leave to others.
        """
        change = 1 if waiting else -1
        if talk:
            self._talks_waiting += change
        else:
            self._waiting += change
        self.alone.changed()
        left = self._working
        if self.state_log.state is State.ACTIVE and not left:
            self.show(State.WAITING, cause)
        elif self.state_log.state is State.WAITING and left > 0 and not rests:
            self.show(State.ACTIVE, "continues")
        self.go_on()

    @property
    def only_waits(self) -> bool:
        """Return True if it has turns, and all of them wait for an answer."""
        return self.begun and self._waiting + self._talks_waiting > 0 and self._working <= 0

    def step_aside(self) -> None:
        """Leave its place to others, if all its turns still wait."""
        if self.only_waits and not self.ending:
            self.dispatcher.loops.step_aside(self)

    @property
    def _working(self) -> int:
        """Number of turns that run and do not wait."""
        return self.lane_queue.busy + self.talks.running - self._waiting - self._talks_waiting

    def talking(self, user_id: str) -> None:
        if self.state_log.state is not State.ACTIVE:
            self.show(State.ACTIVE, f"talk from user:{user_id}")

    def talked(self) -> None:
        """One of its talks has nothing left to be answered."""
        self._settle_down()
        self.go_on()

    def _settle_down(self, why: str = "nothing left to do") -> None:
        """It is idle if there is nothing left to do, and waits if all that is left does."""
        if self.lane_queue.has_ready() or self.state_log.state is State.IDLE or self._is_dismissed:
            return
        if not self.has_work:
            self.state_log.move(State.IDLE, why)
        elif self.state_log.state is State.ACTIVE and (self._waiting or self._talks_waiting) and not self._working:
            self.show(State.WAITING, "waits for an answer")

    def asleep(self) -> StateChange:
        """Return the change of state to record with the turn that asked for sleep."""
        return self.state_log.asleep(self.full_address)

    def quiet_in(self, meeting_id: str) -> float:
        return self.dispatcher.quiet_in(self.address, meeting_id)

    def hurry(self, meeting_id: str) -> None:
        """Begin its turn in this meeting without waiting for a quiet moment."""
        meeting_turn.hurry(self, meeting_id)

    def leave(self, results: list[tuple[WorkClosing, WorkSettled]]) -> bool:
        """Retire if it is parked and these were its last closings; from any thread."""
        return self.dispatcher.leave(self, results)

    def fell_asleep(self, condition: str) -> None:
        """A turn of a talk has asked for it, and it is written."""
        if (due := wake.next_time(wake.from_json(condition))) is not None:
            self.dispatcher.notifier.wake_at(due)
        self.finish()

    def woken(self) -> None:
        """It was woken while it still does what it did before it fell asleep."""
        self.state_log.again()
        self._record()

    def finish(self) -> None:
        """Begin nothing new; what runs may end. Turns that wait for a person are resumed later."""
        self.ending = True
        for work in self.works:
            if work.is_parked:
                work.stop(StopReason.WAIT if work.may_suspend else StopReason.DRAIN, self.context.host.clock.now())
        self.talks.finish()
        self.go_on()

    def end(self) -> None:
        """Begin nothing new, and end what runs; it is tried again another time."""
        self.ending = True
        now = self.context.host.clock.now()
        for lane in list(self.lane_queue.lanes.values()):
            if lane.work is not None:
                lane.work.stop(StopReason.DRAIN, now)
        self.talks.end()
        self.go_on()

    def orphan(self, task: asyncio.Task[Any]) -> None:
        """Note a task that ignores its cancellation: the loop is not reused while it runs."""
        self._orphans.add(task)
        task.add_done_callback(self._orphans.discard)

    def abandoned(self, work: Work) -> None:
        """A brain would not stop: its task is left to itself, and another one takes its place."""
        lane = self.lane_queue.lanes.get(work.envelope.lane)
        if lane is not None and lane.work is work and work.task is not None:
            self._orphans.add(work.task)
            self._servers -= 1
            self.close(work.closing(), lane)
            self.go_on()
