"""Asking: a run waits for a person's word on one of its steps, for days if need be."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from roost.core.approvals import Approval, Asked, Decision, Question
from roost.core.facts import Name
from roost.core.messages import at
from roost.core.steps import StepOutcome, cut
from roost.errors import ToolFailed, Unavailable

if TYPE_CHECKING:
    from roost.runtime.journal import Journal
    from roost.runtime.shop import Shop
    from roost.runtime.thinking import Thinking

LOOK = 30.0
"""Seconds between two looks, if whoever decides has not rung."""


class Asking:
    """How a run asks a person, and waits; belongs to one run and is used on its loop."""

    def __init__(self, shop: Shop, thinking: Thinking, journal: Journal) -> None:
        self._shop = shop
        self._thinking = thinking
        self._journal = journal

    def question(self, kind: Question, tool: str, arguments: Mapping[str, Any], step: int) -> Approval:
        place, host = self._journal.place, self._shop.host
        return Approval(
            host.new_id("approval"), place.user_id, place.agent_id, place.holder if place.is_talk else None,
            place.run_id, step, kind, tool, arguments, at(host.clock.now()),
        )  # fmt: skip

    async def known(self, step: int) -> Approval | None:
        """What was asked about a step by an earlier try."""
        ops = self._shop.statements.approvals
        return await self._shop.store.read(ops.of_step, self._journal.place.envelope_id, step)

    async def letter(self, asked: Approval) -> Asked:
        """What goes on record, with the mail that an agent writes to its owner about it."""
        place = self._journal.place
        if place.agent_id is None:
            return Asked(asked, None)
        subject, body = _words(asked)
        mail = await self._shop.office.mail(
            place.user_id, f"agent:{place.user_id}/{place.agent_id}", f"user:{place.user_id}", subject, body,
            priority="high",
        )  # fmt: skip
        return Asked(asked, mail)

    async def decided(self, asked: Approval, *, is_new: bool) -> str | None:
        """Wait for the word: the result that was given, or None if it is to be done. ToolFailed: it was refused.

        The result of a step is given as JSON.
        """
        journal = self._journal
        try:
            found = await self._wait(asked, is_new=is_new)
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

    async def _wait(self, asked: Approval, *, is_new: bool) -> Approval:
        """As long as it takes: here for a while, and then at rest."""
        bells, clock, patience = self._shop.bells, self._shop.host.clock, self._shop.limits.rest_after
        latest = clock.monotonic() + patience
        bells[asked.approval_id] = bell = self._shop.host.pending()  # listen first, then look, then wait
        if is_new:
            self._tell(asked)
        self._thinking.park(True)
        try:
            while (found := await self._look(asked)).decision is None:
                if await bell.within(min(LOOK, patience)):
                    bells[asked.approval_id] = bell = self._shop.host.pending()
                elif clock.monotonic() >= latest:
                    self._thinking.rest()
            return found
        finally:
            self._thinking.park(False)
            bells.pop(asked.approval_id, None)

    async def _look(self, asked: Approval) -> Approval:
        try:
            return await self._shop.store.read(
                self._shop.statements.approvals.get, asked.user_id, asked.approval_id
            )  # fmt: skip
        except Unavailable:
            return asked

    def _tell(self, asked: Approval) -> None:
        self._shop.monitor.tell(Name.APPROVAL_ASKED, about(asked), told(asked), user_id=asked.user_id)


def _words(one: Approval) -> tuple[str, str]:
    """The subject and the body of the mail that tells of it."""
    call = f"{one.tool}({json.dumps(one.arguments, ensure_ascii=False)})"
    if one.kind is Question.CALL:
        return f"May I call {one.tool}?", (
            f"I want to call {cut(call, 2_000)} and wait for your word:\n\n"
            f"roost approvals grant {one.approval_id}\nroost approvals refuse {one.approval_id}"
        )
    what, result = (f"the step {one.tool!r}", "JSON") if one.kind is Question.STEP else (cut(call, 2_000), "RESULT")
    return f"Was {one.tool} done?", (
        f"The program ended in the middle of {what}. Please look whether it was done, then say so:\n\n"
        f"roost approvals answer {one.approval_id} {result}    it was done, with this result\n"
        f"roost approvals grant {one.approval_id}     do it again\n"
        f"roost approvals refuse {one.approval_id}    give up"
    )


def about(one: Approval) -> str:
    return one.talk_session_id or f"{one.user_id}/{one.agent_id}"


def told(one: Approval) -> dict[str, Any]:
    return {
        "approval_id": one.approval_id, "kind": one.kind, "tool": one.tool, "run": one.run_id,
        "decision": one.decision,
    }  # fmt: skip
