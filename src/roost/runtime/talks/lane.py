"""A lane: the envelopes of one talk, handled one run at a time and in order."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Sequence
from functools import partial

from roost.core.envelopes.envelope import Envelope
from roost.core.failures.faults import Fault
from roost.core.failures.suspicion import Suspicion
from roost.core.journal.steps import Recorded, StepKind
from roost.core.runs import AnswerEnd, Closing, Settled, Verdict
from roost.core.talks.messages import Message
from roost.core.talks.runs import StopReason, TalkUpdate
from roost.errors import BrainFailed, Invalid, NotFound, Unavailable
from roost.ports import Loop, Profile
from roost.runtime.execution.failure_report import report
from roost.runtime.talks.live_talk import LiveTalk
from roost.runtime.talks.live_talks import LiveTalks, TalkElsewhere
from roost.runtime.talks.run import TalkRun
from roost.runtime.turns.history import TalkHistory
from roost.runtime.turns.owner import TurnOwner
from roost.runtime.turns.services import TurnServices
from roost.stores.sql import settlement
from roost.stores.sql.inbox import recovery
from roost.stores.sql.journal import steps
from roost.stores.sql.talks import messages, runs

log = logging.getLogger("roost.lane")


class TalkLane:
    """Lives on one worker's loop while it has something to do; all its methods are called there."""

    def __init__(
        self,
        services: TurnServices,
        talks: LiveTalks,
        loop: Loop,
        talk_id: str,
        user_id: str,
        agent: TurnOwner | None = None,
    ) -> None:
        self._services = services
        self._context = services.context
        self._talks = talks
        self._agent = agent
        self._loop = loop
        self.talk_id = talk_id
        self.user_id = user_id
        self.waiting: deque[Envelope] = deque()
        self.claim = False
        """True if the store must be asked what there is: the lane was someone else's before."""
        self.run: TalkRun | None = None
        self.ending = False
        """It begins no more runs: the program closes, or the lane is someone else's now."""
        self._stopped = False
        self._tried: set[str] = set()
        """Waiting envelopes of which an earlier run may have recorded steps."""
        self._found: tuple[frozenset[str], tuple[Recorded, ...]] = (frozenset(), ())
        self._arrived = asyncio.Event()

    @property
    def idle(self) -> bool:
        return self.ending or not (self.waiting or self.claim or self.run)

    def deliver(self, envelope: Envelope | None) -> None:
        """Accept an envelope; None: claim from the store."""
        if envelope is None:
            self.claim = True
        elif not self._steer(envelope):
            self.waiting.append(envelope)
        self._arrived.set()

    def _steer(self, envelope: Envelope) -> bool:
        """Offer it to the run under way; whether that was possible."""
        live = self._talks.known(self.talk_id)
        if envelope.busy != "steer" or self.run is None or self.run.fenced or live is None:
            return False
        self.run.offer(envelope, live.message(envelope.seq))
        return True

    def stop(self, why: StopReason, requested: float) -> None:
        """End the run under way. What waits is dropped too, unless it is what superseded the run."""
        if why in (StopReason.STOP, StopReason.DELETE):
            self.waiting.clear()
            self.claim = False
            self._stopped = True
        self.ending = self.ending or why is StopReason.DRAIN
        if self.run is not None:
            self.run.stop(why, requested)
        self._arrived.set()

    async def work(self) -> None:
        """Run after run, until nothing is left."""
        while not self.idle:
            try:
                live = await self._talks.get(self.user_id, self.talk_id, for_run=True)
                if self.claim:
                    await self._take_over(live)
                await self._load_waiting(live)
                await self._wait_for_quiet(live)
                if self._tried:
                    await self._load_recorded_steps()
                if self._agent is not None and self._agent.slot.is_released:
                    await self._agent.slot.regain()
                if self.waiting and not self.ending:
                    await (self._answer_alone(live) if self._suspects() else self._answer(live))
            except (NotFound, TalkElsewhere):  # deleted, or taken over by another node
                self.waiting.clear()
                self.claim = False
            except Unavailable as error:
                await self._pause_before_retry(error)

    async def _take_over(self, live: LiveTalk) -> None:
        await self._context.recovered
        self._stopped = False
        before = {e.envelope_id for e in self.waiting}
        claimed = await self._context.store.write(runs.claim, self.talk_id, key=self.talk_id, then=live.claimed)
        # Stopped meanwhile, perhaps after the claim: then only the store knows what is left.
        self.claim = self._stopped
        if self._stopped:
            return
        taken = claimed.envelopes if claimed else ()
        self._tried |= {e.envelope_id for e in taken}
        before |= {e.envelope_id for e in taken}
        self.waiting = deque([*taken, *(e for e in self.waiting if e.envelope_id not in before)])

    async def _wait_for_quiet(self, live: LiveTalk) -> None:
        """Messages to be collected wait until no more have come for a while; any other does not."""
        if self.waiting and self.waiting[0].busy != "collect":
            return
        clock, limits = self._context.host.clock, self._context.limits
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
            if self.claim:  # another node has posted more
                await self._take_over(live)

    async def _answer(self, live: LiveTalk) -> None:
        if not live.knows(self.waiting[-1].seq):
            live.drop()  # to be loaded again, with the messages it missed
            return
        envelopes = self._next()
        self.waiting = deque(e for e in self.waiting if e not in envelopes)
        if max(e.attempts for e in envelopes) > self._context.limits.attempts:
            await self._end(self._given_up(live, envelopes), live)
            return
        if live.talk.agent and self._agent is None:
            await self._end(self._unknown(live, envelopes), live)
            return
        profile = self._profile(live)
        if not self._context.breakers.allows(profile):
            await self._end(self._refused(live, envelopes), live)
            return
        self._stopped = False
        recorded = self._recorded_of(envelopes)
        if self._agent is not None:
            _take_back(self._agent, envelopes[0].envelope_id, recorded)
        new, history = self._messages_for(live, [e.seq for e in envelopes])
        self.run = run = TalkRun(
            self._services, self._loop, live, envelopes, profile, new, history, self._agent, recorded
        )
        self.waiting = deque(e for e in self.waiting if not self._steer(e))
        self._context.facts.talk_began(self.user_id, self.talk_id, run.run_id, envelopes[0].envelope_id)
        if self._agent is not None:
            self._agent.activity.talk_starts(self.user_id)
        try:
            await run.think()
            if _is_lost(run):
                return  # another worker has the lane now; the placement closes what this run has opened
            closing = run.closing()
            if _is_lost(run):  # in between
                return
            # The right to write may be lost in between: then this closes what was opened, and no more.
            if self._agent is not None:
                await self._agent.turn_state.wait_until_written()
            settled, after = await self._settle(closing, live)
            if settled.taken:
                self._apply(closing, settled, live)
            elif self._agent is not None:
                run.refused(closing)
            if after.left and run.is_journaled:
                self._tried |= {e.envelope_id for e in after.left}
            self._requeue(after, run.untaken())
        finally:
            self.run = None
            run.quiesced.set(run.stopped())
            run.release()

    async def _end(self, closing: Closing, live: LiveTalk) -> None:
        """Settle envelopes that are not attempted."""
        _, after = await self._settle(closing, live)
        self._requeue(after, [])

    def _requeue(self, after: TalkUpdate, untaken: list[Envelope]) -> None:
        """Put envelopes that are left back to the front."""
        if after.parked:
            self.waiting.clear()  # all that is left waits in the store
        elif not self._stopped and not after.gone:  # a stop has removed the rest from the store
            self.waiting.extendleft(reversed([*after.left, *untaken]))

    def _apply(self, closing: Closing, settled: Settled, live: LiveTalk) -> None:
        """Apply what was written with the end of a run: the state, the sleep of the agent, and what was posted."""
        if self._agent is None and closing.state is not None:
            live.state = closing.state
        if self._agent is not None and closing.sleep is not None:
            self._agent.fell_asleep(closing.sleep)
        if settled.posted:
            self._services.notifier.deliver(settled.posted)

    def _next(self) -> tuple[Envelope, ...]:
        """Return what the next run answers: all that waits, unless a run is taken up that a person has kept waiting.

        In quarantine only what is suspected: what came later must not fail with it.
        """
        return tuple(e for e in self.waiting if e.is_resumed) or self._suspects() or tuple(self.waiting)

    def _suspects(self) -> tuple[Envelope, ...]:
        return tuple(e for e in self.waiting if e.suspect >= Suspicion.QUARANTINED)

    async def _answer_alone(self, live: LiveTalk) -> None:
        """Run alone: when nothing else is under way there, and after the start is recorded (quarantine)."""
        quarantine, isolate = self._context.quarantine, recovery.isolate
        if not await quarantine.enter(self.talk_id, lambda: self._suspects() and not self.ending):
            return
        try:
            isolated = [e.envelope_id for e in self._suspects()]
            if await self._context.store.write(isolate, isolated, key=self.talk_id) and self._suspects():
                await self._answer(live)
            else:
                self.claim = True  # they are gone: only the store knows what is left
        finally:
            quarantine.leave(self.talk_id)

    async def _load_recorded_steps(self) -> None:
        """Read the steps that earlier runs recorded for what the next run answers."""
        tried = sorted(self._tried & {e.envelope_id for e in self._next()})
        if tried:
            self._found = frozenset(tried), await self._context.store.write(steps.recorded, tried, key=tried[0])
        self._tried -= set(tried)

    def _recorded_of(self, envelopes: tuple[Envelope, ...]) -> tuple[Recorded, ...]:
        (of, recorded), self._found = self._found, (frozenset(), ())
        return recorded if of <= {e.envelope_id for e in envelopes} else ()

    def _messages_for(self, live: LiveTalk, numbers: list[int]) -> tuple[list[Message], Sequence[Message]]:
        """Return the new messages, and all before them; the brain reads from the store those that are not in RAM."""
        new, history, first = live.context(numbers)
        if self.waiting:  # they came after it had begun for the first time
            later = {e.seq for e in self.waiting}
            history = [m for m in history if m.seq not in later]
        return new, history if first == 1 else TalkHistory(self._context, self.user_id, self.talk_id, first, history)

    async def _load_waiting(self, live: LiveTalk) -> None:
        """Load the messages that wait for an answer into RAM before a run begins."""
        live.needed = min((e.seq for e in self.waiting), default=1 << 62)
        while live.first > live.needed:
            older = await self._context.store.read(messages.before, self.user_id, self.talk_id, live.first, 10_000)
            if not older:
                return
            live.prepend(older)

    def _profile(self, live: LiveTalk) -> Profile:
        """Return the talk's profile with the talk's own options; one that is gone fails when it is asked to think."""
        if self._agent is not None:
            profile = self._agent.profile()
        else:
            try:
                profile = self._context.brains.profile(live.talk.profile)
            except Invalid:
                profile = Profile(live.talk.profile, "")
        options = live.talk.options
        return profile.with_options(options) if options else profile

    async def _settle(self, closing: Closing, live: LiveTalk) -> tuple[Settled, TalkUpdate]:
        """Write the end of a run, however long the store takes: until then the answer is kept in RAM."""
        failed = False
        while True:
            try:
                [settled] = await self._context.store.write(
                    settlement.settle,
                    (closing,),
                    key=self.talk_id,
                    facts=partial(self._context.facts.talk_settled, self.user_id, closing),
                    then=partial(self._settled, live),
                )
            except Unavailable as error:
                failed = True
                await self._pause_before_retry(error)
                continue
            self._context.facts.count_talk(self.user_id, closing, settled)
            if failed and not settled.taken:
                live.drop()  # an attempt that seemed to fail may have been committed
            assert settled.talk is not None
            return settled, settled.talk

    def _settled(self, live: LiveTalk, all_settled: tuple[Settled, ...]) -> None:
        """Update the talk in RAM; it may have been dropped and loaded again while the run was under way."""
        known = self._talks.known(self.talk_id) if live.gone else live
        if known is not None and (after := all_settled[0].talk) is not None:
            known.settled(after)

    async def _pause_before_retry(self, error: Unavailable) -> None:
        log.warning("store unavailable, trying again: %s", error, extra={"session": self.talk_id})
        await asyncio.sleep(0.2 + 0.8 * self._context.host.jitter())

    def _given_up(self, live: LiveTalk, envelopes: tuple[Envelope, ...]) -> Closing:
        error = BrainFailed(f"tried {self._context.limits.attempts} times", kind=Fault.LOST_WORKER)
        return self._failed(live, envelopes, error, lost=True)

    def _refused(self, live: LiveTalk, envelopes: tuple[Envelope, ...]) -> Closing:
        """Return the closing of a run that is refused because the circuit of its provider is open."""
        error = BrainFailed("the provider fails again and again", kind=Fault.RESTING)
        return self._failed(live, envelopes, error)

    def _unknown(self, live: LiveTalk, envelopes: tuple[Envelope, ...]) -> Closing:
        """Return the closing of a run with an agent whose profile is not known here."""
        error = BrainFailed(f"the profile of {live.talk.agent!r} is not known here", kind=Fault.PROFILE)
        return self._failed(live, envelopes, error)

    def _failed(
        self, live: LiveTalk, envelopes: tuple[Envelope, ...], error: BrainFailed, *, lost: bool = False
    ) -> Closing:
        run_id, now = self._context.host.new_id("run"), self._context.host.clock.now()
        about = {"user": live.owner, "session": self.talk_id, "root": envelopes[0].envelope_id}
        found = report(self._context, error, run_id, live.message(envelopes[-1].seq).content, about)
        return Closing(
            run_id,
            envelopes[0],
            live.epoch,
            Verdict.DEAD,
            "",
            now,
            now,
            found.sentence,
            found.fault,
            traceback=found.traceback,
            others=envelopes[1:],
            answer=AnswerEnd(lost=lost, owner=live.owner),
        )


def _is_lost(run: TalkRun) -> bool:
    return run.why is StopReason.LOST


def _take_back(agent: TurnOwner, envelope_id: str, recorded: tuple[Recorded, ...]) -> None:
    """Revert what a lost run had published in the state of its agent; its next run changes it again."""
    marks = sorted((one for one in recorded if one.kind == StepKind.STATE), key=lambda one: -one.number)
    agent.turn_state.revert(envelope_id, [tuple(json.loads(one.result or "[]")) for one in marks])
