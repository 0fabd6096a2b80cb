"""Journal of one attempt: its steps, recorded before and after each, and the steps that earlier attempts recorded.

A step is matched by its kind, its name, its request and the number of equal requests before it in the turn, not by its
position. So steps may run concurrently, and an additional step does not change how others are matched.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from roost.core.journal.approvals import ApprovalRequest
from roost.core.journal.steps import (
    OPEN,
    REUSED,
    Attempt,
    Recorded,
    StepKind,
    StepOutcome,
    canonical,
    cut,
    digest,
    idempotency_key,
)
from roost.core.monitoring.facts import FactRow
from roost.core.talks.runs import REPEATED
from roost.core.values import checks
from roost.errors import Unavailable
from roost.ports import ModelCall
from roost.stores.sql.journal import steps

if TYPE_CHECKING:
    from roost.runtime.context import RuntimeContext
    from roost.runtime.execution.turn_execution import TurnExecution

log = logging.getLogger("roost.journal")

REQUEST_CHARS = 50_000
"""Maximum characters of a model request that are stored for display; the request is matched by its digest."""


class Journal:
    """Journal of one attempt. Used on the loop of its run."""

    def __init__(
        self, context: RuntimeContext, execution: TurnExecution, place: Attempt, recorded: Iterable[Recorded]
    ) -> None:
        self._context = context
        self._execution = execution
        self.place = place
        self._known: dict[str, Recorded] = {}
        self._number = 0
        for step in recorded:
            self._number = max(self._number, step.number)
            if step.key and step.outcome in REUSED | OPEN:
                self._known[step.key] = step
        self._counts: dict[str, int] = {}
        self._unwaited: dict[int, tuple[Any, ...]] = {}
        """Steps whose start was queued without waiting for the commit: the arguments of that write."""
        self._is_open = place.turn_input is None
        self.is_used = self._number > 0

    # --- finding again ---------------------------------------------------------------------------

    def key(self, kind: StepKind, name: str, asked: str) -> str:
        """Return the key of the next step of this kind with this request."""
        base = f"{kind}:{name}:{digest(asked)}"
        self._counts[base] = count = self._counts.get(base, 0) + 1
        return f"{base}:{count}"

    def log_action(self, kind: StepKind, name: str, asked: str = "") -> None:
        """Add a step to the action log, whether it is executed now or was recorded."""
        self._execution.action_log.add([kind, name, asked])

    def found(self, key: str) -> Recorded | None:
        return self._known.get(key)

    def step_key(self, key: str) -> str:
        return idempotency_key(self.place.envelope_id, key)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def clean_json(self, text: str) -> str:
        """Redact secrets in a JSON text."""
        return self._context.redactor.clean_json(text)

    def clean(self, text: str) -> str:
        """Redact secrets. The journal contains none, and recorded values are compared without them."""
        return self._context.redactor.clean(text)

    # --- writing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Record the input that a repeated turn must get again; before the first step."""
        self.is_used = True
        if not self._is_open:
            self._is_open = True
            await self._write_or_stop(steps.open, self._now())

    async def begin(
        self,
        kind: StepKind,
        name: str,
        key: str,
        request: str | None,
        *,
        number: int | None = None,
        outcome: StepOutcome = StepOutcome.BEGUN,
        asked: ApprovalRequest | None = None,
        wait: bool = True,
        facts: Callable[[bool], list[FactRow]] | None = None,
    ) -> int:
        """Record a step before it is executed, or before a person is asked about it; return its number.

        A repeatable step does not wait for the commit. If that write is lost, `end` repeats it.
        """
        self._execution.flush()
        await self.open()
        number = self.next_number() if number is None else number
        kept = None if request is None else cut(request, REQUEST_CHARS)
        args = number, kind, name, key, kept, outcome, self._now(), asked
        if wait:
            await self._write_or_stop(steps.begin, *args, facts=facts)
        else:
            self._unwaited[number] = args
            with suppress(Unavailable):
                self._write(steps.begin, *args)
        return number

    async def resume(
        self,
        number: int,
        outcome: StepOutcome = StepOutcome.BEGUN,
        asked: ApprovalRequest | None = None,
        facts: Callable[[bool], list[FactRow]] | None = None,
    ) -> None:
        """Resume an open step."""
        await self._write_or_stop(steps.begin_again, number, outcome, self._now(), asked, facts=facts)

    async def end(self, number: int, outcome: StepOutcome, result: str | None) -> None:
        """Record the result of a step. Retries until the store is available: the step was executed."""
        begun = self._unwaited.pop(number, None)
        while True:
            try:
                await self._write(steps.end, number, outcome, result, self._now(), begun)
            except Unavailable as error:
                await self._pause_before_retry(error)
                continue
            return

    def cut_off(self, number: int, reason: str) -> None:
        """Record that a step was cancelled. If the run will be repeated, the step stays open: its result is unknown."""
        if self._execution.why in REPEATED or self._execution.why is None:
            return
        with suppress(Unavailable):
            self._write(steps.end, number, StepOutcome.INTERRUPTED, json.dumps(reason), self._now())

    async def note(self, name: str, request: str, result: str, outcome: StepOutcome) -> None:
        """Record a call that is never reused; skipped while the store is unavailable."""
        await self.open()
        kept = json.dumps(self.clean(result))
        with suppress(Unavailable):
            await self._write(
                steps.record, self.next_number(), StepKind.TOOL, name, request, kept, outcome, self._now()
            )

    async def _write_or_stop(
        self, op: Callable[..., Any], *args: Any, facts: Callable[[bool], list[FactRow]] | None = None
    ) -> None:
        while not self._execution.fenced:
            try:
                if await self._write(op, *args, facts=facts):
                    return
                break
            except Unavailable as error:  # safe to repeat: the operation is idempotent
                await self._pause_before_retry(error)
        raise asyncio.CancelledError  # another run has taken over

    def _write(self, op: Callable[..., Any], *args: Any, facts: Callable[[Any], list[FactRow]] | None = None) -> Any:
        return self._context.store.write(op, self.place, *args, key=self.place.envelope_id, facts=facts)

    def _now(self) -> float:
        return self._context.host.clock.now()

    async def _pause_before_retry(self, error: Unavailable) -> None:
        log.warning("step could not be recorded; retrying: %s", error, extra={"run": self.place.run_id})
        await asyncio.sleep(0.2 + 0.8 * self._context.host.jitter())

    # --- questions to a model --------------------------------------------------------------------

    @asynccontextmanager
    async def model_call(self, name: str, request: Any) -> AsyncIterator[ModelCall]:
        if name:
            checks.name(name, "the name of a model")
        asked = self.clean_json(canonical(request, "what a model is asked"))
        key = self.key(StepKind.MODEL, name, asked)
        self.log_action(StepKind.MODEL, name, asked)
        known = self._known.get(key)
        if known is not None and known.outcome == StepOutcome.DONE:
            yield ModelCall(recorded=json.loads(known.result or "null"))
            return
        call = ModelCall()
        number = await self.begin(StepKind.MODEL, name, key, asked, wait=False)
        try:
            with self._execution.acting():
                yield call
        except Exception as error:
            # The next attempt calls the model again; the error is recorded for display only.
            reason = self.clean(f"{type(error).__name__}: {error}")
            await self.end(number, StepOutcome.RETRIED, json.dumps(cut(reason, REQUEST_CHARS)))
            raise
        except BaseException:
            self.cut_off(number, "stopped before the model had answered")
            raise
        if call.response is None:
            await self.end(number, StepOutcome.RETRIED, None)
        else:
            await self.end(number, StepOutcome.DONE, self.clean_json(canonical(call.response, "what a model answers")))
