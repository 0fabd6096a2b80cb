"""Work: one brain thinking once about one envelope of an agent, with the means to act."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

from roost.core import checks, runbook, wake
from roost.core.diary import Place
from roost.core.envelopes import Envelope, Kind, Verdict, WorkClosing
from roost.core.faults import Fault
from roost.core.mail import Mail
from roost.core.messages import Message, Status, at
from roost.core.runs import Why
from roost.core.steps import Recorded, StepKind, Try
from roost.errors import BrainFailed, NotFound
from roost.ports import Meeting, Profile, Turn
from roost.runtime.acting import Acting
from roost.runtime.course import FOR_A_PERSON
from roost.runtime.diary import Diary
from roost.runtime.means import Means
from roost.runtime.thinking import FINAL
from roost.runtime.turns import in_meeting
from roost.runtime.voice import Voice

if TYPE_CHECKING:
    from roost.runtime.activation import Activation

log = logging.getLogger("roost.work")

LONGEST_PAUSE = 3_600.0
FOR_GOOD = frozenset({Fault.HOPS, Fault.NO_ANSWER, Fault.UNKNOWN_STEP})
"""Faults that another try would come to as well: what was asked and answered is on record."""


class Work(Acting):
    """Made for one try of one envelope. It is iterated in the task of the lane it belongs to."""

    task: asyncio.Task[Any] | None = None
    _length = 0
    _over = False
    _waits = 0
    _letter: Mail | None = None
    _voice: Voice | None = None
    """Of a turn in a meeting."""
    _diary: Diary | None = None

    def __init__(
        self, home: Activation, envelope: Envelope, recorded: tuple[Recorded, ...], profile: Profile
    ) -> None:  # fmt: skip
        super().__init__(home.shop, home.loop, home.address, envelope.origin)
        self._home = home
        self.envelope = envelope
        self._said: list[str] = []
        self._before = home.memory.text
        self._recorded = recorded
        self.turn = self._make_turn(profile)

    def _make_means(self) -> Means:
        home, envelope = self._home, self.envelope
        return Means(
            home.shop, home.office, self, place=self._try(), user_id=home.owner, sender=home.full_address,
            hops=envelope.hops, recorded=self._recorded, root=envelope.origin,
            default_wake=wake.mail(home.config.wake_on_priority),
        )  # fmt: skip

    @property
    def diary(self) -> Diary:
        if self._diary is None:
            place = Place(self._home.address, self.envelope.lane, self._home.owner)
            self._diary = Diary(self._shop, place, self.run_id)
        return self._diary

    def _try(self) -> Try:
        home = self._home
        return Try(
            self.envelope.envelope_id, home.address, False, home.epoch, self.run_id, home.owner, home.agent_id,
            given=None if self._voice is None else self._voice.given,
        )  # fmt: skip

    def _make_turn(self, profile: Profile) -> Turn:
        e, home = self.envelope, self._home
        text, data, subject = e.body, None, ""
        if e.kind is Kind.EVENT:
            fact = json.loads(e.body)
            text, data = fact["name"], fact["data"]
        elif e.kind is Kind.MAIL:
            self._letter = letter = home.letters.pop(e.envelope_id)
            text, subject = letter.body, letter.subject
        state = json.loads(self._before) if self._before else {}
        if e.kind is Kind.MEETING:
            return self._attend(profile, home.letters.pop(e.envelope_id), state)
        message = Message(1, e.sender, text, Status.COMPLETE, at(e.created))
        return Turn(
            e.kind, text, (message,), (), profile, home.owner, "", self.run_id, state, self, home.agent_id, e.sender,
            subject, data, e.attempts,
        )  # fmt: skip

    def _attend(self, profile: Profile, meeting: Meeting, state: dict[str, Any]) -> Turn:
        """A turn that is repeated sees the meeting as it was, or what it has done in there would be done once more."""
        before = next((one.result for one in self._recorded if one.kind == StepKind.GIVEN), None)
        if before is not None:
            meeting = meeting.as_given(json.loads(before)) or meeting
        self._voice = Voice(meeting, self._said, lambda: self.means)
        home = self._home
        return in_meeting(
            meeting, profile, home.owner, self.run_id, state, self, str(home.agent_id), self.envelope.attempts
        )  # fmt: skip

    # --- thinking --------------------------------------------------------------------------------

    async def think(self) -> None:
        """Return when the brain has ended, has failed or was stopped; what went wrong is kept in `error`."""
        self.task = self._task = asyncio.current_task()
        if self._task is not None:
            self._task.set_name(self.run_id)
        try:
            await self._iterate()
            if self._letter is not None:
                await self._answer(self._letter)
            if self._voice is not None:
                self.means.speak(self._voice)
        except asyncio.CancelledError as error:
            if not self.fenced:  # the lane itself is cancelled: nobody else does that
                raise
            self.error = error
            while self._task is not None and self._task.uncancel():
                pass
        except Exception as error:
            self.error = error
        finally:
            self._over = True
            self._task = None
            if self._means is not None:
                await self._means.finish()

    @property
    def over(self) -> bool:
        return self._over

    @property
    def started(self) -> float:
        return self._started

    def _heard(self, text: str, channel: str) -> None:
        if channel != FINAL:
            return
        self._length += len(text)
        if self._length > self._shop.limits.answer_chars:
            raise BrainFailed("the answer grew too long", kind=Fault.TOO_LONG)
        self._said.append(checks.clean(text))

    async def _answer(self, letter: Mail) -> None:
        """What was said about a mail, if anything, goes back to whoever wrote it."""
        text = "".join(self._said)
        if not letter.is_answered_by_itself or not text.strip():
            return
        try:
            await self.means.answer(letter, text)
        except NotFound:  # it is done all the same, and its words are on record
            log.info("whoever wrote a mail is gone, and gets no answer", extra={"agent": self._home.address})

    def waits(self, waiting: bool) -> None:
        """However many answers it waits for, it is one that waits."""
        before = self._waits
        self._waits += 1 if waiting else -1
        if not before or not self._waits:
            cause = FOR_A_PERSON if self.is_parked else "waits for an answer"
            self._home.waits(waiting, cause, rests=self.why is Why.WAIT)

    def _agent(self) -> Activation | None:
        return self._home

    def _left(self) -> None:
        self._over = True
        self._home.abandoned(self)

    def take_steering(self) -> tuple[Message, ...]:
        return ()

    # --- ending ----------------------------------------------------------------------------------

    def closing(self) -> WorkClosing:
        if self.fenced:
            self._shop.breakers.unused(self.turn.profile)
            if self.why is Why.WAIT:
                return self._closing(Verdict.WAITING)
            if self.why is Why.STOP:
                return self._closing(Verdict.CANCELLED, "cancelled", "cancelled")
            return self._closing(Verdict.RELEASED)
        knew = self._home.memory.text
        memory, error = self._memory()
        if error is not None:
            return self._failure(error)
        self._shop.breakers.told(self.turn.profile, None)
        means, written = self._means, None
        if self._diary is not None:
            written = self._diary.written(entry=self.envelope.lane != self.envelope.envelope_id)
        if means is None:
            return self._closing(Verdict.DONE, memory=memory, knew=knew, diary=written)
        asleep = wake.to_json(means.asleep) if means.asleep else None
        sent = means.unsent()
        if self._voice is not None:
            sent = (*sent, self._voice.meeting.end_of_turn(self._shop.host.new_id("entry")))
        return self._closing(Verdict.DONE, memory=memory, knew=knew, sent=sent, sleep=asleep, diary=written)

    def _failure(self, error: BaseException) -> WorkClosing:
        e = self.envelope
        fault, sentence = self.report(error)
        if fault in FOR_GOOD or e.attempts >= e.most_attempts:
            return self._closing(Verdict.DEAD, sentence, fault)
        pause = min(e.retry_delay * 2.0 ** (e.attempts - 1), LONGEST_PAUSE) * (0.5 + self._shop.host.jitter())
        return self._closing(Verdict.RETRY, sentence, fault, due=self._shop.host.clock.now() + pause)

    def _closing(self, verdict: Verdict, reason: str = "", fault: str | None = None, **more: Any) -> WorkClosing:
        said, now = "".join(self._said), self._shop.host.clock.now()
        journaled = self.is_journaled
        return WorkClosing(
            self.run_id, self.envelope, self._home.epoch, verdict, said, self._started, now, reason, fault,
            usage=self.usage, profile=self.turn.profile.name, journaled=journaled,
            given=self._given(verdict, journaled), **more,
        )  # fmt: skip

    def _given(self, verdict: Verdict, journaled: bool) -> str | None:
        """For a replay; nothing where there is no record of the run."""
        e = self.envelope
        is_plain = e.kind is Kind.TASK and not e.recorded
        if verdict is Verdict.DONE and is_plain and not journaled:
            return None
        message = {"sender": e.sender, "text": e.body} if is_plain else None  # it is kept nowhere else
        kept = runbook.given(
            self.turn.profile.name, self._before, self.seen, attempt=e.attempts, created=e.created, lane=e.lane,
            message=message, journaled=journaled, meeting=None if self._voice is None else self._voice.given,
        )  # fmt: skip
        return runbook.as_text(kept, self._shop.redactor.clean_json)

    def _memory(self) -> tuple[str | None, BaseException | None]:
        """The agent's memory with what this turn has changed in it; None if it has changed nothing."""
        if self.error is not None or (not self.turn.state and not self._before):
            return None, self.error
        return self._home.memory.changed(self._before, self.turn.state)
