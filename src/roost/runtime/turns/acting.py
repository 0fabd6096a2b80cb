"""Acting: thinking that has the means to act on the world, and leaves a record of what it did."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from roost.core.agents.agent import FOR_A_PERSON
from roost.core.journal.action_log import changes
from roost.core.journal.steps import Recorded
from roost.errors import Unavailable
from roost.runtime.execution.turn_execution import TurnExecution
from roost.runtime.turns.actions import TurnActions
from roost.runtime.turns.owner import TurnOwner
from roost.runtime.turns.shared_state import unread
from roost.stores.sql.inbox import recovery

log = logging.getLogger("roost.quarantine")


class ActingTurn(TurnExecution):
    """What `Run` and `Work` have in common, and a replay has not."""

    _recorded: tuple[Recorded, ...] = ()
    """The steps of earlier tries."""
    _actions: TurnActions | None = None
    _waits = 0

    @property
    def actions(self) -> TurnActions:
        """Made when it is first asked for: most turns never act."""
        if self._actions is None:
            self._actions = self._make_actions()
        return self._actions

    @abstractmethod
    def _make_actions(self) -> TurnActions: ...

    def waits(self, waiting: bool) -> None:
        """However many answers it waits for, it is one that waits."""
        before = self._waits
        self._waits += 1 if waiting else -1
        if not before or not self._waits:
            self._report_waiting(waiting, FOR_A_PERSON if self.is_parked else "waits for an answer")

    def _agent(self) -> TurnOwner | None:
        return None

    async def regain(self) -> None:
        home = self._agent()
        if home is not None and home.slot.is_released:
            await home.slot.regain()

    @abstractmethod
    def _report_waiting(self, waiting: bool, cause: str) -> None:
        """Tell the agent whose turn this is, if it is one, that it waits or does not any more."""

    def _step_out(self, key: str, envelope_ids: Sequence[str], order: str = "") -> None:
        """Leave quarantine to wait for an answer: the agent that gives it may wait for quarantine too.

        It is put on record, or each death of the process would count for all that wait; `order` is the write's key.
        """
        try:
            self._context.store.write(recovery.step_out, envelope_ids, key=order)
        except Unavailable as error:
            log.warning("a turn that waits is still marked as one in quarantine: %s", error)
        self._context.quarantine.leave(key)

    @property
    def is_journaled(self) -> bool:
        """Return True if there are steps of it on record."""
        return bool(self._recorded) or (self._actions is not None and self._actions.is_journaled)

    @property
    def seen(self) -> dict[str, list[Any]]:
        """Return what it was given in answer to what it did, in order, for a replay."""
        return {} if self._actions is None else self._actions.seen

    _before: str | None
    """The state before the turn, as JSON."""

    def did(self, *, is_done: bool) -> dict[str, Any]:
        """What it did, in short, to compare a replay with: sends, questions, steps, memories, state, thoughts."""
        state = unread(self.turn.state)
        written = list(changes(self._before, state)) if is_done and (state or self._before) else []
        if not written and self._action_log is None:
            return {}
        for content in written:
            self.action_log.add(content)
        return self.action_log.kept(self._context.redactor.clean_json)

    def part(self) -> None:
        """It is over, and nobody asks it any more: in a circle it would wait, with all it has read, for the collector.

        A brain that may still run keeps what it has.
        """
        if self.over and self.error is None and not self.fenced:
            self.turn._runtime = self._actions = self.turn._coroutines = None
