"""Work: one attempt of a brain at one envelope of an agent."""

from __future__ import annotations

import asyncio
import json
import logging
from functools import partial
from typing import Any, Protocol

from roost.core.agents import wake
from roost.core.brain_data.brain_context import ContextKey
from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.late_answers import from_body
from roost.core.envelopes.mail import Mail
from roost.core.envelopes.outcomes import LONGEST_PAUSE
from roost.core.envelopes.sender import SenderContext
from roost.core.failures.faults import Fault
from roost.core.failures.suspicion import Suspicion
from roost.core.journal import run_history
from roost.core.journal.steps import Attempt, Recorded, StepKind
from roost.core.runs import Closing, Verdict
from roost.core.talks.messages import Message, Status, at
from roost.core.talks.runs import StopReason
from roost.core.values import checks
from roost.errors import BrainFailed, NotFound
from roost.ports import Meeting, Profile, Turn
from roost.runtime.context import RuntimeContext
from roost.runtime.execution.turn_execution import FINAL
from roost.runtime.turns.acting import ActingTurn
from roost.runtime.turns.actions import TurnActions
from roost.runtime.turns.brain_context import TurnBrainContext
from roost.runtime.turns.meeting import MeetingOutput, in_meeting
from roost.runtime.turns.owner import TurnOwner
from roost.runtime.turns.services import TurnServices

log = logging.getLogger("roost.work")

PERMANENT = frozenset({Fault.HOPS, Fault.BUDGET, Fault.NO_ANSWER, Fault.UNKNOWN_STEP, Fault.UNAWAITED})
"""Faults that a retry would meet again, since questions and answers are recorded."""


class WorkOwner(TurnOwner, Protocol):
    """Activation, as its work sees it; on its loop."""

    services: TurnServices
    context: RuntimeContext
    epoch: int
    inputs: dict[str, Any]
    """Mail and meetings of turns that are about to start, by envelope."""

    def abandoned(self, work: Work) -> None:
        """Continue without a brain that did not stop."""


