"""Steps of a brain: operations outside of Roost that are executed once."""

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
from roost.runtime.execution.function_calls import call_function

if TYPE_CHECKING:
    from roost.runtime.execution.turn_execution import TurnExecution
    from roost.runtime.journal.approval_wait import ApprovalWait
    from roost.runtime.journal.journal import Journal

log = logging.getLogger("roost.steps")


class Steps:
    """Implementation of `turn.step` for one turn. Used on its loop."""

    def __init__(self, execution: TurnExecution, journal: Journal, approvals: ApprovalWait) -> None:
        self._execution = execution
        self._journal = journal
        self._approvals = approvals
        self._names: dict[str, int] = {}

    async def step(
        self,
        name: str,
        act: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        check: Callable[[str], Any] | None = None,
    ) -> Any:
        """Return the recorded result, or execute the step and record it."""
        checks.name(name, "the name of a step")
        self._names[name] = count = self._names.get(name, 0) + 1
        name = name if count == 1 else f"{name} ({count})"  # the same name a second time in one turn is another step
        self._journal.log_action(StepKind.STEP, name)
        key = f"{StepKind.STEP}:{name}"
        recorded = self._journal.found(key)
        if recorded is not None and recorded.outcome == StepOutcome.FAILED:
            raise _abandoned(name, json.loads(recorded.result or '""'))
        if recorded is not None and recorded.done:
            return json.loads(recorded.result or "null")
        if recorded is None:
            number = await self._journal.begin(StepKind.STEP, name, key, None)
        else:
            number = recorded.number
            if (known := await self._resume_open(recorded, key, check)) is not None:
                return json.loads(known)
        return await self._do(number, name, key, act, args, options)

    async def _resume_open(self, recorded: Recorded, key: str, check: Callable[[str], Any] | None) -> str | None:
        """Return the result of a step that an earlier attempt left open, as JSON; None: the step is to be executed."""
        approvals, number = self._approvals, recorded.number
        asked = await approvals.asked_about(number) if recorded.outcome == StepOutcome.ASKED else None
        if asked is None and check is not None:
            found, is_known = await self._check(recorded.name, key, check)
            if is_known:
                await self._journal.resume(number)
                return None if found is None else await self._end(number, recorded.name, found)
        if asked is None:
            asked = approvals.question(Question.STEP, recorded.name, {}, number)
            await self._journal.resume(
                number, StepOutcome.ASKED, await approvals.request_for(asked), approvals.facts(asked)
            )
        try:
            known = await approvals.wait_for_decision(asked)
        except ToolFailed as error:  # a retry would execute it again
            raise _abandoned(recorded.name, error) from error
        return known if asked.kind is Question.STEP or known is None else json.dumps(known)

    async def _check(self, name: str, key: str, check: Callable[[str], Any]) -> tuple[Any, bool]:
        """Return the result, or None if the step was not executed; and whether that is known."""
        try:
            return await call_function(self._execution, f"step {name}", check, (self._journal.step_key(key),), {}), True
        except Exception as error:
            log.warning("check of a step failed; its result is unknown", exc_info=error, extra={"step": name})
            return None, False

    async def _do(
        self, number: int, name: str, key: str, act: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        journal = self._journal
        token = STEP_KEY.set(journal.step_key(key))
        try:
            with self._execution.acting():
                result = await call_function(self._execution, f"step {name}", act, args, options)
        except BaseException as error:
            # A failed step is executed again by a retry. The result of a cancelled step is unknown.
            if isinstance(error, Exception):
                reason = journal.clean(f"{type(error).__name__}: {error}")
                await journal.end(number, StepOutcome.RETRIED, json.dumps(reason))
            else:
                journal.cut_off(number, "stopped before it had ended: its result is unknown")
            raise
        finally:
            STEP_KEY.reset(token)
        return json.loads(await self._end(number, name, result))

    async def _end(self, number: int, name: str, result: Any) -> str:
        """Record the result and return it as JSON."""
        try:
            text = json.dumps(result, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:  # a retry would execute it again
            raise BrainFailed(
                f"the step {name!r} was executed, but its result cannot be stored: it must be a JSON value ({error})",
                kind="unknown_step",
            ) from error
        await self._journal.end(number, StepOutcome.DONE, self._journal.clean_json(text))
        return text


def _abandoned(name: str, why: object) -> BrainFailed:
    return BrainFailed(f"the step {name!r} was abandoned: {why}", kind="unknown_step")
