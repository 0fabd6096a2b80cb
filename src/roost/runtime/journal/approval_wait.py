"""Asking: a run waits for a person's word on one of its steps, for days if need be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from roost.core.journal.approvals import LONG, Approval, ApprovalRequest, Decision, Question, folded
from roost.core.journal.steps import StepOutcome
from roost.core.monitoring.facts import Name
from roost.core.talks.messages import at
from roost.errors import ToolFailed, Unavailable
from roost.stores.sql.journal import approvals

if TYPE_CHECKING:
    from roost.runtime.context import RuntimeContext
    from roost.runtime.execution.turn_execution import TurnExecution
    from roost.runtime.journal.journal import Journal
    from roost.runtime.outgoing.compose import Composer

LOOK = 30.0
"""Seconds between two polls for a decision."""


MOST_WORDS = 100_000
"""Characters of the arguments in a mail; longer ones are folded, which is said there."""
MOST_ROWS = 100


class ApprovalWait:
    """How a run asks a person, and waits; belongs to one run and is used on its loop."""

    def __init__(self, context: RuntimeContext, composer: Composer, execution: TurnExecution, journal: Journal) -> None:
        self._context = context
        self._composer = composer
        self._execution = execution
        self._journal = journal

    def question(self, kind: Question, tool: str, arguments: Mapping[str, Any], step: int) -> Approval:
        place, host = self._journal.place, self._context.host
        return Approval(
            host.new_id("approval"),
            place.user_id,
            place.agent_id,
            place.holder if place.is_talk else None,
            place.run_id,
            step,
            kind,
            tool,
            arguments,
            at(host.clock.now()),
        )

    async def known(self, step: int) -> Approval | None:
        """Return what was asked about a step by an earlier try."""
        return await self._context.store.read(approvals.of_step, self._journal.place.envelope_id, step)

    async def letter(self, asked: Approval) -> ApprovalRequest:
        """Return the record of the question, with the mail of an agent to its owner about it."""
        place = self._journal.place
        if place.agent_id is None:
            return ApprovalRequest(asked, None)
        subject, body = _words(asked)
        mail = await self._composer.mail(
            place.user_id,
            f"agent:{place.user_id}/{place.agent_id}",
            f"user:{place.user_id}",
            subject,
            body,
            priority="high",
        )
        return ApprovalRequest(asked, mail)

    async def decided(self, asked: Approval) -> str | None:
        """Wait for the word: the result that was given, or None if it is to be done. ToolFailed: it was refused.

        The result of a step is given as JSON.
        """
        journal = self._journal
        try:
            found = await self._wait(asked)
        except asyncio.CancelledError:
            journal.cut_off(asked.step, "it was stopped while a person was asked")
            raise
        said = found.note or ""
        if found.decision is Decision.GRANTED:
            await journal.take_up(asked.step)
            return None
        if asked.run_id != journal.place.run_id:  # only who has taken it up may say what came of it
            await journal.take_up(asked.step, StepOutcome.ASKED)
        if found.decision is Decision.ANSWERED:
            kept = journal.clean_json(said) if asked.kind is Question.STEP else json.dumps(journal.clean(said))
            await journal.end(asked.step, StepOutcome.DONE, kept)
            return said
        why = f"a person has refused {asked.tool}" + (f": {said}" if said else "")
        await journal.end(asked.step, StepOutcome.FAILED, json.dumps(journal.clean(why)))
        raise ToolFailed(why)

    async def _wait(self, asked: Approval) -> Approval:
        """Wait for the decision, here for a while and then put aside."""
        bells, clock, patience = self._context.bells, self._context.host.clock, self._context.limits.rest_after
        latest = clock.monotonic() + patience
        bells[asked.approval_id] = bell = self._context.host.pending()  # listen first, then look, then wait
        self._execution.park(True)
        try:
            while (found := await self._look(asked)).decision is None:
                if self._context.closing:
                    self._execution.rest()
                if await bell.within(min(LOOK, patience)):
                    bells[asked.approval_id] = bell = self._context.host.pending()
                elif clock.monotonic() >= latest:
                    self._execution.rest()
            await self._execution.regain()
            return found
        finally:
            self._execution.park(False)
            bells.pop(asked.approval_id, None)

    async def _look(self, asked: Approval) -> Approval:
        try:
            return await self._context.store.read(approvals.get, asked.user_id, asked.approval_id)
        except Unavailable:
            return asked

    def tell(self, asked: Approval) -> Callable[[bool], None]:
        """Return a callback for the commit that stores the question: the fact precedes any decision."""

        def stored(is_stored: bool) -> None:
            if is_stored:
                self._context.monitor.tell(Name.APPROVAL_ASKED, about(asked), told(asked), user_id=asked.user_id)

        return stored


def _words(one: Approval) -> tuple[str, str]:
    """Return the subject and the body of the mail about it."""
    call = _call(one)
    if one.kind is Question.CALL:
        return f"May I call {one.tool}?", (
            f"I want to call {call}\n\nand wait for your decision:\n\n"
            f"roost approvals grant {one.approval_id}\nroost approvals refuse {one.approval_id}"
        )
    what, result = (f"the step {one.tool!r}.", "JSON") if one.kind is Question.STEP else (f"{call}\n\n", "RESULT")
    return f"Was {one.tool} done?", (
        f"The program ended in the middle of {what} Please look whether it was done, then say so:\n\n"
        f"roost approvals answer {one.approval_id} {result}    it was done, with this result\n"
        f"roost approvals grant {one.approval_id}     do it again\n"
        f"roost approvals refuse {one.approval_id}    give up"
    )


def _call(one: Approval) -> str:
    """A call with all its arguments, a line each; where that is too long for a mail, with the way to see the rest."""
    values = one.values()
    rows = [f"    {name}: {text}" for name, text in values.items()]
    if sum(map(len, rows)) > MOST_WORDS:
        most = max(LONG, MOST_WORDS // len(rows))
        rows = [f"    {name}: {folded(text, most)}" for name, text in values.items()]
        told = f"    (all {len(values):,} arguments in full: roost approvals show {one.approval_id})"
        rows = [*rows[:MOST_ROWS], told]
    return "\n".join([f"{one.tool} with" if rows else one.tool, *rows])


def about(one: Approval) -> str:
    return one.talk_session_id or f"{one.user_id}/{one.agent_id}"


def told(one: Approval) -> dict[str, Any]:
    return {
        "approval_id": one.approval_id,
        "kind": one.kind,
        "tool": one.tool,
        "run": one.run_id,
        "decision": one.decision,
    }
