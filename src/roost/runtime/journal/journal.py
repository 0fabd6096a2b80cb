"""The journal of one try: its steps, written before and after, and those that earlier tries have on record.

A step is found again by its kind, its name, what was asked and how often the same was asked before it in the turn,
not by its place: so steps may run side by side, and one more or less changes nothing for the others.
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
    Recorded,
    StepKind,
    StepOutcome,
    Try,
    canonical,
    cut,
    digest,
    idempotency_key,
)
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
"""Of what a model was asked so much is kept, for people to look at; it is found again by its digest."""


class Journal:
    """Used on the loop of its run."""

    def __init__(
        self, context: RuntimeContext, execution: TurnExecution, place: Try, recorded: Iterable[Recorded]
    ) -> None:
        self._context = context
        self._execution = execution
        self.place = place
        self._there: dict[str, Recorded] = {}
        self._number = 0
        for one in recorded:
            self._number = max(self._number, one.number)
            if one.key and one.outcome in REUSED | OPEN:
                self._there[one.key] = one
        self._counts: dict[str, int] = {}
        self._unwaited: dict[int, tuple[Any, ...]] = {}
        """Of steps that were begun without waiting: what was to be put on record."""
        self._is_open = place.given is None
        self.is_used = self._number > 0

    # --- finding again ---------------------------------------------------------------------------

    def key(self, kind: StepKind, name: str, asked: str) -> str:
        """Of the next step of this kind that asks for this."""
        base = f"{kind}:{name}:{digest(asked)}"
        self._counts[base] = count = self._counts.get(base, 0) + 1
        return f"{base}:{count}"

    def did(self, kind: StepKind, name: str, asked: str = "") -> None:
        """Note that the turn takes this step, whether it is done now or is on record."""
        self._execution.deeds.add([kind, name, asked])

    def found(self, key: str) -> Recorded | None:
        return self._there.get(key)

    def step_key(self, key: str) -> str:
        return idempotency_key(self.place.envelope_id, key)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def clean_json(self, text: str) -> str:
        """The same for what is kept as JSON."""
        return self._context.redactor.clean_json(text)

    def clean(self, text: str) -> str:
        """Without secrets: those stay out of the journal, and what is looked for there is without them too."""
        return self._context.redactor.clean(text)

    # --- writing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Before the first step: put on record what a repeated turn is to be given again."""
        self.is_used = True
        if not self._is_open:
            self._is_open = True
            await self._may(steps.open, self._now())

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
        then: Callable[[bool], object] | None = None,
    ) -> int:
        """Put it on record before it is done, or before a person is asked about it; its number.

        What does no harm if it is done again need not wait for that; if it was not written, its end makes up for it.
        """
        self._execution.flush()
        await self.open()
        number = self.next_number() if number is None else number
        kept = None if request is None else cut(request, REQUEST_CHARS)
        args = number, kind, name, key, kept, outcome, self._now(), asked
        if wait:
            await self._may(steps.begin, *args, then=then)
        else:
            self._unwaited[number] = args
            with suppress(Unavailable):
                self._write(steps.begin, *args)
        return number

    async def take_up(
        self,
        number: int,
        outcome: StepOutcome = StepOutcome.BEGUN,
        asked: ApprovalRequest | None = None,
        then: Callable[[bool], object] | None = None,
    ) -> None:
        """Resume an open step."""
        await self._may(steps.take_up, number, outcome, self._now(), asked, then=then)

    async def end(self, number: int, outcome: StepOutcome, result: str | None) -> None:
        """Write what came of it, however long the store takes to be able to: it is done."""
        begun = self._unwaited.pop(number, None)
        while True:
            try:
                await self._write(steps.end, number, outcome, result, self._now(), begun)
            except Unavailable as error:
                await self._patience(error)
                continue
            return

    def cut_off(self, number: int, said: str) -> None:
        """It is being cancelled. Of a run that is repeated it stays open: whether it was done is not known."""
        if self._execution.why in REPEATED or self._execution.why is None:
            return
        with suppress(Unavailable):
            self._write(steps.end, number, StepOutcome.INTERRUPTED, json.dumps(said), self._now())

    async def note(self, name: str, request: str, result: str, outcome: StepOutcome) -> None:
        """Put a call on record that is never reused: if that cannot be done now, it is not."""
        await self.open()
        kept = json.dumps(self.clean(result))
        with suppress(Unavailable):
            await self._write(steps.note, self.next_number(), StepKind.TOOL, name, request, kept, outcome, self._now())

    async def _may(self, op: Callable[..., Any], *args: Any, then: Callable[[bool], object] | None = None) -> None:
        while not self._execution.fenced:
            try:
                if await self._write(op, *args, then=then):
                    return
                break
            except Unavailable as error:  # done again, it changes nothing
                await self._patience(error)
        raise asyncio.CancelledError  # superseded

    def _write(self, op: Callable[..., Any], *args: Any, then: Callable[[Any], object] | None = None) -> Any:
        return self._context.store.write(op, self.place, *args, key=self.place.envelope_id, then=then)

    def _now(self) -> float:
        return self._context.host.clock.now()

    async def _patience(self, error: Unavailable) -> None:
        log.warning("a step is put on record later: %s", error, extra={"run": self.place.run_id})
        await asyncio.sleep(0.2 + 0.8 * self._context.host.jitter())

    # --- questions to a model --------------------------------------------------------------------

    @asynccontextmanager
    async def model_call(self, name: str, request: Any) -> AsyncIterator[ModelCall]:
        if name:
            checks.name(name, "the name of a model")
        asked = self.clean_json(canonical(request, "what a model is asked"))
        key = self.key(StepKind.MODEL, name, asked)
        self.did(StepKind.MODEL, name, asked)
        there = self._there.get(key)
        if there is not None and there.outcome == StepOutcome.DONE:
            yield ModelCall(recorded=json.loads(there.result or "null"))
            return
        call = ModelCall()
        number = await self.begin(StepKind.MODEL, name, key, asked, wait=False)
        try:
            with self._execution.acting():
                yield call
        except Exception as error:
            # Asked again it may answer: a failure is for the record alone.
            said = self.clean(f"{type(error).__name__}: {error}")
            await self.end(number, StepOutcome.RETRIED, json.dumps(cut(said, REQUEST_CHARS)))
            raise
        except BaseException:
            self.cut_off(number, "it was stopped before it had answered")
            raise
        if call.response is None:
            await self.end(number, StepOutcome.RETRIED, None)
        else:
            await self.end(number, StepOutcome.DONE, self.clean_json(canonical(call.response, "what a model answers")))
