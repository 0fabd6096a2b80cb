"""A run: one brain thinking once for one talk, whose answer is read while it is written."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import TYPE_CHECKING, Any

from roost.core import faults, runbook, wake
from roost.core.diary import Place, Written
from roost.core.messages import Message, Status
from roost.core.runs import Closing, Envelope, Outcome, Stop, Why
from roost.core.steps import Recorded, Try
from roost.errors import BrainFailed
from roost.ports import Loop, Pending, Profile, Turn
from roost.runtime.acting import Acting
from roost.runtime.answer import Answer
from roost.runtime.diary import Diary
from roost.runtime.live import LiveTalk
from roost.runtime.means import Means
from roost.runtime.shop import Shop
from roost.runtime.thinking import kept_state

if TYPE_CHECKING:
    from roost.runtime.activation import Activation


class Run(Acting):
    """Made for one turn and thrown away after it."""

    def __init__(
        self, shop: Shop, loop: Loop, live: LiveTalk, envelopes: tuple[Envelope, ...], profile: Profile,
        new: list[Message], history: list[Message], home: Activation | None = None, recorded: tuple[Recorded, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(shop, loop, live.talk_id, envelopes[0].envelope_id)
        self._live = live
        self.epoch = live.epoch
        self.envelopes = envelopes
        self.quiesced: Pending[Stop] = shop.host.pending()
        self._answer = Answer(shop, loop, live, self.run_id, self.epoch)
        self._steering: deque[tuple[Envelope, Message]] = deque()
        self._looks = 0
        self._steered: list[tuple[int, list[int]]] = []
        """At which of its looks for them it was given which further messages."""
        self._ended: asyncio.Future[None] = self._aloop.create_future()
        self._home = home
        self._diary: Diary | None = None
        self._before = live.state if home is None else home.memory.text
        self._recorded = recorded
        state = json.loads(self._before) if self._before else {}
        text = new[0].content if len(new) == 1 else "\n".join(m.content for m in new)
        self.turn = Turn(
            "talk", text, tuple(new), history, profile, live.owner, live.talk_id, self.run_id, state, self,
            agent_id=home.agent_id if home else None, sender=f"user:{live.owner}",
        )  # fmt: skip

    def _make_means(self) -> Means:
        """What it sends is posted when it settles; in the agent's name, or in that of the person whose talk it is."""
        home, owner, first = self._home, self._live.owner, self.envelopes[0].envelope_id
        decides, agent_id = (owner, None) if home is None else (home.owner, home.agent_id)
        place = Try(
            first, self._live.talk_id, True, self.epoch, self.run_id, decides, agent_id,
            tuple(e.envelope_id for e in self.envelopes[1:]),
        )  # fmt: skip
        if home is None:
            return Means(
                self._shop, self._shop.office, self, place=place, user_id=owner, sender=f"user:{owner}",
                recorded=self._recorded, root=self.root,
            )  # fmt: skip
        return Means(
            self._shop, self._shop.office, self, place=place, user_id=home.owner, sender=home.full_address,
            recorded=self._recorded, default_wake=wake.mail(home.config.wake_on_priority), root=self.root,
        )  # fmt: skip

    @property
    def diary(self) -> Diary:
        if self._diary is None:
            live = self._live
            self._diary = Diary(self._shop, Place(live.talk_id, "", live.owner), self.run_id)
        return self._diary

    # --- thinking --------------------------------------------------------------------------------

    async def think(self) -> None:
        """Return when the brain has ended, has failed, or was given up."""
        # A bare task: what third-party code does with its cancel scopes stays inside of it.
        self._task = self._aloop.create_task(self._iterate(), name=f"{self.run_id} {self._live.talk_id}")
        self._task.add_done_callback(self._done)
        try:
            await self._ended
        finally:
            await self._answer.finish()

    async def _iterate(self) -> None:
        try:
            await super()._iterate()
        finally:
            self._answer.finished = True

    def _done(self, task: asyncio.Task[None]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if not self._ended.done():
            self.error = error
            self._ended.set_result(None)

    @property
    def over(self) -> bool:
        return self._ended.done()

    def _heard(self, text: str, channel: str) -> None:
        self._answer.say(text, channel)

    def _silenced(self) -> None:
        self._answer.finished = True

    def _agent(self) -> Activation | None:
        return self._home

    def _left(self) -> None:
        self._ended.set_result(None)

    # --- being steered ---------------------------------------------------------------------------

    def offer(self, envelope: Envelope, message: Message) -> None:
        self._steering.append((envelope, message))

    def untaken(self) -> list[Envelope]:
        """What was offered and never taken; it waits for the next run."""
        left = [envelope for envelope, _ in self._steering]
        self._steering.clear()
        return left

    def take_steering(self) -> tuple[Message, ...]:
        taken = []
        self._looks += 1
        while self._steering and not self.fenced:
            envelope, message = self._steering.popleft()
            self.envelopes += (envelope,)
            taken.append(message)
        if taken:
            self._steered.append((self._looks, [message.seq for message in taken]))
            self._answer.split()
        return tuple(taken)

    # --- ending ----------------------------------------------------------------------------------

    def closing(self) -> Closing:
        """What it leaves behind, now that it is over."""
        common: dict[str, Any] = {
            "run_id": self.run_id, "talk_id": self._live.talk_id, "epoch": self.epoch, "text": self._answer.said(),
            "envelopes": self.envelopes, "started": self._started, "first_chunk": self._answer.first_chunk,
            "given": self._given(),
            "notes": self._answer.noted(), "usage": self.usage, "profile": self.turn.profile.name,
            "diary": self._written(),
        }  # fmt: skip
        if self.why is Why.WAIT:
            return Closing(
                outcome=Outcome.WAITING, status=Status.INTERRUPTED, handled=False, stop=self.stopped(), **common
            )  # fmt: skip
        if self.fenced:
            self._shop.breakers.unused(self.turn.profile)
            handled = {Why.INTERRUPT: None, Why.ROLLBACK: None, Why.DRAIN: False}.get(self.why or Why.STOP, True)
            return Closing(
                outcome=Outcome.STOPPED,
                status=Status.INTERRUPTED,
                handled=handled,
                stop=self.stopped(),
                **common,
            )
        state, error = self._state()
        if error is not None:
            fault, sentence = self.report(error)
            return Closing(
                outcome=Outcome.FAILED,
                status=Status.FAILED,
                handled=True,
                error=sentence,
                fault=fault,
                **common,
            )
        self._shop.breakers.told(self.turn.profile, None)
        means = self._means
        asleep = means.asleep if means is not None else None
        return Closing(
            outcome=Outcome.DONE, status=Status.COMPLETE, handled=True, state=state,
            sent=means.unsent() if means is not None else (), agent=self._home.address if self._home else None,
            sleep=wake.to_json(asleep) if asleep else None,
            asleep=self._home.course.asleep(self._home.full_address) if asleep and self._home else None, **common,
        )  # fmt: skip

    def _written(self) -> Written | None:
        """Nothing, if this is run again, or if nothing of it is to be left."""
        again = self.why in (Why.DRAIN, Why.ROLLBACK, Why.LOST, Why.DELETE, Why.WAIT)
        return None if again or self._diary is None else self._diary.written()

    def _given(self) -> str:
        """For a replay."""
        turn = self.turn
        kept = runbook.given(
            turn.profile.name, self._before, self.seen, messages=[m.seq for m in turn.messages],
            history=turn.history[-1].seq if turn.history else 0, options=dict(self._live.talk.options),
            steered=self._steered, agent=turn.agent_id, journaled=self.is_journaled,
        )  # fmt: skip
        return runbook.as_text(kept, self._shop.redactor.clean_json)

    def lost(self, fault: faults.Fault | None) -> Closing:
        """The same for a run whose worker is no more: it is run again, or fails if it is to blame."""
        self.fence(Why.LOST, self._shop.host.clock.now())
        error = None
        if fault is not None:
            _, error = self.report(BrainFailed("it has blocked or ended the loop of its worker", kind=fault))
        return Closing(
            run_id=self.run_id, talk_id=self._live.talk_id, epoch=self.epoch, text=self._answer.said(),
            envelopes=self.envelopes, started=self._started, first_chunk=self._answer.first_chunk, outcome=Outcome.LOST,
            status=Status.FAILED if error else Status.INTERRUPTED, handled=error is not None, error=error,
            fault=fault or faults.Fault.LOST_WORKER, supersede=True, notes=self._answer.noted(),
            usage=self.usage, profile=self.turn.profile.name,
        )  # fmt: skip

    def _state(self) -> tuple[str | None, BaseException | None]:
        if self.error is not None or (not self.turn.state and not self._before):
            return None, self.error
        if self._home is not None:
            return self._home.memory.changed(self._before, self.turn.state)
        try:
            return kept_state(self.turn.state, self._shop.limits.memory_chars), None
        except BrainFailed as error:
            return None, error
