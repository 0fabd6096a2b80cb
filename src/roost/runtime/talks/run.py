"""A run: one brain thinking once for one talk, whose answer is read while it is written."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Sequence
from typing import Any

from roost.core.agents import wake
from roost.core.brain_data.brain_context import ContextKey, ContextWrite
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.sender import SenderContext
from roost.core.failures import faults
from roost.core.failures.suspicion import Suspicion
from roost.core.journal import run_history
from roost.core.journal.steps import Attempt, Recorded
from roost.core.runs import AnswerEnd, Closing, Verdict
from roost.core.talks.messages import Message
from roost.core.talks.runs import REPEATED, Stop, StopReason
from roost.errors import BrainFailed
from roost.ports import Loop, Pending, Profile, Turn
from roost.runtime.talks.answer_writer import Answer
from roost.runtime.talks.live_talk import LiveTalk
from roost.runtime.turns.acting import ActingTurn
from roost.runtime.turns.actions import TurnActions
from roost.runtime.turns.brain_context import TurnBrainContext
from roost.runtime.turns.owner import TurnOwner
from roost.runtime.turns.services import TurnServices
from roost.runtime.turns.shared_state import state_json


class TalkRun(ActingTurn):
    """Made for one turn and thrown away after it."""

    def __init__(
        self,
        services: TurnServices,
        loop: Loop,
        live: LiveTalk,
        envelopes: tuple[Envelope, ...],
        profile: Profile,
        new: list[Message],
        history: Sequence[Message],
        agent: TurnOwner | None = None,
        recorded: tuple[Recorded, ...] = (),
    ) -> None:
        context = services.context
        super().__init__(context, loop, live.talk_id, envelopes[0].envelope_id)
        self._services = services
        self._live = live
        self.epoch = live.epoch
        self.envelopes = envelopes
        self.quiesced: Pending[Stop] = context.host.pending()
        self._answer = Answer(context, loop, live, self.run_id, self.epoch)
        self._steering: deque[tuple[Envelope, Message]] = deque()
        self._offered: set[str] = set()
        self._looks = 0
        self._steered: list[tuple[int, list[int]]] = []
        """Further messages that it was given, by the number of its look for them."""
        self._ended: asyncio.Future[None] = self._aloop.create_future()
        self._agent = agent
        self._brain_context: TurnBrainContext | None = None
        self._before = live.state if agent is None else agent.turn_state.text
        self._recorded = recorded
        self._shared = None if agent is None else agent.turn_state.share(envelopes[0].envelope_id)
        """`turn.state` of the agent, shared with its other turns."""
        state: dict[str, Any] = {} if not self._before else json.loads(self._before)
        if self._shared is not None:
            state = self._shared
        text = new[0].content if len(new) == 1 else "\n".join(m.content for m in new)
        self.turn = Turn(
            "talk",
            text,
            tuple(new),
            history,
            profile,
            live.owner,
            live.talk_id,
            self.run_id,
            state,
            self,
            agent_id=agent.agent_id if agent else None,
            senders=(f"user:{live.owner}",),
        )

    def _make_actions(self) -> TurnActions:
        """Make the actions of the turn; it sends as the agent, or as the person."""
        agent, owner, first = self._agent, self._live.owner, self.envelopes[0].envelope_id
        decides, agent_id = (owner, None) if agent is None else (agent.owner, agent.agent_id)
        place = Attempt(
            first,
            self._live.talk_id,
            True,
            self.epoch,
            self.run_id,
            decides,
            agent_id,
            tuple(e.envelope_id for e in self.envelopes[1:]),
        )
        if agent is None:
            return TurnActions(
                self._services,
                self,
                place=place,
                sender=SenderContext(owner, f"user:{owner}", 1, self.root),
                recorded=self._recorded,
            )
        return TurnActions(
            self._services,
            self,
            place=place,
            sender=SenderContext(agent.owner, agent.full_address, 1, self.root),
            recorded=self._recorded,
            default_wake=wake.mail(agent.config.wake_on_priority),
        )

    @property
    def brain_context(self) -> TurnBrainContext:
        if self._brain_context is None:
            live = self._live
            self._brain_context = TurnBrainContext(self._context, ContextKey(live.talk_id, "", live.owner), self.run_id)
        return self._brain_context

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
            if self._actions is not None:
                await self._actions.finish()

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

    def _on_output(self, text: str, channel: str) -> None:
        self._answer.say(text, channel)

    def _on_fenced(self) -> None:
        self._answer.finished = True

    def _report_waiting(self, waiting: bool, cause: str) -> None:
        isolated = [e.envelope_id for e in self.envelopes if e.suspect >= Suspicion.QUARANTINED] if waiting else []
        if isolated:
            self._step_out(self._live.talk_id, isolated, self._live.talk_id)
        if self._agent is not None:
            self._agent.activity.turn_waits(waiting, cause, parks=self.why is StopReason.WAIT, talk=True)

    def _on_abandoned(self) -> None:
        self._ended.set_result(None)

    # --- being steered ---------------------------------------------------------------------------

    def offer(self, envelope: Envelope, message: Message) -> None:
        """Offer a message to the brain; one that it was offered before has no effect."""
        if envelope.envelope_id not in self._offered:
            self._offered.add(envelope.envelope_id)
            self._steering.append((envelope, message))

    def untaken(self) -> list[Envelope]:
        """Return what was offered and never taken; it waits for the next run."""
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
            self.flush(end=True)
            self._answer.split()
        return tuple(taken)

    # --- ending ----------------------------------------------------------------------------------

    def _end(self) -> None:
        """Withdraw the open questions, unless the turn is repeated, and the part in the state if it was stopped."""
        if self._actions is not None and self.why not in REPEATED:
            self._actions.withdraw()
        if self.fenced:
            self._withdraw()

    def _failure(self, error: BaseException, *, lost: bool = False) -> Closing:
        if not lost:  # the state of a lost agent is loaded again from the store
            self._withdraw()
        report = self.report(error)
        failed = {"reason": report.sentence, "fault": report.fault, "traceback": report.traceback}
        return self._closing(Verdict.DEAD, lost=lost, **failed)

    def _closing(self, verdict: Verdict, *, lost: bool = False, **more: Any) -> Closing:
        answer, stop = self._answer, self.stopped() if self.fenced and not lost else None
        if self._agent is not None and more.get("sleep") is not None:
            more["changes"] = [self._agent.asleep()]
        return Closing(
            self.run_id,
            self.envelopes[0],
            self.epoch,
            verdict,
            answer.said(),
            self._started,
            self._context.host.clock.now(),
            usage=self.usage,
            profile=self.turn.profile.name,
            journaled=self.is_journaled,
            turn_input=None if lost else self._turn_input(),
            brain_context=None if lost else self._written(),
            others=self.envelopes[1:],
            answer=AnswerEnd(answer.noted(), answer.first_chunk, stop, lost, self._live.owner),
            agent_epoch=None if self._agent is None else self._agent.epoch,
            **more,
        )

    def _written(self) -> ContextWrite | None:
        """Return the brain context to write; None if the turn runs again, or is rolled back or deleted."""
        again = self.why in (StopReason.DRAIN, StopReason.ROLLBACK, StopReason.LOST, StopReason.DELETE, StopReason.WAIT)
        return None if again or self._brain_context is None else self._brain_context.written()

    def _turn_input(self) -> str:
        """Return the input of the turn, for a replay."""
        turn = self.turn
        kept = run_history.turn_input(
            turn.profile.name,
            self._before,
            self.seen,
            messages=[m.seq for m in turn.messages],
            history=turn.history[-1].seq if turn.history else 0,
            options=dict(self._live.talk.options),
            steered=self._steered,
            agent=turn.agent_id,
            journaled=self.is_journaled,
            taken_over=self._shared.taken_over if self._shared is not None else None,
            did=self.did(is_done=self.error is None and not self.fenced),
        )
        return run_history.as_text(kept, self._context.redactor.clean_json)

    def lost(self, fault: faults.Fault | None, *, tried: bool = True) -> Closing:
        """Return the closing of a run whose worker is lost: it runs again, or fails if it is to blame.

        `tried`: whether this counts as an attempt if it runs again.
        """
        self.fence(StopReason.LOST, self._context.host.clock.now())
        if fault is None:
            verdict = Verdict.RETRY if tried else Verdict.RELEASED
            return self._closing(verdict, fault=faults.Fault.LOST_WORKER, lost=True)
        return self._failure(BrainFailed("it has blocked or ended the loop of its worker", kind=fault), lost=True)

    def _final_state(self) -> tuple[str | None, str | None, BaseException | None]:
        if self.error is not None:
            return None, None, self.error
        if self._agent is not None and self._shared is not None:
            return self._agent.turn_state.ended(self._shared, self.turn.state)
        if not self.turn.state and not self._before:
            return None, None, None
        try:
            return self._before, state_json(self.turn.state, self._context.limits.state_chars), None
        except BrainFailed as error:
            return None, None, error

    def _withdraw(self, kept: tuple[str | None, str] | None = None) -> None:
        if self._agent is not None and self._shared is not None:
            self._agent.turn_state.withdraw(self._shared, kept)

    def refused(self, closing: Closing) -> None:
        """Withdraw the changes of the agent's state: only the text of this run was written."""
        if closing.verdict is Verdict.DONE:
            self._withdraw(None if closing.state is None else (closing.state_before, closing.state))
