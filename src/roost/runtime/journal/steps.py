"""Steps of a brain's own: something done outside, by any function, once."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from roost.core.journal.approvals import Question
from roost.core.journal.steps import Recorded, StepKind, StepOutcome
from roost.core.values import checks
from roost.errors import BrainFailed, ToolFailed
from roost.ports.tools import STEP_KEY
from roost.runtime.execution.blocking import do

if TYPE_CHECKING:
    from roost.runtime.execution.turn_execution import TurnExecution
    from roost.runtime.journal.approval_wait import ApprovalWait
    from roost.runtime.journal.journal import Journal

log = logging.getLogger("roost.steps")


class Steps:
    """`turn.step` of one turn; used on its loop."""

    def __init__(self, execution: TurnExecution, journal: Journal, asking: ApprovalWait) -> None:
        self._execution = execution
        self._journal = journal
        self._asking = asking
        self._names: dict[str, int] = {}

    async def step(
        self,
        name: str,
        act: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        check: Callable[[str], Any] | None = None,
    ) -> Any:
        """Return the recorded result; or run the step, recorded before and after it."""
        checks.name(name, "the name of a step")
        self._names[name] = count = self._names.get(name, 0) + 1
        name = name if count == 1 else f"{name} ({count})"  # the same name again in one turn is another step
        self._journal.did(StepKind.STEP, name)
        key = f"{StepKind.STEP}:{name}"
        there = self._journal.found(key)
        if there is not None and there.outcome == StepOutcome.FAILED:
            raise _given_up(name, json.loads(there.result or '""'))
        if there is not None and there.done:
            return json.loads(there.result or "null")
        if there is None:
            number = await self._journal.begin(StepKind.STEP, name, key, None)
        else:
            number = there.number
            if (known := await self._left_open(there, key, check)) is not None:
                return json.loads(known)
        return await self._do(number, name, key, act, args, options)

    async def _left_open(self, there: Recorded, key: str, check: Callable[[str], Any] | None) -> str | None:
        """Return what came of one that an earlier try has left open, as JSON; None: it is to be done."""
        asking, number = self._asking, there.number
        asked = await asking.known(number) if there.outcome == StepOutcome.ASKED else None
        if asked is None and check is not None:
            found, is_known = await self._look(there.name, key, check)
            if is_known:
                await self._journal.take_up(number)
                return None if found is None else await self._end(number, there.name, found)
        if asked is None:
            asked = asking.question(Question.STEP, there.name, {}, number)
            await self._journal.take_up(number, StepOutcome.ASKED, await asking.letter(asked), asking.tell(asked))
        try:
            known = await asking.decided(asked)
        except ToolFailed as error:  # another try would do it again
            raise _given_up(there.name, error) from error
        return known if asked.kind is Question.STEP or known is None else json.dumps(known)

    async def _look(self, name: str, key: str, check: Callable[[str], Any]) -> tuple[Any, bool]:
        """Return what came of it, None if it was not done; and whether that is known."""
        try:
            return await do(self._execution, f"step {name}", check, (self._journal.step_key(key),), {}), True
        except Exception as error:
            log.warning("it could not be found out whether a step was done", exc_info=error, extra={"step": name})
            return None, False

    async def _do(
        self, number: int, name: str, key: str, act: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        journal = self._journal
        token = STEP_KEY.set(journal.step_key(key))
        try:
            with self._execution.acting():
                result = await do(self._execution, f"step {name}", act, args, options)
        except BaseException as error:
            # It failed, which is known: a retry does it again. One that was cut off is not known.
            if isinstance(error, Exception):
                said = journal.clean(f"{type(error).__name__}: {error}")
                await journal.end(number, StepOutcome.RETRIED, json.dumps(said))
            else:
                journal.cut_off(number, "it was stopped before it had ended: whether it was done is not known")
            raise
        finally:
            STEP_KEY.reset(token)
        return json.loads(await self._end(number, name, result))

    async def _end(self, number: int, name: str, result: Any) -> str:
        """Keep what came of it; as JSON."""
        try:
            text = json.dumps(result, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:  # it is done, and a retry would do it again
            raise BrainFailed(
                f"the step {name!r} was done, and its result cannot be kept: it must be what JSON can hold ({error})",
                kind="unknown_step",
            ) from error
        await self._journal.end(number, StepOutcome.DONE, self._journal.clean_json(text))
        return text


def _given_up(name: str, why: object) -> BrainFailed:
    return BrainFailed(f"the step {name!r} is given up: {why}", kind="unknown_step")
