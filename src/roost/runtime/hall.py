"""The hall: which agents are awake here, each on a loop of its own, borrowed while it is awake."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from roost.core.agents import State
from roost.core.envelopes import (
    Answered,
    Effect,
    Envelope,
    Kind,
    Publish,
    SendTask,
    Taken,
    WorkClosing,
    WorkSettled,
    messages,
)
from roost.core.meetings.effects import is_post
from roost.core.runs import Outcome, Why
from roost.ports import Loop
from roost.runtime.activation import SHARE, Activation
from roost.runtime.ends import Ends
from roost.runtime.listening import Listener
from roost.runtime.looks import Looks
from roost.runtime.loops import Loops
from roost.runtime.office import Office
from roost.runtime.presence import Presence
from roost.runtime.requests import Requests
from roost.runtime.settler import Settler
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.agents import Agents
    from roost.runtime.inbox import Inbox
    from roost.runtime.waker import Waker
    from roost.runtime.worker import TalkLanes

log = logging.getLogger("roost.hall")

IN_MEMORY = 100_000
"""Envelopes that are kept in memory, of all agents; more stay in the store until there is room."""


class Hall:
    """Any thread may call."""

    def __init__(self, shop: Shop, *, hosting: bool = True) -> None:
        self.shop = shop
        self.office = Office(shop, self)
        self.settler = Settler(shop, self)
        self.requests = Requests(shop, self)
        self.listener = Listener(shop, self)
        self.load: float | None = None
        """The share of the processors in use, as last looked at."""
        self.closing = False
        self._lock = shop.host.lock()
        self.loops = Loops(shop, self._thread_ended)
        self._looks = Looks(shop, self, hosting=hosting)
        self.look, self.not_begun, self.knows = self._looks.look, self._looks.not_begun, self._looks.knows
        self._awake: dict[str, Activation] = {}
        self.waker: Waker | None = None
        self.inbox: Inbox
        """Where talks are handed over; set by whoever starts the parts."""
        self.agents: Agents
        self.ends = Ends(shop.host)
        self.leaving: list[tuple[float, Activation]] = []
        """Stopped, and not at rest yet: since when."""

    # --- who is awake ----------------------------------------------------------------------------

    def is_awake(self, address: str) -> bool:
        return address in self._awake

    def awake(self, address: str) -> Activation | None:
        return self._awake.get(address)

    def state_of(self, address: str, resting: State) -> State:
        """The state of an agent that rests in this one, if it rests."""
        awake = self._awake.get(address)
        works = awake is not None and awake.course.state is not State.IDLE and resting is not State.STOPPED
        return awake.course.state if works and awake is not None else resting

    def has_begun(self, address: str, task_id: str) -> bool:
        """Whether the agent does this task; of those that it was only handed it does not."""
        activation = self._awake.get(address)
        return activation is not None and activation.has_begun(task_id)

    def has_room(self, address: str, count: int) -> bool:
        """Whether so many more can be handed over to it; whoever is not awake fetches all of it anyway."""
        activation = self._awake.get(address)
        return activation is None or activation.has_room(count)

    @property
    def count(self) -> int:
        """How many are awake."""
        return len(self._awake)

    @property
    def share(self) -> int:
        """How many envelopes each of those who are awake may have in memory."""
        return max(SHARE, min(10_000, IN_MEMORY // (len(self._awake) + 1)))

    def all(self) -> list[Activation]:
        return list(self._awake.values())

    @property
    def is_crowded(self) -> bool:
        """Whether agents wait for a loop, or many are about to."""
        return self.loops.are_short or self._looks.count > self.loops.few

    # --- after a commit, on the writer's thread --------------------------------------------------

    def settled(self, closings: tuple[WorkClosing, ...], all_settled: tuple[WorkSettled, ...]) -> None:
        self.shop.monitor.settled(closings, all_settled)
        self.deliver(tuple(envelope for one in all_settled for envelope in one.posted))
        for closing, one in zip(closings, all_settled, strict=True):
            if one.over is not None:
                self.ends.done(closing)
            elif not one.taken:
                self.ends.forget(closing.envelope.envelope_id)
            if one.answered is not None:
                self.answer(one.answered)

    def missed(self, sent: Iterable[Effect]) -> None:
        """Whether these were posted is not known: to whom they go looks for them before all that follows."""
        effects = tuple(sent)
        told = {envelope.address for effect in effects for envelope in messages(effect)}
        owners = {effect.user_id for effect in effects if type(effect) is Publish}
        for activation in self.all():
            hears = activation.owner in owners and activation.config.subscriptions  # who takes it, the store knows
            if hears or activation.address in told:
                activation.call(activation.look_again)

    def answer(self, answered: Answered) -> None:
        """A request has its answer."""
        self.requests.answered(answered)

    def sent(self, address: str, effect: Effect, envelopes: tuple[Envelope, ...]) -> None:
        """A person has sent something; `address` says to which agent, or `ann/` in whose name."""
        self.shop.monitor.sent(address, (effect,), envelopes)
        if type(effect) is SendTask and envelopes:
            self.ends.sent(effect.envelope)
        self.posted(envelopes)

    def posted(self, envelopes: tuple[Envelope, ...] | None) -> None:
        if envelopes:
            self.deliver(envelopes)

    def deliver(self, envelopes: tuple[Envelope, ...]) -> None:
        """Hand over what was posted; whoever is not awake is looked at."""
        self.shop.monitor.posted(envelopes)
        now = self.shop.host.clock.now()
        boxes: dict[str, list[Envelope]] = {}
        posts: list[Envelope] = []
        for envelope in envelopes:
            if envelope.expires is not None:
                self.ring(envelope.expires)
            if envelope.kind is Kind.MEETING and is_post(envelope):
                posts.append(envelope)
            elif envelope.due > now:
                self.ring(envelope.due)
                if not self.is_awake(envelope.address):
                    self.look(envelope.address)  # it may be what a sleeper waits for
            else:
                boxes.setdefault(envelope.address, []).append(envelope)
        if posts:
            self.listener.ring_of(posts)
            self.listener.put(posts)
        for address, box in boxes.items():
            with self._lock:
                activation = self._awake.get(address)
                if activation is not None and _are_many_untaken(box):
                    activation.call(activation.look_again)
                elif activation is not None:
                    activation.put(tuple(box))
            if activation is None:  # it came to rest after they were posted as if they were handed over
                self.look(address, [envelope.envelope_id for envelope in box if envelope.claimed])

    def ring(self, due: float) -> None:
        """A timer was set for then."""
        if self.waker is not None:
            self.waker.ring(due)

    def give(self, all_taken: list[Taken]) -> None:
        """Hand over what was taken, and wake whoever is not awake."""
        all_taken = [self._listened(taken) for taken in all_taken]
        made = [Activation(self, taken) if taken.anew and taken.has_work else None for taken in all_taken]
        woken: list[Activation] = []
        missed: list[Taken] = []
        with self._lock:
            for taken, new in zip(all_taken, made, strict=True):
                activation = self._awake.get(taken.address)
                if activation is None and new is not None:
                    activation = self._awake[taken.address] = new
                    woken.append(new)
                if activation is not None:
                    activation.put(taken.envelopes, taken=True, more=taken.more)
                elif not taken.anew:  # it came to rest while it was looked at
                    missed.append(taken)
        self.loops.lend(woken, few=not self.is_crowded)
        for taken in all_taken:
            self.give_talks(taken, taken.address)
        for taken in missed:
            self.look(taken.address, [envelope.envelope_id for envelope in taken.envelopes if envelope.claimed])

    def give_talks(self, taken: Taken, agent: str = "") -> None:
        """Hand over the talks that wait for it: to the agent, or to whoever says that it cannot think here."""
        for talk_id, user_id in taken.talks:
            if not self.inbox.holds(talk_id):
                self.inbox.deliver(talk_id, user_id, None, agent)

    def _listened(self, taken: Taken) -> Taken:
        """Without what was said to it in meetings: for that it need not be awake."""
        posts = tuple(e for e in taken.envelopes if e.kind is Kind.MEETING and is_post(e))
        if not posts:
            return taken
        self.listener.put(posts)
        return replace(taken, envelopes=tuple(e for e in taken.envelopes if e not in posts))

    def release_talk(self, keeper: TalkLanes, talk_id: str) -> bool:
        return self.inbox.release(keeper, talk_id)

    # --- lending loops ---------------------------------------------------------------------------

    def grow(self) -> None:
        """Called every moment while agents wait for a loop."""
        if self.loops.are_short:
            self.loops.grow([activation for activation in self.all() if activation.rests])

    def retire_resting(self) -> None:
        """Those who have nothing to do come to rest at once."""
        with self.shop.host.together():
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
        """What it did is written, and that was all: it comes to rest without a loop. False: it needs one."""
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
        for activation in self.all() if not self.closing else ():
            if activation.begun and activation.loop is loop:
                log.error("the thread of an agent has ended", exc_info=error, extra={"agent": activation.address})
                self.lose(activation)

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
            self.look(activation.address)
        return True

    def dismiss(self, address: str) -> None:
        """It was stopped or deleted: whatever it does counts for nothing any more."""
        with self._lock:
            activation = self._awake.pop(address, None)
            if activation is not None:  # in one: whoever comes to rest just now leaves no more
                self.leaving.append((self.shop.host.clock.monotonic(), activation))
                self._looks.put_back(activation.hand_back())
        if activation is not None:
            for work in activation.works:
                work.fence(Why.DRAIN, self.shop.host.clock.now())
            self.inbox.forget(activation.talks, Why.DRAIN)
            activation.call(activation.end)

    def lose(self, activation: Activation) -> None:
        """Its thread or its tasks are no more: what it did is tried again on another loop."""
        with self._lock:
            if activation.retired:
                return
            self._forget(activation)
        now = self.shop.host.clock.now()
        for work in activation.works:
            work.fence(Why.LOST, now)
            self.shop.monitor.cut_off(work.envelope, work.run_id, Outcome.LOST, work.started)
        self._looks.put_back(activation.untried())
        self.inbox.forget(activation.talks, Why.LOST)
        self.loops.end(activation.loop)
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
                with self._lock:
                    if activation.retired:
                        continue  # its loop may be another's by now
                    self._forget(activation)
                log.error("an agent would not stop and was abandoned", extra={"agent": activation.address})
                if activation.begun:
                    activation.loop.abandon()

    def _tell_all(self, act: Callable[[Activation], None]) -> None:
        """One after the other: thousands that woke at once would fight for the interpreter."""
        with self.shop.host.together():
            for activation in self.all():
                activation.call(partial(act, activation))

    async def close(self) -> None:
        """No new work; what runs gets a bounded time to end, and what did not end is tried again at the next start."""
        self.closing = True
        self.ends.tell_all()  # whoever waits is told how it is by now
        clock, limits = self.shop.host.clock, self.shop.limits
        await self._looks.end(1.0)
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


def _are_many_untaken(box: Sequence[Envelope]) -> bool:
    """Messages sent before their recipient woke: one look takes them together, instead of each by itself."""
    return sum(e.kind is Kind.TASK and not e.attempts and e.most_attempts > 1 for e in box) > 1
