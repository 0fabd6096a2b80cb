"""Work: one brain thinking once about one envelope of an agent, with the means to act."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roost.core import wake
from roost.core.envelopes import Envelope, Kind, Recorded, Verdict, WorkClosing
from roost.core.faults import Fault
from roost.core.messages import Message, Status, at
from roost.core.runs import Why
from roost.errors import BrainFailed, LimitReached
from roost.ports import Turn
from roost.runtime.means import Means
from roost.runtime.thinking import Thinking

if TYPE_CHECKING:
    from roost.runtime.activation import Activation

LONGEST_PAUSE = 3_600.0


class Work(Thinking):
    """Made for one try of one envelope. It is iterated in the task of the lane it belongs to."""

    def __init__(self, home: Activation, envelope: Envelope, recorded: tuple[Recorded, ...]) -> None:
        super().__init__(home.shop, home.loop, home.address)
        self._home = home
        self.envelope = envelope
        self._said: list[str] = []
        self._length = 0
        self._over = False
        self.task: asyncio.Task[Any] | None = None
        self._before = home.memory_text
        self.means = Means(
            home.shop, home.office, self, user_id=home.owner, sender=home.full_address, hops=envelope.hops,
            envelope_id=envelope.envelope_id, address=home.address, epoch=home.epoch, recorded=recorded,
            default_wake=wake.mail(home.config.wake_on_priority),
        )  # fmt: skip
        self.turn = self._make_turn()

    def _make_turn(self) -> Turn:
        e, home = self.envelope, self._home
        text, data, subject = e.body, None, ""
        if e.kind is Kind.EVENT:
            fact = json.loads(e.body)
            text, data = fact["name"], fact["data"]
        elif e.kind is Kind.MAIL:
            letter = home.letters.pop(e.envelope_id)
            text, subject = letter.body, letter.subject
        message = Message(1, e.sender, text, Status.COMPLETE, at(e.created))
        state = json.loads(self._before) if self._before else {}
        return Turn(
            e.kind, text, (message,), (), home.profile(), home.owner, "", self.run_id, state, self,
            agent_id=home.agent_id, sender=e.sender, subject=subject, data=data, attempt=e.attempts,
        )  # fmt: skip

    # --- thinking --------------------------------------------------------------------------------

    async def think(self) -> None:
        """Return when the brain has ended, has failed or was stopped; what went wrong is kept in `error`."""
        self.task = self._task = asyncio.current_task()
        if self._task is not None:
            self._task.set_name(f"{self.run_id} {self._home.address}")
        try:
            await self._iterate()
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
            await self.means.finish()

    @property
    def over(self) -> bool:
        return self._over

    def _heard(self, text: str) -> None:
        self._length += len(text)
        if self._length > self._shop.limits.answer_chars:
            raise LimitReached("the answer grew too long")
        self._said.append(text)

    def _left(self) -> None:
        self._over = True
        self._home.abandoned(self)

    def take_steering(self) -> tuple[Message, ...]:
        return ()

    # --- ending ----------------------------------------------------------------------------------

    def closing(self) -> WorkClosing:
        e, now = self.envelope, self._shop.host.clock.now()
        text = "".join(self._said)
        base = WorkClosing(self.run_id, e, self._home.epoch, Verdict.DONE, text, self._started, now)
        if self.fenced:
            verdict = Verdict.CANCELLED if self.why is Why.STOP else Verdict.RELEASED
            return replace(base, verdict=verdict, reason="cancelled", fault="cancelled")
        memory, error = self._memory()
        if error is None:
            asleep = self.means.asleep
            return replace(
                base, memory=memory, sent=self.means.unsent(), sleep=wake.to_json(asleep) if asleep else None
            )  # fmt: skip
        fault, sentence = self.report(error)
        if fault in (Fault.HOPS, Fault.UNKNOWN_STEP) or e.attempts >= e.most_attempts:
            return replace(base, verdict=Verdict.DEAD, reason=sentence, fault=fault)
        pause = min(e.retry_delay * 2.0 ** (e.attempts - 1), LONGEST_PAUSE) * (0.5 + self._shop.host.jitter())
        return replace(base, verdict=Verdict.RETRY, reason=sentence, fault=fault, due=now + pause)

    def _memory(self) -> tuple[str | None, BaseException | None]:
        """The agent's memory with what this turn has changed in it; None if it has changed nothing."""
        if self.error is not None or (not self.turn.state and not self._before):
            return None, self.error
        try:
            after = json.dumps(self.turn.state, allow_nan=False)
            if after == self._before:
                return None, None
            merged = self._home.remember(self._before, after)
        except (TypeError, ValueError, RecursionError) as error:
            return None, BrainFailed(f"turn.state must be what JSON can hold: {error}")
        if len(merged) > self._shop.limits.memory_chars:
            return None, LimitReached("turn.state grew too long")
        return merged, None
