"""Approvals of one run: questions to a person about its steps, and the wait for the decision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roost.core.envelopes.sender import SenderContext
from roost.core.journal.approvals import LONG, Approval, ApprovalRequest, Decision, Question, folded
from roost.core.journal.steps import StepOutcome
from roost.core.monitoring.facts import FactRow, Name
from roost.core.talks.messages import at
from roost.errors import ToolFailed, Unavailable
from roost.stores.sql.journal import approvals, permissions

if TYPE_CHECKING:
    from roost.runtime.context import RuntimeContext
    from roost.runtime.execution.turn_execution import TurnExecution
    from roost.runtime.journal.journal import Journal
    from roost.runtime.outgoing.compose import Composer

POLL_INTERVAL = 30.0
"""Seconds between two polls for a decision."""


MAX_MAIL_CHARS = 100_000
"""Maximum characters of the arguments in a mail; longer arguments are cut, with a hint."""
MAX_MAIL_ROWS = 100


class ApprovalWait:
    """Questions of one run to a person. Used on its loop."""

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
            profile=self._execution.turn.profile.name,
        )

    async def allowed(self, asked: Approval) -> Approval | None:
        """Return the approval as decided by a standing permission of its owner; None if there is none.

        A person is also asked if the store is unavailable at that moment.
        """
        with suppress(Unavailable):
            if await self._context.store.read(permissions.allows, asked):
                return replace(asked, decision=Decision.ALLOWED, decided=asked.created)
        return None

    async def asked_about(self, step: int) -> Approval | None:
        """Return the approval that an earlier attempt requested for a step."""
        return await self._context.store.read(approvals.of_step, self._journal.place.envelope_id, step)

    async def request_for(self, asked: Approval) -> ApprovalRequest:
        """Return the approval to store, with the mail that announces it; only agents send one."""
        place = self._journal.place
        if place.agent_id is None:
            return ApprovalRequest(asked, None)
        subject, body = _mail_text(asked)
        mail = await self._composer.mail(
            SenderContext(place.user_id, f"agent:{place.user_id}/{place.agent_id}"),
            f"user:{place.user_id}",
            subject,
            body,
            priority="high",
        )
        return ApprovalRequest(asked, mail)

    async def wait_for_decision(self, asked: Approval) -> str | None:
        """Wait for the decision. Return the result that the person gave, or None if the step is to be executed.

        The result of a step is JSON. Raises ToolFailed if the person declined.
        """
        journal = self._journal
        try:
            found = await self._poll(asked)
        except asyncio.CancelledError:
            journal.cut_off(asked.step, "stopped while it waited for an approval")
            raise
        note = found.note or ""
        if found.decision in (Decision.APPROVED, Decision.ALLOWED):
            await journal.resume(asked.step)
            return None
        if asked.run_id != journal.place.run_id:  # only the run that resumed a step may end it
            await journal.resume(asked.step, StepOutcome.ASKED)
        if found.decision is Decision.ANSWERED:
            kept = journal.clean_json(note) if asked.kind is Question.STEP else json.dumps(journal.clean(note))
            await journal.end(asked.step, StepOutcome.DONE, kept)
            return note
        why = f"a person has declined {asked.tool}" + (f": {note}" if note else "")
        await journal.end(asked.step, StepOutcome.FAILED, json.dumps(journal.clean(why)))
        raise ToolFailed(why)

    async def _poll(self, asked: Approval) -> Approval:
        """Wait for the decision. After a while the run is suspended, and another run continues."""
        waiters, clock, patience = (
            self._context.approval_waiters,
            self._context.host.clock,
            self._context.limits.rest_after,
        )
        latest = clock.monotonic() + patience
        waiters[asked.approval_id] = waiter = self._context.host.pending()  # listen first, then check, then wait
        self._execution.park(True)
        try:
            while (found := await self._read(asked)).decision is None:
                if self._context.closing:
                    self._execution.suspend()
                if await waiter.within(min(self._context.poll_interval(POLL_INTERVAL), patience)):
                    waiters[asked.approval_id] = waiter = self._context.host.pending()
                elif clock.monotonic() >= latest:
                    self._execution.suspend()
            await self._execution.regain()
            return found
        finally:
            self._execution.park(False)
            waiters.pop(asked.approval_id, None)

    async def _read(self, asked: Approval) -> Approval:
        try:
            return await self._context.store.read(approvals.get, asked.user_id, asked.approval_id)
        except Unavailable:
            return asked

    def facts(self, asked: Approval) -> Callable[[bool], list[FactRow]]:
        """Return the facts of the commit that stores the question: they precede any decision."""

        def stored(is_stored: bool) -> list[FactRow]:
            fact, shown = self._context.facts.fact, asked.seen_by_owner(self._execution.turn.user_id)
            found = fact(Name.APPROVAL_ASKED, about(shown), as_fields(shown), user_id=shown.user_id)
            return [found] if is_stored else []

        return stored


def _mail_text(approval: Approval) -> tuple[str, str]:
    """Return the subject and the body of the mail about an approval."""
    call = _call(approval)
    if approval.kind is Question.CALL:
        return f"May I call {approval.tool}?", (
            f"I want to call {call}\n\nand wait for your decision:\n\n"
            f"roost approvals approve {approval.approval_id}\nroost approvals decline {approval.approval_id}"
        )
    what, result = (
        (f"the step {approval.tool!r}.", "JSON") if approval.kind is Question.STEP else (f"{call}\n\n", "RESULT")
    )
    return f"Was {approval.tool} done?", (
        f"The program ended in the middle of {what} Please look whether it was done, then say so:\n\n"
        f"roost approvals answer {approval.approval_id} {result}    it was done, with this result\n"
        f"roost approvals approve {approval.approval_id}    do it again\n"
        f"roost approvals decline {approval.approval_id}    give up"
    )


def _call(approval: Approval) -> str:
    """Return a call with its arguments, one per line.

    If that is too long for a mail, a hint tells how to see the rest.
    """
    values = approval.values()
    rows = [f"    {name}: {text}" for name, text in values.items()]
    if sum(map(len, rows)) > MAX_MAIL_CHARS:
        most = max(LONG, MAX_MAIL_CHARS // len(rows))
        rows = [f"    {name}: {folded(text, most)}" for name, text in values.items()]
        hint = f"    (all {len(values):,} arguments in full: roost approvals show {approval.approval_id})"
        rows = [*rows[:MAX_MAIL_ROWS], hint]
    return "\n".join([f"{approval.tool} with" if rows else approval.tool, *rows])


def about(approval: Approval) -> str:
    return approval.talk_session_id or f"{approval.user_id}/{approval.agent_id}"


def as_fields(approval: Approval) -> dict[str, Any]:
    return {
        "approval_id": approval.approval_id,
        "kind": approval.kind,
        "tool": approval.tool,
        "run": approval.run_id,
        "decision": approval.decision,
    }
