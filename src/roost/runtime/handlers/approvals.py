"""Approvals: decisions that runs wait for."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Sequence

from roost.core.journal.approvals import Approval, Decided, Decision, Permission, Question, TalkApproval
from roost.core.monitoring.facts import FactRow, Name
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import checks
from roost.core.values.traits import idempotent, reads
from roost.errors import Invalid
from roost.runtime.context import RuntimeContext
from roost.runtime.handlers.filtering import AFTER_ALL_IDS
from roost.runtime.journal.approval_wait import about, as_fields
from roost.runtime.ports.notifier import Notifier
from roost.stores.sql.journal import approvals, permissions
from roost.stores.sql.talks import talk_approvals

NOTE_CHARS = 100_000


class Approvals:
    """Approvals of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, notifier: Notifier) -> None:
        self._context = context
        self._notifier = notifier

    async def list(
        self, user_id: str, *, all: bool = False, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[Approval]:
        """Return pending approvals, newest first; with `all`, decided ones too."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        return await self._context.store.read(approvals.listed, user_id, checks.flag(all, "`all`"), limit, last)

    async def get(self, user_id: str, approval_id: str) -> Approval:
        self._check(user_id, approval_id)
        return await self._context.store.read(approvals.get, user_id, approval_id)

    async def in_talk(self, user_id: str, talk_session_id: str, *, limit: int = PAGE) -> builtins.list[TalkApproval]:
        """Return the approvals of a talk, decided ones too, oldest first, each with the number of its answer.

        Of more than `limit`, the newest.
        """
        checks.talk(user_id, talk_session_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(talk_approvals.listed, user_id, talk_session_id, limit)

    @idempotent
    async def approve(self, user_id: str, approval_id: str) -> Approval:
        """Approve the call or step. If its result is unknown, it is executed again."""
        return await self._decide(user_id, approval_id, Decision.APPROVED, None)

    @idempotent
    async def decline(self, user_id: str, approval_id: str, *, reason: str | None = None) -> Approval:
        """Decline the call or step; the caller gets the reason."""
        return await self._decide(user_id, approval_id, Decision.DECLINED, reason)

    @idempotent
    async def answer(self, user_id: str, approval_id: str, result: str) -> Approval:
        """Report that it was executed, with this result; JSON for a step. The run continues with it."""
        if (await self.get(user_id, approval_id)).kind is Question.STEP:
            _check_json(result)
        return await self._decide(user_id, approval_id, Decision.ANSWERED, result)

    @idempotent
    async def allow_always(self, user_id: str, approval_id: str) -> Approval:
        """Allow the call, and later calls of this tool by the same agent, or profile if there is no agent."""
        self._check(user_id, approval_id)
        return await self._write(permissions.allow, user_id, approval_id)

    @reads
    async def permissions(self, user_id: str, *, limit: int = PAGE) -> builtins.list[Permission]:
        """Return the standing permissions of a user, which `allow_always` has given."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(permissions.listed, user_id, limit)

    async def revoke(self, user_id: str, tool: str, *, agent_id: str | None = None, profile: str | None = None) -> None:
        """Revoke a standing permission of an agent or a profile: the next call of the tool asks again."""
        checks.name(user_id, "the user id")
        checks.text(tool, "the name of the tool", most=NOTE_CHARS)
        if (agent_id is None) == (profile is None):
            raise Invalid("a permission belongs to an agent or to a profile: name one of them")
        checks.name(agent_id or profile, "the agent or profile")
        await self._context.store.write(permissions.revoke, user_id, tool, agent_id, profile)

    async def _decide(self, user_id: str, approval_id: str, decision: Decision, note: str | None) -> Approval:
        self._check(user_id, approval_id)
        if note is not None:
            checks.text(note, "the note", most=NOTE_CHARS)
        return await self._write(approvals.decide, user_id, approval_id, decision, note)

    async def _write(self, decide: Callable[..., Decided], *args: object) -> Approval:
        """Store a decision; the run continues."""
        now = self._context.host.clock.now()
        decided = await self._context.store.write(decide, *args, now, facts=self._facts)
        self._resume(decided)
        return decided.shown

    def _facts(self, decided: Decided) -> Sequence[FactRow]:
        if not decided.is_new:
            return []
        approval, fact = decided.shown, self._context.facts.fact
        return [fact(Name.APPROVAL_DECIDED, about(approval), as_fields(approval), user_id=approval.user_id)]

    def _resume(self, decided: Decided) -> None:
        """Wake the run that waits, or resume a suspended run."""
        approval = decided.approval
        if (waiter := self._context.approval_waiters.get(approval.approval_id)) is not None:
            waiter.set(None)
        else:
            self._notifier.approval_decided(approval.approval_id)
        address = f"{approval.user_id}/{approval.agent_id}" if approval.agent_id else ""
        if decided.was_parked and approval.talk_session_id is not None:
            self._notifier.deliver_talk(approval.talk_session_id, decided.talker, None, address)
        elif decided.was_parked:
            self._notifier.look(address)

    def decided_elsewhere(self, approval_id: str) -> None:
        """Wake a run that waits for a decision which another node has stored."""
        if (waiter := self._context.approval_waiters.get(approval_id)) is not None:
            waiter.set(None)

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