class Work(ActingTurn):
    """One attempt at one envelope. It is iterated in the task of its lane."""

    task: asyncio.Task[Any] | None = None
    _length = 0
    _over = False
    _mail: Mail | None = None
    _meeting_output: MeetingOutput | None = None
    """Output of a turn in a meeting."""
    _brain_context: TurnBrainContext | None = None

    def __init__(self, agent: WorkOwner, envelope: Envelope, recorded: tuple[Recorded, ...], profile: Profile) -> None:
        super().__init__(agent.context, agent.loop, agent.address, envelope.origin)
        self._agent: WorkOwner = agent
        self.envelope = envelope
        self._output: list[str] = []
        self._before = agent.turn_state.text
        self._recorded = recorded
        self.turn = self._make_turn(profile)

    def _make_actions(self) -> TurnActions:
        agent, envelope = self._agent, self.envelope
        return TurnActions(
            agent.services,
            self,
            place=self._attempt(),
            sender=SenderContext(agent.owner, agent.full_address, envelope.hops + 1, envelope.origin),
            recorded=self._recorded,
            default_wake=wake.mail(agent.config.wake_on_priority),
        )

    @property
    def brain_context(self) -> TurnBrainContext:
        if self._brain_context is None:
            place = ContextKey(self._agent.address, self.envelope.past, self._agent.owner)
            self._brain_context = TurnBrainContext(self._context, place, self.run_id)
        return self._brain_context

    def _attempt(self) -> Attempt:
        agent = self._agent
        return Attempt(
            self.envelope.envelope_id,
            agent.address,
            False,
            agent.epoch,
            self.run_id,
            agent.owner,
            agent.agent_id,
            turn_input=None if self._meeting_output is None else self._meeting_output.position,
        )

    def _make_turn(self, profile: Profile) -> Turn:
        e, agent = self.envelope, self._agent
        text, data, subject, answer = e.body, None, "", None
        if e.kind is Kind.EVENT:
            event = json.loads(e.body)
            text, data = event["name"], event["data"]
        elif e.kind is Kind.MAIL:
            self._mail = mail = agent.inputs.pop(e.envelope_id)
            text, subject = mail.body, mail.subject
        elif e.kind is Kind.ANSWER:
            answer = from_body(e.body)
            text = answer.text
        state = json.loads(self._before) if self._before else {}
        if e.kind is Kind.MEETING:
            return self._make_meeting_turn(profile, agent.inputs.pop(e.envelope_id), state)
        message = Message(1, e.sender, text, Status.COMPLETE, at(e.created))
        turn = Turn(
            e.kind,
            text,
            (message,),
            (),
            profile,
            agent.owner,
            "",
            self.run_id,
            state,
            self,
            agent.agent_id,
            (e.sender,),
            subject,
            data,
            e.attempts,
        )
        if answer is not None:
            turn.answer = answer
        return turn

    def _make_meeting_turn(self, profile: Profile, meeting: Meeting, state: dict[str, Any]) -> Turn:
        """Return a turn in a meeting. A repeated turn sees the meeting as it was, so that it does not act twice."""
        position = next((step.result for step in self._recorded if step.kind == StepKind.GIVEN), None)
        if position is not None:
            meeting = meeting.at_position(json.loads(position)) or meeting
        self._meeting_output = MeetingOutput(meeting, self._output, lambda: self.actions, self.flush)
        agent = self._agent
        return in_meeting(
            meeting, profile, agent.owner, self.run_id, state, self, str(agent.agent_id), self.envelope.attempts
        )

    # --- running --------------------------------------------------------------------------------

    async def think(self) -> None:
        """Iterate the brain until it ends, fails or is stopped; keep its exception in `error`."""
        self.task = self._task = asyncio.current_task()
        if self._task is not None:
            self._task.set_name(self.run_id)
        try:
            await self._iterate()
            if self._mail is not None:
                await self._answer(self._mail)
            if self._meeting_output is not None:
                self.actions.add_last_entries(self._meeting_output)
        except asyncio.CancelledError as error:
            if not self.fenced:  # the task of the lane is cancelled, not this turn
                raise
            self.error = error
            while self._task is not None and self._task.uncancel():
                pass
        except Exception as error:
            self.error = error
        finally:
            self._over = True
            self._task = None
            if self._actions is not None:
                await self._actions.finish()

    @property
    def over(self) -> bool:
        return self._over

    @property
    def started(self) -> float:
        return self._started

    @property
    def is_waiting(self) -> bool:
        """Return True if it waits for an answer, or for a person."""
        return self._waits > 0

    @property
    def has_changed_state(self) -> bool:
        try:
            return json.dumps(self.turn.state) != (self._before or "{}")
        except (TypeError, ValueError, RecursionError):
            return False

    def _on_output(self, text: str, channel: str) -> None:
        if channel != FINAL:
            return
        self._length += len(text)
        if self._length > self._context.limits.answer_chars:
            raise BrainFailed("the answer grew too long", kind=Fault.TOO_LONG)
        self._output.append(checks.clean(text))

    async def _answer(self, mail: Mail) -> None:
        """Reply to the sender of a mail with the brain's text, if there is any."""
        text = "".join(self._output)
        if not mail.is_answered_by_itself or not text.strip():
            return
        try:
            await self.actions.answer(mail, text)
        except NotFound:  # the mail is handled anyway, and the text is recorded
            log.info("sender of a mail is gone; no reply is sent", extra={"agent": self._agent.address})

    def _report_waiting(self, waiting: bool, cause: str) -> None:
        if waiting and self.envelope.suspect >= Suspicion.QUARANTINED:
            self._step_out(self.envelope.envelope_id, [self.envelope.envelope_id])
        self._agent.activity.turn_waits(waiting, cause, parks=self.why is StopReason.WAIT)

    def _on_abandoned(self) -> None:
        self._over = True
        self._agent.abandoned(self)

    def take_steering(self) -> tuple[Message, ...]:
        return ()

    # --- ending ----------------------------------------------------------------------------------

    def _final_effects(self) -> tuple[Effect, ...]:
        if self._meeting_output is None:
            return ()
        return (self._meeting_output.meeting.end_of_turn(self._context.host.new_id("entry")),)

    def lost(self, fault: Fault) -> Closing:
        """Return the closing of work that blocked or ended its loop."""
        return self._failure(BrainFailed("it has blocked or ended the loop of its agent", kind=fault))

    def _failure(self, error: BaseException) -> Closing:
        e = self.envelope
        report = self.report(error)
        failed = partial(self._closing, reason=report.sentence, fault=report.fault, traceback=report.traceback)
        if report.fault in PERMANENT or e.attempts >= e.most_attempts:
            return failed(Verdict.DEAD)
        delay = min(e.retry_delay * 2.0 ** (e.attempts - 1), LONGEST_PAUSE) * (0.5 + self._context.host.jitter())
        return failed(Verdict.RETRY, due=self._context.host.clock.now() + delay)

    def _closing(self, verdict: Verdict, **more: Any) -> Closing:
        if verdict is Verdict.CANCELLED:
            more = {"reason": "cancelled", "fault": "cancelled", **more}
        written, journaled = None, self.is_journaled
        if self._brain_context is not None and verdict is Verdict.DONE:
            written = self._brain_context.written(entry=self.envelope.past != self.envelope.envelope_id)
        return Closing(
            self.run_id,
            self.envelope,
            self._agent.epoch,
            verdict,
            "".join(self._output),
            self._started,
            self._context.host.clock.now(),
            brain_context=written,
            usage=self.usage,
            profile=self.turn.profile.name,
            journaled=journaled,
            turn_input=self._turn_input(verdict, journaled),
            **more,
        )

    def _turn_input(self, verdict: Verdict, journaled: bool) -> str | None:
        """Return the input for a replay; None if the run leaves no record."""
        e = self.envelope
        is_plain = e.kind is Kind.ANSWER or (e.kind is Kind.TASK and not e.recorded)
        if verdict is Verdict.DONE and is_plain and not journaled and e.kind is Kind.TASK:
            return None
        message = {"sender": e.sender, "text": e.body} if is_plain else None  # stored nowhere else
        recorded = run_history.turn_input(
            self.turn.profile.name,
            self._before,
            self.seen,
            attempt=e.attempts,
            created=e.created,
            lane=e.past,
            message=message,
            journaled=journaled,
            did=self.did(is_done=verdict is Verdict.DONE),
            meeting=None if self._meeting_output is None else self._meeting_output.position,
        )
        return run_history.as_text(recorded, self._context.redactor.clean_json)

    def _final_state(self) -> tuple[str | None, str | None, BaseException | None]:
        """Return the agent's state. A turn that has already spoken in its meeting does not run again."""
        if self.error is not None or (not self.turn.state and not self._before):
            return None, None, self.error
        was_heard = self._meeting_output is not None and self._actions is not None and self._actions.has_spoken
        return self._agent.turn_state.changed(self._before, self.turn.state, again=not was_heard)
