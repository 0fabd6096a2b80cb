"""Branches of talks: fork, edit and resend, regenerate. Messages never change; each of these makes another talk."""

from __future__ import annotations

from functools import partial

from roost.core.talks.branches import Branch, BranchAction, NewBranch
from roost.core.talks.talk import Talk
from roost.core.values import checks
from roost.errors import Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.ports.notifier import Notifier
from roost.stores.sql.talks import branches
from roost.stores.sql.talks.branches import Branched

LAST = 1 << 53


class TalkBranches:
    """Methods of talks that make another talk from one."""

    closing = False
    """True if no new messages are accepted."""

    def __init__(self, context: RuntimeContext, notifier: Notifier) -> None:
        self._context = context
        self._notifier = notifier

    async def fork(
        self,
        user_id: str,
        talk_session_id: str,
        *,
        seq: int | None = None,
        title: str | None = None,
        key: str | None = None,
    ) -> Talk:
        """Make an independent talk of the messages up to number `seq`, by default all of them; return it.

        It has the settings of its parent, and what its brain had kept at that message. With a known `key` it returns
        the talk that was made before.
        """
        named = "" if title is None else checks.name(checks.name(title, "the title").strip(), "the title")
        return await self._branch(user_id, talk_session_id, BranchAction.FORK, seq, key, title=named)

    async def edit_message(
        self, user_id: str, talk_session_id: str, seq: int, content: str, *, key: str | None = None
    ) -> Talk:
        """Send another text in place of one's message number `seq`, in a branch of the talk; return the branch.

        The branch begins with the messages before it. The answer follows there; the talk itself does not change.
        """
        checks.text(content, "the message", most=self._context.limits.message_bytes)
        return await self._branch(user_id, talk_session_id, BranchAction.EDIT, seq, key, content=content)

    async def regenerate(
        self, user_id: str, talk_session_id: str, *, seq: int | None = None, key: str | None = None
    ) -> Talk:
        """Answer a message again, in a branch of the talk; return the branch. `seq`: the answer, by default the last.

        The branch has the messages before the answer; the new answer follows there.
        """
        return await self._branch(user_id, talk_session_id, BranchAction.REGENERATE, seq, key)

    async def list_branches(self, user_id: str, talk_session_id: str) -> list[Branch]:
        """Return the talk with all its branches, in order of creation. Forks are talks of their own."""
        checks.talk(user_id, talk_session_id)
        return await self._context.store.read(branches.family, user_id, talk_session_id)

    async def _branch(
        self,
        user_id: str,
        talk_id: str,
        action: BranchAction,
        seq: int | None,
        key: str | None,
        content: str = "",
        title: str = "",
    ) -> Talk:
        checks.talk(user_id, talk_id)
        if seq is not None:
            checks.count(seq, "`seq`", least=1, most=LAST)
        if key is not None:
            checks.name(key, "the key")
        if self.closing:
            raise Unavailable("this Roost is closing: try again after its restart")
        host, limits = self._context.host, self._context.limits
        self._context.ram.check()
        copied = await self._context.store.read(branches.copied_chars, user_id, talk_id, seq)
        await self._context.quota.use(user_id, copied + len(content))
        new = NewBranch(host.new_id("talk"), action, seq, host.new_id("env"), content, title, key)
        branched: Branched = await self._context.store.write(
            branches.create,
            user_id,
            talk_id,
            new,
            limits.talks_per_user,
            limits.collect_quiet,
            key=talk_id,
            then=partial(self._branched, user_id),
        )
        return branched.talk

    # --- after a commit, on the writer's thread ----------------------------------------------------

    def _branched(self, user_id: str, branched: Branched) -> None:
        if branched.envelope is not None:
            self._notifier.deliver_talk(branched.talk.talk_session_id, user_id, None, branched.agent)
