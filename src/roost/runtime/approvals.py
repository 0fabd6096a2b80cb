"""Approvals: what runs wait for, as the person sees it who decides."""

from __future__ import annotations

import builtins
import json

from roost.core import checks
from roost.core.approvals import Approval, Decided, Decision, Question
from roost.core.facts import Name
from roost.core.messages import MOST, PAGE
from roost.errors import Invalid
from roost.runtime.agents import LAST
from roost.runtime.asking import about, told
from roost.runtime.shop import Shop

NOTE_CHARS = 100_000


class Approvals:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._ops = shop.statements.approvals

    async def list(
        self, user_id: str, *, all: bool = False, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[Approval]:
        """What runs wait for, newest first; with `all` what was decided too."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        last = checks.place(before, "`before`") or LAST
        return await self._shop.store.read(self._ops.listed, user_id, checks.flag(all, "`all`"), limit, last)

    async def get(self, user_id: str, approval_id: str) -> Approval:
        self._check(user_id, approval_id)
        return await self._shop.store.read(self._ops.get, user_id, approval_id)

    async def grant(self, user_id: str, approval_id: str) -> Approval:
        """Have it done; of what may have been done before the program ended: have it done again."""
        return await self._decide(user_id, approval_id, Decision.GRANTED, None)

    async def refuse(self, user_id: str, approval_id: str, *, reason: str | None = None) -> Approval:
        """It is not done, and whoever wanted it is told, with the reason."""
        return await self._decide(user_id, approval_id, Decision.REFUSED, reason)

    async def answer(self, user_id: str, approval_id: str, result: str) -> Approval:
        """It is done already, and this is its result: the run goes on with that. Of a step it is JSON."""
        if (await self.get(user_id, approval_id)).kind is Question.STEP:
            _check_json(result)
        return await self._decide(user_id, approval_id, Decision.ANSWERED, result)

    async def _decide(self, user_id: str, approval_id: str, decision: Decision, note: str | None) -> Approval:
        self._check(user_id, approval_id)
        if note is not None:
            checks.text(note, "the note", most=NOTE_CHARS)
        decided = await self._shop.store.write(
            self._ops.decide, user_id, approval_id, decision, note, self._shop.host.clock.now()
        )  # fmt: skip
        one = decided.approval
        self._shop.monitor.tell(Name.APPROVAL_DECIDED, about(one), told(one), user_id=user_id)
        self._ring(decided)
        return one

    def _ring(self, decided: Decided) -> None:
        """Whoever waits looks; what was put to rest is taken up."""
        one, hall = decided.approval, self._shop.office.hall
        if (bell := self._shop.bells.get(one.approval_id)) is not None:
            bell.set(None)
        address = f"{one.user_id}/{one.agent_id}" if one.agent_id else ""
        if decided.rested and one.talk_session_id is not None:
            hall.inbox.deliver(one.talk_session_id, decided.talker, None, address)
        elif decided.rested:
            hall.look(address)

    def _check(self, user_id: str, approval_id: str) -> None:
        checks.name(user_id, "the user id")
        checks.name(approval_id, "the id of the approval")


def _check_json(result: object) -> None:
    try:
        json.dumps(json.loads(str(result)), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise Invalid(
            f'the result of a step must be JSON, such as 5, null or "a text" with its quotes: {error}'
        ) from error
