"""Turns that act: attempts with the actions of a turn, a record of them, and one way to end."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from roost.core.agents import wake
from roost.core.agents.agent import FOR_A_PERSON
from roost.core.envelopes.effects import Effect
from roost.core.journal.action_log import changes
from roost.core.journal.steps import Recorded
from roost.core.runs import Closing, Verdict
from roost.core.talks.runs import StopReason
from roost.errors import Unavailable
from roost.runtime.execution.turn_execution import TurnExecution
from roost.runtime.turns.actions import TurnActions
from roost.runtime.turns.agent_state import Stale
from roost.runtime.turns.owner import TurnOwner
from roost.runtime.turns.shared_state import unread
from roost.stores.sql.inbox import recovery

log = logging.getLogger("roost.quarantine")


VERDICTS = {
    StopReason.WAIT: Verdict.WAITING,
    StopReason.INTERRUPT: Verdict.INTERRUPTED,
    StopReason.ROLLBACK: Verdict.INTERRUPTED,
    StopReason.STOP: Verdict.CANCELLED,
    StopReason.DELETE: Verdict.CANCELLED,
    StopReason.DRAIN: Verdict.RELEASED,
    StopReason.LOST: Verdict.RELEASED,
}
"""Verdicts on attempts that were stopped, by the reason."""


class ActingTurn(TurnExecution):
    """One attempt: the common part of `TalkRun` and `Work`. A replay does not act."""

    _agent: TurnOwner | None = None
    _recorded: tuple[Recorded, ...] = ()
    """Steps that earlier attempts recorded."""
    _actions: TurnActions | None = None
    _waits = 0

    @property
    def actions(self) -> TurnActions:
        """Return the actions of the turn; created on the first use, since most turns do not act."""
        if self._actions is None:
            self._actions = self._make_actions()
        return self._actions

    @abstractmethod
    def _make_actions(self) -> TurnActions: ...

    def waits(self, waiting: bool) -> None:
        """Count the answers that the turn waits for; the agent is notified of the first and the last."""
        before = self._waits
        self._waits += 1 if waiting else -1
        if not before or not self._waits:
            self._report_waiting(waiting, FOR_A_PERSON if self.is_parked else "waits for an answer")

    async def regain(self) -> None:
        agent = self._agent
        if agent is not None and agent.slot.is_released:
            await agent.slot.regain()

    @abstractmethod
    def _report_waiting(self, waiting: bool, cause: str) -> None:
        """Notify the agent of this turn, if it has one, that the turn starts or ends waiting."""

    def _step_out(self, key: str, envelope_ids: Sequence[str], order: str = "") -> None:
        """Leave quarantine to wait for an answer: the agent that answers may need the quarantine too.

        The change is stored; otherwise each crash would count as an attempt for all that wait. `order` is the key of
        the write.
        """
        try:
            self._context.store.write(recovery.step_out, envelope_ids, key=order)
        except Unavailable as error:
            log.warning("waiting turn could not be released from quarantine; its mark stays: %s", error)
        self._context.quarantine.leave(key)

    @property
    def is_journaled(self) -> bool:
        """Return True if steps of this turn are recorded."""
        return bool(self._recorded) or (self._actions is not None and self._actions.is_journaled)

    @property
    def seen(self) -> dict[str, list[Any]]:
        """Return the results of the actions of this turn, in order, for a replay."""
        return {} if self._actions is None else self._actions.seen

    _before: str | None
    """State before the turn, as JSON."""

    def did(self, *, is_done: bool) -> dict[str, Any]:
        """Return the action log, to compare a replay with: sends, questions, steps, memories, state, thoughts."""
        state = unread(self.turn.state)
        written = list(changes(self._before, state)) if is_done and (state or self._before) else []
        if not written and self._action_log is None:
            return {}
        for content in written:
            self.action_log.add(content)
        return self.action_log.kept(self._context.redactor.clean_json)

    # --- ending ----------------------------------------------------------------------------------

    def closing(self) -> Closing:
        """Return how the attempt ended, with everything that is written then."""
        self._end()
        profile, breakers = self.turn.profile, self._context.breakers
        if self.fenced:
            breakers.release(profile)
            return self._closing(VERDICTS[self.why or StopReason.STOP])
        before, state, error = self._final_state()
        if error is not None and not isinstance(error, Stale):
            return self._failure(error)
        breakers.record(profile, None)
        if error is not None:
            return self._closing(Verdict.REPEATED)
        if (actions := self._actions) is None:
            return self._closing(Verdict.DONE, state=state, state_before=before)
        sent = actions.unsent() + self._final_effects()
        if actions.asleep is None or self._agent is None:
            return self._closing(Verdict.DONE, state=state, state_before=before, sent=sent)
        sleep, published = wake.to_json(actions.asleep), tuple(actions.published)
        return self._closing(
            Verdict.DONE, state=state, state_before=before, sent=sent, sleep=sleep, published=published
        )

    def _end(self) -> None:
        """Release the open questions and the shared state of the attempt, where there are any."""

    @abstractmethod
    def _final_state(self) -> tuple[str | None, str | None, BaseException | None]:
        """Return `turn.state` before the attempt and after it, None if it is unchanged; or the error to report."""

    @abstractmethod
    def _failure(self, error: BaseException) -> Closing:
        """Return the closing of an attempt that failed."""

    @abstractmethod
    def _closing(self, verdict: Verdict, **more: Any) -> Closing:
        """Return a closing with everything that is known of any attempt."""

    def _final_effects(self) -> tuple[Effect, ...]:
        """Return effects that are sent last, when a turn is done."""
        return ()

    def release(self) -> None:
        """Break reference cycles after the turn, so that its data is freed at once.

        A brain that may still run keeps its data.
        """
        if self.over and self.error is None and not self.fenced:
            self.turn._runtime = self._actions = self.turn._coroutines = None
