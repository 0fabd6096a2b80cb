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
from roost.core.envelopes.outcomes import WorkClosing, WorkSettled
from roost.core.failures.faults import Fault
from roost.core.talks.runs import StopReason
from roost.ports import Loop
from roost.runtime.agents.activation import SHARE, Activation
from roost.runtime.agents.loop_pool import LoopPool
from roost.runtime.agents.presence import Presence
from roost.runtime.agents.settler import Settler
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch import lost_agents
from roost.runtime.dispatch.claims import Claims
from roost.runtime.dispatch.task_waiters import TaskWaiters
from roost.runtime.dispatch.timers import Timers
from roost.runtime.meetings.delivery import MeetingDelivery
from roost.runtime.outgoing.compose import Composer
from roost.runtime.outgoing.requests import Requests
from roost.runtime.ports.notifier import Notifier
from roost.runtime.talks.live_talks import LiveTalks
from roost.runtime.talks.placement import Placement
from roost.runtime.talks.worker import TalkLanes
from roost.runtime.turns.services import TurnServices

log = logging.getLogger("roost.dispatcher")

IN_MEMORY = 100_000
"""Envelopes that are kept in memory, of all agents; more stay in the store until there is room."""


class Dispatcher:
    """Any thread may call."""

    def __init__(
        self,
        context: RuntimeContext,
        talks: LiveTalks,
        *,
        hosting: bool = True,
        wrap: Callable[[Notifier], Notifier] | None = None,
    ) -> None:
        self.context = context
        self.live_talks = talks
        self.notifier: Notifier = self if wrap is None else wrap(self)
        """Itself, or an adapter around it: what follows a commit goes through it, also from here."""
        self.load: float | None = None
        """The share of the processors in use, as last looked at."""
        self.closing = False
        self._lock = context.host.lock()
        self._awake: dict[str, Activation] = {}
        self.stuck: dict[str, Activation] = {}
        """Agents whose loop was found blocked, until they work again; kept by the watch."""
        self.leaving: list[tuple[float, Activation]] = []
        """Agents that were stopped and have not ended: since when."""
        self.task_waiters = TaskWaiters(context.host)
        self.loops = LoopPool(context, self._thread_ended)
        self.composer = Composer(context, self)
        self.requests = Requests(context, self.notifier)
        self.listener = MeetingDelivery(context, self.notifier, self)
        self.settler = Settler(context, self.settled, self.notifier)
        self.services = TurnServices(context, self.composer, self.requests, self.notifier, self)
        self.placement = Placement(self.services, talks, self._talks_of)
        self._claims = Claims(context, self, hosting=hosting)
        self.timers = Timers(context, self) if hosting else None
        self.look, self.knows, self.begin_looking = self._claims.look, self._claims.knows, self._claims.begin
        self.deliver_talk, self.release_talk = self.placement.deliver, self.placement.release
        self.answered, self.ended, self.changed = self.requests.answered, self.task_waiters.done, self.task_waiters.tell
        self.forget_task, self.quiet_in = self.task_waiters.forget, self.listener.quiet_in

    # --- who is awake ----------------------------------------------------------------------------

    def is_awake(self, address: str) -> bool:
        return address in self._awake

    def awake(self, address: str) -> Activation | None:
        return self._awake.get(address)

    def _talks_of(self, address: str) -> TalkLanes | None:
        activation = self._awake.get(address)
        return None if activation is None or activation.ending or activation.retired else activation.talks

    def state_of(self, address: str, resting: State) -> State:
        """Return the state of an agent that rests in this one, if it rests."""
        awake = self._awake.get(address)
        works = awake is not None and awake.state_log.state is not State.IDLE and resting is not State.STOPPED
        return awake.state_log.state if works and awake is not None else resting

    def has_begun(self, address: str, task_id: str) -> bool:
        """Return True if the agent does this task; of those that it was only handed it does not."""
        activation = self._awake.get(address)
        return activation is not None and activation.has_begun(task_id)

    @property
    def count(self) -> int:
        """Return how many are awake."""
        return len(self._awake)

    @property
    def share(self) -> int:
        """Number of envelopes that each awake agent may have in memory."""
        return max(SHARE, min(10_000, IN_MEMORY // (len(self._awake) + 1)))

    def all(self) -> list[Activation]:
        return list(self._awake.values())

    @property
    def is_crowded(self) -> bool:
        """Return True if agents wait for a loop, or many are about to."""
        return self.loops.are_short or self._claims.count > self.loops.few

    # --- after a commit, on the writer's thread --------------------------------------------------

    def settled(self, closings: tuple[WorkClosing, ...], all_settled: tuple[WorkSettled, ...]) -> None:
        self.context.monitor.settled(closings, all_settled)
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
        told = {envelope.address for effect in effects for envelope in messages(effect)}
        owners = {effect.user_id for effect in effects if type(effect) is Publish}
        for activation in self.all():
            hears = activation.owner in owners and activation.config.subscriptions  # who takes it, the store knows
            if hears or activation.address in told:
                activation.call(activation.look_again)

    def withdraw(self, asked: tuple[tuple[str, str], ...]) -> None:
        """Have agents not begin what nobody waits for any more: envelopes by key and id."""
        for address, envelope_id in asked:
            if (activation := self._awake.get(address)) is not None:
                activation.call(partial(activation.withdraw, envelope_id))

    def sent(self, address: str, effect: Effect, envelopes: tuple[Envelope, ...]) -> None:
        """A person has sent something; `address` says to which agent, or `ann/` in whose name."""
        self.context.monitor.sent(address, (effect,), envelopes)
        if type(effect) is SendTask and envelopes:
            self.task_waiters.sent(effect.envelope)
        elif type(effect) is SendTask:
            self.look_again(address)
        self.posted(envelopes)

    def look_again(self, address: str) -> None:
        """Have an agent look for something sent again under its key: the reply to its commit may have been lost."""
        activation = self.awake(address)
        if activation is None:
            self.notifier.look(address)
        else:
            activation.call(activation.look_again)

    def posted(self, envelopes: tuple[Envelope, ...] | None) -> None:
        if envelopes:
            self.notifier.deliver(envelopes)

    def deliver(self, envelopes: tuple[Envelope, ...]) -> None:
        """Hand over posted envelopes; claim for agents that are not awake."""
        self.context.monitor.posted(envelopes)
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
                    self.notifier.look(envelope.address)  # it may be what a sleeper waits for
            else:
                boxes.setdefault(envelope.address, []).append(envelope)
        if posts:
            self.listener.wake_waiters_of(posts)
            self.listener.put(posts)
        for address, box in boxes.items():
            with self._lock:
                activation = self._awake.get(address)
                if activation is not None:
                    activation.put(tuple(box))
            if activation is None:
                self.notifier.look(address)

    def wake_at(self, due: float) -> None:
        if self.timers is not None:
            self.timers.ring(due)

    def give(self, all_taken: list[ClaimedWork]) -> None:
        """Hand over claimed envelopes, and wake agents that are not awake."""
        all_taken = [self._listened(taken) for taken in all_taken]
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
                    activation.put(taken.envelopes, taken=True, more=taken.more)
                elif not taken.is_new:  # it came to rest while it was looked at
                    missed.append(taken)
        self.loops.lend(woken, few=not self.is_crowded)
        for taken in all_taken:
            self.give_talks(taken, taken.address)
        for taken in missed:
            self.notifier.look(taken.address)

    def give_talks(self, taken: ClaimedWork, agent: str = "") -> None:
        """Hand over the talks that wait for the agent, or, without an agent, to a worker that refuses them."""
        for talk_id, user_id in taken.talks:
            if not self.placement.holds(talk_id):
                self.notifier.deliver_talk(talk_id, user_id, None, agent)

    def _listened(self, taken: ClaimedWork) -> ClaimedWork:
        """Without what was said to it in meetings: for that it need not be awake."""
        posts = tuple(e for e in taken.envelopes if e.kind is Kind.MEETING and is_post(e))
        if not posts:
            return taken
        self.listener.put(posts)
        return replace(taken, envelopes=tuple(e for e in taken.envelopes if e not in posts))

    # --- lending loops ---------------------------------------------------------------------------

    def grow(self) -> None:
        """Called every moment while agents wait for a loop."""
        self.loops.watch()
        if self.loops.are_short:
            awake = self.all()
            for activation in [one for one in awake if one.only_waits and not one.aside][: self.loops.waiting]:
                activation.call(activation.step_aside)
            self.loops.grow([activation for activation in awake if activation.rests])

    def retire_resting(self) -> None:
        """Retire idle agents at once."""
        with self.context.host.together():
            for activation in self.all():
                if activation.rests:
                    activation.call(activation.retire)

    def park(self, activation: Activation) -> None:
        """It only waits for what it did to be written: others may have its loop meanwhile."""
        loop = activation.loop
        activation.begun = False
        activation.parking.append(activation)
        if activation.inbound and activation.unpark():  # something has just come
            activation.begin(loop)
            return
        self.loops.give_back(loop, clean=activation.is_clean)

    def unpark(self, activation: Presence) -> None:
        """Something has come for it: it needs a loop again."""
        if not activation.retired and activation.unpark():
            self.loops.lend([activation])

    def leave(self, activation: Activation, results: list[tuple[WorkClosing, WorkSettled]]) -> bool:
        """Retire a parked agent if these results were its last; False: it needs a loop."""
        with self._lock:
            if not activation.unpark():
                return False
            if not activation.is_over(results):
                activation.parking.append(activation)
                return False
            self._forget(activation)
            activation.talks.retired = True
        activation.at_rest.set(None)
        return True

    def _thread_ended(self, loop: Loop, error: BaseException | None) -> None:
        """Called on the dying thread."""
        culprit = (loop.busy_with() or "").partition(" ")[0]
        for activation in self.all() if not self.closing else ():
            if activation.begun and activation.loop is loop and not activation.retired:
                log.error("the thread of an agent has ended", exc_info=error, extra={"agent": activation.address})
                self.lose(activation, culprit=culprit)

    # --- coming to rest --------------------------------------------------------------------------

    def release(self, activation: Activation) -> bool:
        """It has nothing to do, or may not go on: it gives its loop back, unless something has just come for it."""
        with self._lock:
            if activation.retired or activation.inbound:
                return False  # what has just come is looked at first, and then it comes here again
            again = activation.ending
            self._forget(activation)
            activation.talks.retired = True
        self.loops.give_back(activation.loop, clean=activation.is_clean)
        if again:  # what came meanwhile may wake it again
            self.notifier.look(activation.address)
        return True

    def dismiss(self, address: str) -> None:
        """Remove an agent that was stopped or deleted; its results are discarded."""
        with self._lock:
            activation = self._awake.pop(address, None)
            if activation is not None:  # in one step: one that becomes idle just now is not released as well
                self.leaving.append((self.context.host.clock.monotonic(), activation))
        if activation is not None:
            for work in activation.works:
                work.fence(StopReason.DRAIN, self.context.host.clock.now())
            self.placement.forget(activation.talks, StopReason.DRAIN)
            activation.call(activation.end)

    def lose(self, activation: Activation, fault: Fault = Fault.INTERNAL, culprit: str | None = None) -> bool:
        """Have the work of an agent whose loop is blocked or ended run on another one; False: it has left that loop."""
        with self._lock:
            if activation.retired:
                return False
            activation.retired = True
        lost_agents.lose(self, activation, fault, culprit)
        self.loops.end(activation.loop)
        return True

    def forget(self, activation: Activation) -> None:
        with self._lock:
            self._forget(activation)

    def _forget(self, activation: Activation) -> None:
        activation.retired = True
        if self._awake.get(activation.address) is activation:
            del self._awake[activation.address]
        self.leaving = [(since, one) for since, one in self.leaving if one is not activation]

    def insist(self) -> None:
        """Give up the loops of agents that were stopped and do not end."""
        latest = self.context.host.clock.monotonic() - self.context.limits.stop_patience - 1.0
        for since, activation in list(self.leaving):
            if since < latest:
                with self._lock:
                    if activation.retired:
                        continue  # its loop may be another's by now
                    self._forget(activation)
                log.error("an agent would not stop and was abandoned", extra={"agent": activation.address})
                for envelope_id in activation.lane_queue.suspects:
                    self.context.quarantine.leave(envelope_id)
                if activation.begun:
                    self.context.abandoned.add(activation.loop)

    def _tell_all(self, act: Callable[[Activation], None]) -> None:
        """One after the other: thousands that woke at once would fight for the interpreter."""
        with self.context.host.together():
            for activation in self.all():
                activation.call(partial(act, activation))

    async def close(self) -> None:
        """No new work; what runs gets a bounded time to end, and what did not end is tried again at the next start."""
        self.closing = self.listener.closing = True
        self.task_waiters.tell_all()  # callers that wait get the present state
        clock, limits = self.context.host.clock, self.context.limits
        await self._claims.end(1.0)
        latest = clock.monotonic() + limits.drain
        self._tell_all(Activation.finish)
        for activation in self.all():
            if activation.begun or activation.parked:
                await activation.at_rest.within(max(0.0, latest - clock.monotonic()))
        self._tell_all(Activation.end)
        latest = clock.monotonic() + limits.stop_patience + 1.0
        for activation in self.all():
            if activation.begun:
                await activation.at_rest.within(max(0.0, latest - clock.monotonic()))
        for loop in self.loops.end_all():
            if await loop.over.within(max(0.5, latest + 1.0 - clock.monotonic())):
                loop.join()
