"""A lane: the envelopes of one talk, handled one run at a time and in order."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

from roost.core.faults import Fault, sentence
from roost.core.messages import Status
from roost.core.runs import Closing, Envelope, Outcome, Settled, Why
from roost.core.steps import Recorded
from roost.errors import BrainFailed, Invalid, NotFound, Unavailable
from roost.ports import Loop, Profile
from roost.runtime.live import LiveTalk
from roost.runtime.runner import Run
from roost.runtime.shop import Shop
from roost.runtime.thinking import excerpt_of, report

if TYPE_CHECKING:
    from roost.runtime.activation import Activation

log = logging.getLogger("roost.lane")


class Lane:
    """Lives on one worker's loop while it has something to do; all its methods are called there."""

    def __init__(
        self, shop: Shop, loop: Loop, talk_id: str, user_id: str, home: Activation | None = None
    ) -> None:  # fmt: skip
        self._shop = shop
        self._home = home
        self._loop = loop
        self.talk_id = talk_id
        self.user_id = user_id
        self.waiting: deque[Envelope] = deque()
        self.claim = False
        """Whether the store must be asked what there is: the lane was someone else's before."""
        self.run: Run | None = None
        self.ending = False
        """It begins no more runs: the program closes, or the lane is someone else's now."""
        self._stopped = False
        self._tried: set[str] = set()
        """Of what waits, that of which an earlier run may have steps on record."""
        self._found: tuple[frozenset[str], tuple[Recorded, ...]] = (frozenset(), ())
        self._arrived = asyncio.Event()

    @property
    def idle(self) -> bool:
        return self.ending or not (self.waiting or self.claim or self.run)

    def deliver(self, envelope: Envelope | None) -> None:
        """Something has come in; None: look into the store."""
        if envelope is None:
            self.claim = True
        elif not self._steer(envelope):
            self.waiting.append(envelope)
        self._arrived.set()

    def _steer(self, envelope: Envelope) -> bool:
        """Offer it to the run under way; whether that was possible."""
        live = self._shop.talks.known(self.talk_id)
        if envelope.busy != "steer" or self.run is None or self.run.fenced or live is None:
            return False
        self.run.offer(envelope, live.message(envelope.seq))
        return True

    def stop(self, why: Why, requested: float) -> None:
        """End the run under way. What waits is dropped too, unless it is what superseded the run."""
        if why in (Why.STOP, Why.DELETE):
            self.waiting.clear()
            self.claim = False
            self._stopped = True
        self.ending = self.ending or why is Why.DRAIN
        if self.run is not None:
            self.run.stop(why, requested)
        self._arrived.set()

    async def work(self) -> None:
        """Run after run, until nothing is left."""
        while not self.idle:
            try:
                live = await self._shop.talks.get(self.user_id, self.talk_id)
                if self.claim:
                    await self._take_over(live)
                await self._load_all(live)
                await self._quiet()
                if self._tried:
                    await self._look_up()
                if self.waiting and not self.ending:
                    await self._answer(live)
            except NotFound:  # deleted meanwhile
                self.waiting.clear()
                self.claim = False
            except Unavailable as error:
                await self._patience(error)

    async def _take_over(self, live: LiveTalk) -> None:
        self._stopped = False
        before = {e.envelope_id for e in self.waiting}
        claimed = await self._shop.store.write(
            self._shop.statements.runs.claim, self.talk_id, key=self.talk_id, then=live.claimed
        )
        # Stopped meanwhile, perhaps after the claim: then only the store knows what is left.
        self.claim = self._stopped
        if self._stopped:
            return
        taken = claimed.envelopes if claimed else ()
        self._tried |= {e.envelope_id for e in taken}
        before |= {e.envelope_id for e in taken}
        self.waiting = deque([*taken, *(e for e in self.waiting if e.envelope_id not in before)])

    async def _quiet(self) -> None:
        """Messages to be collected wait until no more have come for a while; any other does not."""
        if self.waiting and self.waiting[0].busy != "collect":
            return
        clock, limits = self._shop.host.clock, self._shop.limits
        latest = clock.monotonic() + limits.collect_most
        while self.waiting and not self.ending and all(e.busy == "collect" for e in self.waiting):
            # Clocks may be set back: no wait is longer than it could be if they were not.
            quiet = min(max(e.due for e in self.waiting) - clock.now(), limits.collect_quiet)
            left = min(quiet, latest - clock.monotonic())
            if left <= 0:
                return
            self._arrived.clear()
            timer = asyncio.get_running_loop().call_later(left, self._arrived.set)
            try:
                await self._arrived.wait()
            finally:
                timer.cancel()

    async def _answer(self, live: LiveTalk) -> None:
        if not live.knows(self.waiting[-1].seq):
            live.drop()  # to be loaded again, with what it was not told of
            return
        envelopes = self._next()
        self.waiting = deque(e for e in self.waiting if e not in envelopes)
        if max(e.attempts for e in envelopes) > self._shop.limits.attempts:
            await self._settle(self._given_up(live, envelopes), live)
            return
        if live.talk.agent and self._home is None:
            await self._settle(self._unknown(live, envelopes), live)
            return
        profile = self._profile(live)
        if not self._shop.breakers.allows(profile):
            await self._settle(self._refused(live, envelopes), live)
            return
        self._stopped = False
        recorded = self._recorded_of(envelopes)
        new, history = live.context([e.seq for e in envelopes])
        if self.waiting:  # they came after it had begun for the first time
            later = {e.seq for e in self.waiting}
            history = [m for m in history if m.seq not in later]
        self.run = run = Run(self._shop, self._loop, live, envelopes, profile, new, history, self._home, recorded)
        self.waiting = deque(e for e in self.waiting if not self._steer(e))
        self._shop.monitor.talk_began(self.user_id, self.talk_id, run.run_id, envelopes[0].envelope_id)
        if self._home is not None:
            self._home.talking(self.user_id)
        try:
            await run.think()
            if run.why is Why.LOST:
                return  # someone else has the lane now, and closes what this run has opened
            # The right to write may be lost in between: then this closes what was opened, and no more.
            closing = run.closing()
            settled = await self._settle(closing, live)
            if closing.state is not None and not settled.superseded and self._home is None:
                live.state = closing.state
            if closing.sleep is not None and self._home is not None:
                if settled.superseded:
                    self._home.course.stay()
                else:
                    self._home.fell_asleep(closing.sleep)
            if settled.posted:
                self._shop.office.hall.deliver(settled.posted)
            # Stopped meanwhile: what the store had left then is gone there now.
            if settled.left and run.is_journaled:
                self._tried |= {e.envelope_id for e in settled.left}
            if settled.rested:
                self.waiting.clear()  # all that is left waits in the store
            elif not self._stopped and not settled.gone:
                self.waiting.extendleft(reversed([*settled.left, *run.untaken()]))
        finally:
            self.run = None
            run.quiesced.set(run.stopped())
            run.part()

    def _next(self) -> tuple[Envelope, ...]:
        """What the next run answers: all that waits, unless a run is taken up that a person has kept waiting."""
        return tuple(e for e in self.waiting if e.is_taken_up) or tuple(self.waiting)

    async def _look_up(self) -> None:
        """The steps of runs before the next one that had the same to answer."""
        tried = sorted(self._tried & {e.envelope_id for e in self._next()})
        if tried:
            steps = self._shop.statements.steps
            self._found = frozenset(tried), await self._shop.store.write(steps.recorded, tried, key=tried[0])
        self._tried -= set(tried)

    def _recorded_of(self, envelopes: tuple[Envelope, ...]) -> tuple[Recorded, ...]:
        (of, recorded), self._found = self._found, (frozenset(), ())
        return recorded if of <= {e.envelope_id for e in envelopes} else ()

    async def _load_all(self, live: LiveTalk) -> None:
        """A brain sees the whole talk, so all of it is in memory before a run begins."""
        while live.first > 1:
            older = await self._shop.store.read(
                self._shop.statements.messages.before, self.user_id, self.talk_id, live.first, 10_000
            )
            if not older:
                return
            live.prepend(older)

    def _profile(self, live: LiveTalk) -> Profile:
        """The talk's profile with the talk's own options; one that is gone fails when it is asked to think."""
        if self._home is not None:
            profile = self._home.profile()
        else:
            try:
                profile = self._shop.brains.profile(live.talk.profile)
            except Invalid:
                profile = Profile(live.talk.profile, "")
        options = live.talk.options
        return profile.told(options) if options else profile

    async def _settle(self, closing: Closing, live: LiveTalk) -> Settled:
        """Write it, however long the store takes to be able to: until then the answer is kept in memory."""
        ops, failed = self._shop.statements.runs, False
        settle = ops.rest if closing.outcome is Outcome.WAITING else ops.settle
        while True:
            try:
                settled = await self._shop.store.write(settle, closing, key=self.talk_id, then=live.settled)
            except Unavailable as error:
                failed = True
                await self._patience(error)
                continue
            self._shop.monitor.talk_settled(self.user_id, closing, settled)
            if failed and settled.superseded:
                live.drop()  # an attempt that seemed to fail may have been committed
            return settled

    async def _patience(self, error: Unavailable) -> None:
        log.warning("the store is unavailable, trying again: %s", error, extra={"session": self.talk_id})
        await asyncio.sleep(0.2 + 0.8 * self._shop.host.jitter())

    def _given_up(self, live: LiveTalk, envelopes: tuple[Envelope, ...]) -> Closing:
        error = BrainFailed(f"tried {self._shop.limits.attempts} times", kind=Fault.LOST_WORKER)
        return self._failed(live, envelopes, error, Outcome.LOST)

    def _refused(self, live: LiveTalk, envelopes: tuple[Envelope, ...]) -> Closing:
        """Whoever waits is told at once that the provider is not asked."""
        error = BrainFailed("the provider fails again and again", kind=Fault.RESTING)
        return self._failed(live, envelopes, error, Outcome.FAILED)

    def _unknown(self, live: LiveTalk, envelopes: tuple[Envelope, ...]) -> Closing:
        """It is with an agent that cannot think here."""
        error = BrainFailed(f"the profile of {live.talk.agent!r} is not known here", kind=Fault.PROFILE)
        return self._failed(live, envelopes, error, Outcome.FAILED)

    def _failed(
        self, live: LiveTalk, envelopes: tuple[Envelope, ...], error: BrainFailed, outcome: Outcome
    ) -> Closing:  # fmt: skip
        run_id, now = self._shop.host.new_id("run"), self._shop.host.clock.now()
        fault = Fault(error.kind)
        excerpt = excerpt_of(self._shop, live.message(envelopes[-1].seq).content)
        report(error, run_id, self.talk_id, excerpt, envelopes[0].envelope_id)
        return Closing(
            run_id=run_id, talk_id=self.talk_id, epoch=live.epoch, outcome=outcome, status=Status.FAILED, text="",
            envelopes=envelopes, handled=True, started=now, error=sentence(fault, run_id),
            fault=fault,
        )  # fmt: skip
