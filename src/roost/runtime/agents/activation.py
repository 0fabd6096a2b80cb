"""Activation: an awake agent on its own loop, with its lanes.

Any thread may deliver envelopes, which are put into lanes. Ready lanes wait in order of priority. Up to
`max_concurrent_tasks` lanes are processed at a time, each by a task that takes lane after lane. Closings are
written in groups: one write is in flight, and the others are batched behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from roost.core.agents import wake
from roost.core.agents.agent import AgentConfig
from roost.core.envelopes.claims import ClaimedWork
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.outcomes import StateChange
from roost.core.runs import Closing, Settled
from roost.core.talks.runs import StopReason
from roost.errors import Invalid
from roost.ports import Loop, Pending, Profile
from roost.runtime.agents import meeting_turn
from roost.runtime.agents.activity import Activity
from roost.runtime.agents.call_queue import CallQueue
from roost.runtime.agents.closings import Closings
from roost.runtime.agents.host import ActivationHost
from roost.runtime.agents.idle_timer import IdleTimer
from roost.runtime.agents.lanes.exclusive import ExclusiveTurns
from roost.runtime.agents.lanes.intake import Intake
from roost.runtime.agents.lanes.lane_queue import LaneQueue
from roost.runtime.agents.lanes.lane_tasks import LaneTasks
from roost.runtime.agents.phase import LoopPhase, PhaseMachine
from roost.runtime.agents.slot import Slot
from roost.runtime.agents.state_log import StateLog
from roost.runtime.agents.work import Work
from roost.runtime.talks.worker import AgentTalks
from roost.runtime.turns.agent_state import AgentState
from roost.stores.sql.agents import inspection

SHARE = 100
"""Envelopes that each agent may have in RAM, however many are awake."""


class Activation:
    """`put`, `call`, `attach` and properties are for any thread; everything else happens on the loop."""

    loop: Loop
    noted: frozenset[str] = frozenset()  # on the class: most agents never set it

    def __init__(self, dispatcher: ActivationHost[Activation], taken: ClaimedWork) -> None:
        self.dispatcher = dispatcher
        self.services = dispatcher.services
        self.context = context = dispatcher.services.context
        self.address = taken.address
        self.full_address = f"agent:{taken.address}"
        self.owner, _, self.agent_id = taken.address.rpartition("/")
        self.config = AgentConfig.from_json(taken.config)
        self.epoch = taken.epoch
        self.is_asked = any(envelope.ask is not None for envelope in taken.envelopes)
        """True if it was woken by a request."""
        self.phases = PhaseMachine(dispatcher.phase_lock)
        self.calls = CallQueue()
        self.slot = Slot(self)
        self.lane_queue = LaneQueue()
        self.intake = Intake(self.lane_queue)
        self.exclusive = ExclusiveTurns()
        self.activity = Activity(self)
        self.lane_tasks = LaneTasks(self)
        self.state_log = StateLog(context.host, self)
        self.idle_timer = IdleTimer(self)
        self.closings = Closings(self)
        self.turn_state = AgentState(context.host, taken.turn_state, context.limits.state_chars, self.closings.remember)
        self.inputs: dict[str, Any] = {}
        self.talks = AgentTalks(dispatcher.services, dispatcher.live_talks, self, dispatcher.release_talk)
        self.ended: Pending[None] = context.host.pending()
        """Set when it has drained, or was retired while it was detached."""

    # --- phases ----------------------------------------------------------------------------------

    def attach(self, loop: Loop) -> bool:
        """Run on this loop; False: it does not need one any more."""
        self.loop = loop
        if not self.phases.move(LoopPhase.QUEUED, LoopPhase.RUNNING):
            return False
        self._schedule_calls()
        return True

    def begin_draining(self) -> None:
        """Start no more turns."""
        self.phases.move(LoopPhase.RUNNING, LoopPhase.DRAINING)

    def drain(self) -> None:
        """Start no more turns, and let running ones end. Turns that wait for a person are resumed later."""
        self.begin_draining()
        for work in self.works:
            if work.is_parked:
                work.stop(StopReason.WAIT if work.may_suspend else StopReason.DRAIN, self.context.host.clock.now())
        self.talks.finish()
        self.run_ready()

    def stop(self) -> None:
        """Start no more turns, and stop running ones; they are tried again another time."""
        self.begin_draining()
        for work in self.works:
            work.stop(StopReason.DRAIN, self.context.host.clock.now())
        self.talks.end()
        self.run_ready()

    @property
    def is_dismissed(self) -> bool:
        """Return True if its agent was stopped or deleted; another activation may have its address by now."""
        return self.dispatcher.awake(self.address) is not self

    # --- calls from any thread -------------------------------------------------------------------

    def put(self, envelopes: tuple[Envelope, ...], *, claimed: bool = False, left: int = 0) -> None:
        """Deliver envelopes; those that were `claimed` from the store, where some may be `left`, come first."""
        self.intake.put(envelopes)
        self.call(partial(self._accept, claimed, left))

    def call(self, act: Callable[[], None]) -> None:
        """Run it on the loop, in order; without a loop, when there is one."""
        self.calls.append(act)
        phase = self.phases.phase
        if phase is LoopPhase.DETACHED:
            self.dispatcher.requeue(self)
        elif not self.calls.is_scheduled and (phase is LoopPhase.RUNNING or phase is LoopPhase.DRAINING):
            self._schedule_calls()

    def _schedule_calls(self) -> None:
        self.calls.is_scheduled = True
        loop = self.loop  # it may have another one by the time this is called
        loop.call(self._run_calls, loop)

    def _run_calls(self, loop: Loop) -> None:
        if self.phases.is_retired:
            return
        self.calls.is_scheduled = False
        if loop is self.loop and self.phases.has_loop:
            self.calls.run(self.address)
            self.run_ready()
        elif self.phases.is_detached:  # scheduled before it was detached
            self.dispatcher.requeue(self)
        elif self.phases.has_loop:
            self._schedule_calls()

    def _accept(self, claimed: bool, left: int) -> None:
        self.intake.accept(claimed=claimed, left=left, most=self.dispatcher.share)
        if claimed:
            self.closings.close_expired()

    def look_again(self) -> None:
        """Ask the store for more; envelopes that arrive from now on are ordered after it."""
        self.intake.expect_more()
        self.dispatcher.notifier.look(self.address)

    def cancel(self, envelope_id: str) -> None:
        """Stop or drop a task that was cancelled; it is gone from the store already."""
        for work in self.works:
            if work.envelope.envelope_id == envelope_id:
                work.stop(StopReason.STOP, self.context.host.clock.now())
                return
        if self.lane_queue.drop(envelope_id, started=True) is not None:
            self.intake.known.discard(envelope_id)

    def woken(self) -> None:
        """Record its state once more: it was woken while it still does what it did before it fell asleep."""
        self.state_log.again()
        self.record()

    def hurry(self, meeting_id: str) -> None:
        """Begin its turn in this meeting without waiting for a quiet moment."""
        meeting_turn.hurry(self, meeting_id)

    def adopt(self, state: str) -> None:
        """Take over `turn.state` as a person has edited it, and write it."""
        self.turn_state.edited(state)
        self.context.store.write(inspection.set_state, self.owner, self.agent_id, state)

    # --- running lanes ---------------------------------------------------------------------------

    def run_ready(self) -> None:
        """Start tasks for ready lanes, up to the limit; become idle or return the loop if there is nothing to do."""
        phase = self.phases.phase
        if phase is LoopPhase.RETIRED:
            return  # what is left here runs on another loop
        if phase is LoopPhase.RUNNING:
            self.lane_tasks.start_ready()
        if self.is_quiet:
            self._become_idle()
        elif self.dispatcher.is_crowded and self._only_writes():
            self._leave_loop()
            self.dispatcher.detach(self)

    def move_to_other_loop(self) -> None:
        """Have its work run on another loop."""
        self.dispatcher.lose(self)

    def orphan(self, task: asyncio.Task[Any]) -> None:
        """Abandon a task that ignores its cancellation: the loop is not reused while it runs."""
        self.lane_tasks.abandon(task)

    def abandoned(self, work: Work) -> None:
        """Close a work whose brain does not stop, and start another task in place of its task."""
        lane = self.lane_queue.lanes.get(work.envelope.lane)
        if lane is not None and lane.work is work and work.task is not None:
            self.lane_tasks.replace(work.task)
            self.closings.close(work.closing(), lane)
            self.run_ready()

    # --- becoming idle ---------------------------------------------------------------------------

    @property
    def is_quiet(self) -> bool:
        """Return True if nothing runs, and nothing is being written."""
        busy = self.lane_tasks.count or self.closings.unwritten or self.talks.lanes
        return not busy and (not self.lane_queue.lanes or self.phases.is_ending or not self.lane_queue.is_held)

    def _only_writes(self) -> bool:
        """Return True if only writes of its closings are left."""
        left = self.lane_tasks.count or self.lane_queue.lanes or self.talks.lanes or self.intake.has_more
        return not left and self.lane_tasks.is_clean and not self.phases.is_ending

    def _become_idle(self) -> None:
        if self.phases.is_ending:
            self._end()
        elif self.intake.take_missed():
            self.dispatcher.notifier.look(self.address)
        elif self.dispatcher.is_crowded and self.lane_queue.all_parked:
            asyncio.get_running_loop().call_soon(self.retire_if_idle)
        elif not self.lane_queue.has_ready():  # a timer in the store sees to envelopes that are tried again later
            self.idle_timer.start()

    def retire_if_idle(self) -> None:
        """Return the loop and retire, unless there is something to do."""
        if self.is_quiet and not self.lane_queue.has_ready():
            self._leave_loop()
            self.dispatcher.release(self)

    def _end(self) -> None:
        self.lane_queue.clear()
        self.activity.settle("begins nothing new")
        self._leave_loop()
        self.ended.set(None)
        self.dispatcher.release(self)

    def _leave_loop(self) -> None:
        """Leave no timer on the loop: the next time it may be another one."""
        self.record()
        self.idle_timer.cancel()
        self.state_log.cancel_timer()

    def leave(self, results: list[tuple[Closing, Settled]]) -> bool:
        """Retire if it is detached and these were its last closings; from any thread."""
        return self.dispatcher.leave(self, results)

    # --- slots -----------------------------------------------------------------------------------

    @property
    def may_release_slot(self) -> bool:
        return self.phases.phase is LoopPhase.RUNNING and self.activity.all_wait

    def release_slot(self) -> None:
        """Release its slot to other agents, if all its turns still wait."""
        if self.may_release_slot:
            self.dispatcher.loops.release_slot(self)

    def request_slot(self) -> None:
        self.dispatcher.loops.request_slot(self)

    # --- facts about it --------------------------------------------------------------------------

    def record(self) -> None:
        """Write the changes of its lifecycle state."""
        if not self.is_dismissed and (changes := self.state_log.take()):
            self.dispatcher.settler.note(self, changes)

    def asleep(self) -> StateChange:
        """Return the change of state to record with the turn that asked for sleep."""
        return self.state_log.asleep(self.full_address)

    def fell_asleep(self, condition: str) -> None:
        """Drain: the turn that asked for sleep is written."""
        if (due := wake.next_time(wake.from_json(condition))) is not None:
            self.dispatcher.notifier.wake_at(due)
        self.drain()

    def profile(self) -> Profile:
        brains = self.context.brains
        try:
            return brains.profile(self.config.profile or brains.default)
        except Invalid:
            return Profile(self.config.profile, "")

    def unwritten(self) -> frozenset[str]:
        """Return the noted envelopes that are not written yet."""
        return self.noted & self.intake.known

    @property
    def depth(self) -> int:
        return self.intake.depth

    @property
    def is_full(self) -> bool:
        return self.intake.is_full(self.config.inbox_limit)

    @property
    def works(self) -> tuple[Work, ...]:
        return self.lane_queue.works

    @property
    def has_work(self) -> bool:
        return bool(self.talks.lanes or self.lane_queue.busy)

    @property
    def needs_loop(self) -> bool:
        """Return True while its loop has to turn: something runs there, or calls wait."""
        return self.phases.has_loop and (self.has_work or bool(self.calls))

    @property
    def is_idle(self) -> bool:
        """Return True if it has a loop and nothing to do."""
        return self.phases.has_loop and not self.calls.is_scheduled and self.is_quiet and self.lane_queue.all_parked
