"""Dispatcher: the registry of awake agents, and the delivery of committed envelopes to agents and talks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from roost.core.agents.agent import State
from roost.core.envelopes.claims import ClaimedWork
from roost.core.envelopes.effects import Effect, Publish, SendTask, messages
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.lanes import is_post
from roost.core.failures.faults import Fault
from roost.core.runs import Closing, Settled
from roost.core.talks.runs import StopReason
from roost.ports import Loop
from roost.runtime.agents.activation import SHARE, Activation
from roost.runtime.agents.loop_pool import LoopPool
from roost.runtime.agents.phase import LoopPhase
from roost.runtime.agents.settler import Settler
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch import lost_agents
from roost.runtime.dispatch.claims import Claims
from roost.runtime.dispatch.task_waiters import TaskWaiters
from roost.runtime.dispatch.timers import Timers
from roost.runtime.meetings.delivery import MeetingDelivery
from roost.runtime.outgoing.compose import Composer
from roost.runtime.outgoing.requests import Requests
from roost.runtime.ports.notifier import AgentNotice, Notifier
from roost.runtime.talks.live_talks import LiveTalks
from roost.runtime.talks.placement import Placement
from roost.runtime.talks.worker import TalkLanes
from roost.runtime.turns.services import TurnServices

log = logging.getLogger("roost.dispatcher")

IN_RAM = 100_000
"""Envelopes of all agents that are kept in RAM; more stay in the store until there is room."""


class Dispatcher:
    """Any thread may call."""

    def __init__(
        self,
        context: RuntimeContext,
        talks: LiveTalks,
        *,
        hosting: bool = True,
        wrap: Callable[[Dispatcher], Notifier] | None = None,
    ) -> None:
        self.context = context
        self.live_talks = talks
        self.notifier: Notifier = self if wrap is None else wrap(self)
        """The dispatcher, or an adapter around it. All notifications after a commit go through it, also from here."""
        self.load: float | None = None
        """CPU load at the last check, from 0 to 1."""
        self.closing = False
        self.is_draining = False
        """True if it closes, and agents that have ended do not wake again here."""
        self._lock = context.host.lock()
        self.phase_lock = context.host.lock()
        self._awake: dict[str, Activation] = {}
        self.stuck: dict[str, Activation] = {}
        """Agents whose loop is blocked; kept by the watch."""
        self.leaving: list[tuple[float, Activation]] = []
        """Agents that were stopped and have not ended, with the time of the stop."""
        self.task_waiters = TaskWaiters(context.host)
        self.loops = LoopPool(context, self._thread_ended)
        self.composer = Composer(context, self)
        self.requests = Requests(context, self.notifier)
        self.meeting_delivery = MeetingDelivery(context, self.notifier, self)
        self.settler = Settler(context, self.settled, self.notifier)
        self.services = TurnServices(context, self.composer, self.requests, self.notifier, self)
        self.placement = Placement(self.services, talks, self._talks_of)
        self._claims = Claims(context, self, hosting=hosting)
        self.timers = Timers(context, self) if hosting else None
        # Notifications that one part alone handles.
        self.look = self._claims.look
        self.knows = self._claims.knows
        self.start_claims = self._claims.start
        self.deliver_talk = self.placement.deliver
        self.release_talk = self.placement.release
        self.stop_talk = self.placement.stop
        self.answered = self.requests.answered
        self.ended = self.task_waiters.done
        self.changed = self.task_waiters.tell
        self.forget_task = self.task_waiters.forget
        self.quiet_in = self.meeting_delivery.quiet_in

    def measure_load(self) -> None:
        self.load = self.context.host.load()

    # --- registry --------------------------------------------------------------------------------

    def is_awake(self, address: str) -> bool:
        return address in self._awake

    def awake(self, address: str) -> Activation | None:
        return self._awake.get(address)

    def _talks_of(self, address: str) -> TalkLanes | None:
        activation = self._awake.get(address)
        return None if activation is None or activation.phases.is_ending else activation.talks

    def state_of(self, address: str, resting: State) -> State:
        """Return the lifecycle state of an agent whose row has the state `resting`."""
        awake = self._awake.get(address)
        works = awake is not None and awake.state_log.state is not State.IDLE and resting is not State.STOPPED
        return awake.state_log.state if works and awake is not None else resting

    def has_begun(self, address: str, task_id: str) -> bool:
        """Return True if the agent has started this task."""
        activation = self._awake.get(address)
        return activation is not None and activation.intake.has_started(task_id)

    @property
    def count(self) -> int:
        """Number of agents that are awake."""
        return len(self._awake)

    @property
    def share(self) -> int:
        """Number of envelopes that each awake agent may have in RAM."""
        return max(SHARE, min(10_000, IN_RAM // (len(self._awake) + 1)))

    def all(self) -> list[Activation]:
        return list(self._awake.values())

    @property
    def is_crowded(self) -> bool:
        """Return True if agents wait for a loop, or many are about to."""
        return self.loops.is_short or self._claims.count > self.loops.few

    # --- after a commit, on the writer's thread --------------------------------------------------

    def settled(self, closings: tuple[Closing, ...], all_settled: tuple[Settled, ...]) -> None:
        self.context.facts.count_settled(closings, all_settled)
        notifier = self.notifier
        notifier.deliver(tuple(envelope for one in all_settled for envelope in one.posted))
        for closing, one in zip(closings, all_settled, strict=True):
            if one.over is not None:
                notifier.ended(closing)
            elif not one.taken:
                self.task_waiters.forget(closing.envelope.envelope_id)
            if one.answered is not None:
                notifier.answered(one.answered)

    def missed(self, sent: Iterable[Effect]) -> None:
        """Have recipients look for these first: it is not known whether they were posted."""
        effects = tuple(sent)
        addresses = {envelope.address for effect in effects for envelope in messages(effect)}
        owners = {effect.user_id for effect in effects if type(effect) is Publish}
        for activation in self.all():
            hears = (
                activation.owner in owners and activation.config.subscriptions
            )  # the store knows subscribers exactly
            if hears or activation.address in addresses:
                activation.call(activation.look_again)

    def withdraw(self, asked: tuple[tuple[str, str], ...]) -> None:
        """Drop requests for whose answer nobody waits any more: envelopes by key and id."""
        for address, envelope_id in asked:
            if (activation := self._awake.get(address)) is not None:
                activation.call(partial(activation.closings.withdraw, envelope_id))

    def sent(self, address: str, effect: Effect, envelopes: tuple[Envelope, ...]) -> None:
        """Deliver what a person has sent, to the agent `address`, or as the user `ann/`."""
        if type(effect) is SendTask and envelopes:
            if not self.context.node or self.is_awake(address):  # its end is known here
                self.task_waiters.sent(effect.envelope)
        elif type(effect) is SendTask:
            self.look_again(address)
        self.posted(envelopes)

    def look_again(self, address: str) -> None:
        """Have an agent ask the store: a send was repeated with its key, and the first delivery may have been lost."""
        activation = self.awake(address)
        if activation is None:
            self.notifier.look(address)
        else:
            activation.call(activation.look_again)

    def posted(self, envelopes: tuple[Envelope, ...] | None) -> None:
        if envelopes:
            self.notifier.deliver(envelopes)

    def deliver(self, envelopes: tuple[Envelope, ...]) -> None:
        """Deliver posted envelopes to awake agents; claim for the others."""
        self.context.facts.posted(envelopes)
        now = self.context.host.clock.now()
        boxes: dict[str, list[Envelope]] = {}
        posts: list[Envelope] = []
        for envelope in envelopes:
            if envelope.expires is not None:
                self.notifier.wake_at(envelope.expires)
            if envelope.kind is Kind.MEETING and is_post(envelope):
                posts.append(envelope)
            elif envelope.due > now:
                self.notifier.wake_at(envelope.due)
                if not self.is_awake(envelope.address):
                    self.notifier.look(envelope.address)  # a sleeping agent may wait for it
            else:
                boxes.setdefault(envelope.address, []).append(envelope)
        if posts:
            self.meeting_delivery.wake_waiters_of(posts)
            self.meeting_delivery.put(posts)
        for address, box in boxes.items():
            if not self.put(address, tuple(box)):
                self.notifier.deliver_elsewhere(address, tuple(box))

    def put(self, address: str, envelopes: tuple[Envelope, ...]) -> bool:
        """Put posted envelopes into the lanes of an agent; return False if it is not awake."""
        with self._lock:
            activation = self._awake.get(address)
            if activation is not None:
                activation.put(envelopes)
        return activation is not None

    def wake_at(self, due: float) -> None:
        if self.timers is not None:
            self.timers.ring(due)

    # One process has no other nodes.

    def deliver_elsewhere(self, address: str, envelopes: tuple[Envelope, ...]) -> None:
        self.notifier.look(address)

    def look_elsewhere(self, address: str, node: str) -> None: ...

    def look_where_known(self, address: str, profile: str) -> bool:
        return False

    def agent_changed(self, address: str, change: AgentNotice, text: str = "") -> None: ...

    def approval_decided(self, approval_id: str) -> None: ...

    def awaits(self, task_id: str) -> None: ...

    def deliver_claimed(self, all_taken: list[ClaimedWork]) -> None:
        """Deliver claimed envelopes, and wake agents that are not awake."""
        all_taken = [self._without_posts(taken) for taken in all_taken]
        made = [Activation(self, taken) if taken.is_new and taken.has_work else None for taken in all_taken]
        woken: list[Activation] = []
        missed: list[ClaimedWork] = []
        with self._lock:
            for taken, new in zip(all_taken, made, strict=True):
                activation = self._awake.get(taken.address)
                if activation is None and new is not None:
                    activation = self._awake[taken.address] = new
                    woken.append(new)
                if activation is not None:
                    activation.put(taken.envelopes, claimed=True, left=taken.more)
                elif not taken.is_new:  # it was retired during the claim
                    missed.append(taken)
        self.loops.assign(woken, few=not self.is_crowded)
        for taken in all_taken:
            self.deliver_talks(taken, taken.address)
        for taken in missed:
            self.notifier.look(taken.address)

    def deliver_talks(self, taken: ClaimedWork, agent: str = "") -> None:
        """Deliver the talks that wait for the agent; without an agent, to a worker that refuses them."""
        for talk_id, user_id in taken.talks:
            if not self.placement.holds(talk_id):
                self.notifier.deliver_talk(talk_id, user_id, None, agent)

    def _without_posts(self, taken: ClaimedWork) -> ClaimedWork:
        """Deliver posts of meetings, which need no awake agent; return the other envelopes."""
        posts = tuple(e for e in taken.envelopes if e.kind is Kind.MEETING and is_post(e))
        if not posts:
            return taken
        self.meeting_delivery.put(posts)
        return replace(taken, envelopes=tuple(e for e in taken.envelopes if e not in posts))

    # --- loops -----------------------------------------------------------------------------------

    def grow(self) -> None:
        """Free slots and loops for agents that wait; called every moment while there are any."""
        self.loops.watch()
        if self.loops.is_short:
            awake = self.all()
            for activation in [one for one in awake if one.may_release_slot and not one.slot.is_released][
                : self.loops.waiting
            ]:
                activation.call(activation.release_slot)
            self.loops.grow([activation for activation in awake if activation.is_idle])

    def retire_idle(self) -> None:
        """Retire idle agents at once."""
        with self.context.host.together():
            for activation in self.all():
                if activation.is_idle:
                    activation.call(activation.retire_if_idle)

    def detach(self, activation: Activation) -> None:
        """Return its loop to the pool until its closings are written."""
        loop, phases = activation.loop, activation.phases
        if not phases.move(LoopPhase.RUNNING, LoopPhase.DETACHED):
            return
        has_calls = bool(activation.calls)  # they arrived meanwhile
        if not (has_calls and phases.move(LoopPhase.DETACHED, LoopPhase.QUEUED) and activation.attach(loop)):
            self.loops.return_loop(loop, clean=activation.lane_tasks.is_clean)

    def requeue(self, activation: Activation) -> None:
        """Get a loop again for a detached agent."""
        if activation.phases.move(LoopPhase.DETACHED, LoopPhase.QUEUED):
            self.loops.assign([activation])

    def leave(self, activation: Activation, results: list[tuple[Closing, Settled]]) -> bool:
        """Retire a detached agent if these results were its last; False: it needs a loop."""

        def is_over() -> bool:
            return not activation.calls and activation.closings.are_last(results)

        with self._lock:
            if not activation.phases.move(LoopPhase.DETACHED, LoopPhase.RETIRED, is_over):
                return False
            self._forget(activation)
            activation.talks.retired = True
        activation.ended.set(None)
        return True

    def _thread_ended(self, loop: Loop, error: BaseException | None) -> None:
        """Called on the dying thread."""
        culprit = (loop.busy_with() or "").partition(" ")[0]
        for activation in self.all() if not self.closing else ():
            if activation.phases.has_loop and activation.loop is loop:
                log.error(
                    "thread of an agent ended; moving the agent", exc_info=error, extra={"agent": activation.address}
                )
                self.lose(activation, culprit=culprit)

    # --- retiring --------------------------------------------------------------------------------

    def release(self, activation: Activation) -> bool:
        """Retire an agent that has nothing to do or drains, and take its loop; False: it has calls to run first."""
        with self._lock:
            again = activation.phases.is_ending
            if activation.calls or not activation.phases.retire():
                return False  # it comes here again after it has run them
            self._forget(activation)
            activation.talks.retired = True
        self.loops.return_loop(activation.loop, clean=activation.lane_tasks.is_clean)
        if again:  # work that arrived meanwhile may wake it again
            self.notifier.look(activation.address)
        return True

    def cancel_task(self, address: str, task_id: str) -> None:
        if (activation := self._awake.get(address)) is not None:
            activation.call(partial(activation.cancel, task_id))

    def stop_agent(self, address: str) -> None:
        """Remove an agent that was stopped or deleted; its results are discarded."""
        with self._lock:
            activation = self._awake.pop(address, None)
            if activation is not None:  # in one step, or an agent that becomes idle could be released as well
                self.leaving.append((self.context.host.clock.monotonic(), activation))
        if activation is not None:
            for work in activation.works:
                work.fence(StopReason.DRAIN, self.context.host.clock.now())
            self.placement.forget(activation.talks, StopReason.DRAIN)
            activation.call(activation.stop)

    def stop_everything(self) -> None:
        """Stop all agents and talks at once, and start none: this process has lost the right to write for them."""
        self.closing = True
        for activation in self.all():
            self.stop_agent(activation.address)
        self.placement.stop_all()

    def lose(self, activation: Activation, fault: Fault = Fault.INTERNAL, culprit: str | None = None) -> bool:
        """Move an agent whose loop is blocked or has ended to another one; False: it has left that loop."""
        with self._lock:
            if not any(
                activation.phases.move(phase, LoopPhase.RETIRED) for phase in (LoopPhase.RUNNING, LoopPhase.DRAINING)
            ):
                return False
        lost_agents.lose(self, activation, fault, culprit)
        self.loops.end(activation.loop)
        return True

    def forget(self, activation: Activation) -> None:
        """Remove it from the registry."""
        with self._lock:
            self._forget(activation)

    def _forget(self, activation: Activation) -> None:
        if self._awake.get(activation.address) is activation:
            del self._awake[activation.address]
        self.leaving = [(since, one) for since, one in self.leaving if one is not activation]

    def abandon_unstopped(self) -> None:
        """Abandon the loops of agents that were stopped and do not end in time."""
        latest = self.context.host.clock.monotonic() - self.context.limits.stop_patience - 1.0
        for since, activation in list(self.leaving):
            if since < latest:
                with self._lock:
                    has_loop = activation.phases.has_loop
                    if not activation.phases.retire():
                        continue  # another agent may have its loop by now
                    self._forget(activation)
                log.error("agent did not stop in time; its loop is abandoned", extra={"agent": activation.address})
                for envelope_id in activation.lane_queue.suspects:
                    self.context.quarantine.leave(envelope_id)
                if has_loop:
                    self.context.abandoned.add(activation.loop)

    def _call_all(self, act: Callable[[Activation], None]) -> None:
        """Call it on all loops, one after the other: thousands at once would contend for the GIL."""
        with self.context.host.together():
            for activation in self.all():
                activation.call(partial(act, activation))

    async def close(self) -> None:
        """Start no more turns, and give running ones a bounded time to end. Others run again at the next start."""
        self.closing = self.meeting_delivery.closing = True
        self.task_waiters.tell_all()  # callers that wait get the current state
        clock, limits = self.context.host.clock, self.context.limits
        await self._claims.end(1.0)
        self.is_draining = True
        latest = clock.monotonic() + limits.drain
        self._call_all(Activation.drain)
        for activation in self.all():
            if activation.phases.has_loop or activation.phases.is_detached:
                await activation.ended.within(max(0.0, latest - clock.monotonic()))
        self._call_all(Activation.stop)
        latest = clock.monotonic() + limits.stop_patience + 1.0
        for activation in self.all():
            if activation.phases.has_loop:
                await activation.ended.within(max(0.0, latest - clock.monotonic()))
        for loop in self.loops.end_all():
            if await loop.over.within(max(0.5, latest + 1.0 - clock.monotonic())):
                loop.join()
