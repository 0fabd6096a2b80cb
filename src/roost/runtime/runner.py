"""A run: one brain thinking once for one talk, whose answer is read while it is written."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

from roost.core import faults
from roost.core.messages import Message, Status
from roost.core.runs import Closing, Envelope, Outcome, Stop, Why
from roost.errors import BrainFailed
from roost.ports import Loop, Pending, Profile, Turn
from roost.runtime.answer import Answer
from roost.runtime.live import LiveTalk
from roost.runtime.means import Means
from roost.runtime.shop import Shop
from roost.runtime.thinking import Thinking


class Run(Thinking):
    """Made for one turn and thrown away after it."""

    def __init__(
        self, shop: Shop, loop: Loop, live: LiveTalk, envelopes: tuple[Envelope, ...], profile: Profile,
        new: list[Message], history: list[Message],
    ) -> None:  # fmt: skip
        super().__init__(shop, loop, live.talk_id)
        self._live = live
        self.epoch = live.epoch
        self.envelopes = envelopes
        self.quiesced: Pending[Stop] = shop.host.pending()
        self._answer = Answer(shop, loop, live, self.run_id, self.epoch)
        self._steering: deque[tuple[Envelope, Message]] = deque()
        self._ended: asyncio.Future[None] = self._aloop.create_future()
        # What it sends is sent in the name of the person whose talk it is, and posted when it settles.
        self.means = Means(shop, shop.office, self, user_id=live.owner, sender=f"user:{live.owner}")
        state = json.loads(live.state) if live.state else {}
        text = new[0].content if len(new) == 1 else "\n".join(m.content for m in new)
        self.turn = Turn(
            "talk", text, tuple(new), history, profile, live.owner, live.talk_id, self.run_id, state, self
        )  # fmt: skip

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

    def _heard(self, text: str) -> None:
        self._answer.say(text)

    def _silenced(self) -> None:
        self._answer.finished = True

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
        while self._steering and not self.fenced:
            envelope, message = self._steering.popleft()
            self.envelopes += (envelope,)
            taken.append(message)
        if taken:
            self._answer.split()
        return tuple(taken)

    # --- ending ----------------------------------------------------------------------------------

    def closing(self) -> Closing:
        """What it leaves behind, now that it is over."""
        common: dict[str, Any] = {
            "run_id": self.run_id, "talk_id": self._live.talk_id, "epoch": self.epoch, "text": self._answer.said(),
            "envelopes": self.envelopes, "started": self._started, "first_chunk": self._answer.first_chunk,
        }  # fmt: skip
        if self.fenced:
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
        sent = self.means.unsent()
        return Closing(outcome=Outcome.DONE, status=Status.COMPLETE, handled=True, state=state, sent=sent, **common)

    def lost(self, fault: faults.Fault | None) -> Closing:
        """The same for a run whose worker is no more: it is run again, or fails if it is to blame."""
        self.fence(Why.LOST, self._shop.host.clock.now())
        error = None
        if fault is not None:
            _, error = self.report(BrainFailed("the loop of its worker did not turn any more", kind=fault))
        return Closing(
            run_id=self.run_id, talk_id=self._live.talk_id, epoch=self.epoch, text=self._answer.said(),
            envelopes=self.envelopes, started=self._started, first_chunk=self._answer.first_chunk, outcome=Outcome.LOST,
            status=Status.FAILED if error else Status.INTERRUPTED, handled=error is not None, error=error,
            fault=fault or faults.Fault.LOST_WORKER, supersede=True,
        )  # fmt: skip

    def _state(self) -> tuple[str | None, BaseException | None]:
        if self.error is not None or (not self.turn.state and not self._live.state):
            return None, self.error
        try:
            return json.dumps(self.turn.state), None
        except (TypeError, ValueError, RecursionError) as error:
            return None, error
