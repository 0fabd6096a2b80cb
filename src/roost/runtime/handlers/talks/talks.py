"""Talks: create, configure and delete them, send messages, and stop answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from roost.core.talks.attachments import ids as attachment_ids
from roost.core.talks.messages import MOST, PAGE, Message, at
from roost.core.talks.runs import Halted, Loaded, Posted, Stop, StopReason
from roost.core.talks.talk import BusyPolicy, Receipt, Talk, title_from
from roost.core.values import checks
from roost.core.values.traits import NewId, idempotent
from roost.errors import RoostError, Unavailable
from roost.runtime.cluster.mesh import Mesh
from roost.runtime.context import RuntimeContext
from roost.runtime.handlers.talks.attachments import TalkAttachments
from roost.runtime.handlers.talks.branches import TalkBranches
from roost.runtime.handlers.talks.reading import TalkReading
from roost.runtime.handlers.talks.remote import TalksElsewhere, page_to_json, posted_of_json
from roost.runtime.handlers.talks.settings import options_json, reached
from roost.runtime.handlers.talks.transcripts import TalkTranscripts
from roost.runtime.ports.notifier import Notifier
from roost.runtime.talks.live_talk import LiveTalk
from roost.runtime.talks.live_talks import LiveTalks, TalkElsewhere
from roost.runtime.talks.placement import Placement
from roost.runtime.talks.run import TalkRun
from roost.stores.sql.talks import branches, runs, talks
from roost.stores.sql.talks import messages as messages_sql


class Talks(TalkBranches, TalkReading, TalkTranscripts, TalkAttachments):
    """The talk methods as coroutines; nothing but pendings is awaited in them, so that plain threads can drive them."""

    def __init__(
        self,
        context: RuntimeContext,
        talks: LiveTalks,
        placement: Placement,
        notifier: Notifier,
        mesh: Mesh | None = None,
    ) -> None:
        super().__init__(context, notifier)
        self._talks = talks
        self._placement = placement
        self.remote = None if mesh is None else TalksElsewhere(context, talks, mesh, self._read)
        if mesh is not None:
            mesh.answerers |= {"read": self._read_here, "stop": self._stop_here, "catch_up": self._catch_up}
            mesh.handlers |= {
                "posted": self._posted_elsewhere,
                "talk_changed": self._changed_elsewhere,
                "talks_deleted": self._deleted_here,
            }

    # --- talks -----------------------------------------------------------------------------------

    async def create_talk_session(
        self,
        user_id: str,
        *,
        profile: str | None = None,
        agent: str | None = None,
        busy: str = "interrupt",
        title: str | None = None,
        model: str | None = None,
        temperature: float | None = None,
        instructions: str | None = None,
    ) -> NewId:
        """Start a talk with a profile (the default if none is named); return its id.

        `busy` is the policy for a message that arrives while an answer is being written: interrupt, queue, reject,
        rollback, steer or collect.
        """
        checks.name(user_id, "the user id")
        with_agent = await reached(self._context, user_id, agent, profile) if agent is not None else ""
        name = "" if with_agent else self._context.brains.profile(profile or self._context.brains.default).name
        policy = checks.choice(busy, "the busy policy", BusyPolicy)
        named = "" if title is None else checks.name(checks.name(title, "the title").strip(), "the title")
        options = {"model": model, "temperature": temperature, "instructions": instructions}
        talk_id = self._context.host.new_id("talk")
        await self._context.store.write(
            talks.create,
            talk_id,
            user_id,
            name,
            policy,
            named,
            options_json(options),
            self._context.limits.talks_per_user,
            with_agent,
            key=talk_id,
            then=self._talks.add,
        )
        return talk_id

    async def list_sessions(self, user_id: str, *, limit: int = PAGE, before: str | None = None) -> list[Talk]:
        """Return the user's talks, last used first; `before` is the last id of the previous page."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        if before is not None:
            checks.name(before, "`before`")
        return await self._context.store.read(talks.listed, user_id, limit, before)

    async def get_session(self, user_id: str, talk_session_id: str) -> Talk:
        """Return a talk."""
        checks.talk(user_id, talk_session_id)
        return await self._context.store.read(talks.get, user_id, talk_session_id)

    async def rename(self, user_id: str, talk_session_id: str, title: str) -> Talk:
        """Change the title of a talk."""
        return await self.configure(user_id, talk_session_id, title=title)

    async def configure(
        self,
        user_id: str,
        talk_session_id: str,
        *,
        title: str | None = None,
        profile: str | None = None,
        busy: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Talk:
        """Change the title and settings of the talk from the next answer on: all of them, or none if one is invalid.

        `options` (model, temperature, instructions) replace the previous ones.
        """
        checks.talk(user_id, talk_session_id)
        values: dict[str, str] = {}
        if profile is not None:
            values["profile"] = self._context.brains.profile(profile).name
        if busy is not None:
            values["busy"] = checks.choice(busy, "the busy policy", BusyPolicy)
        if title is not None:
            values["title"] = checks.name(checks.name(title, "the title").strip(), "the title")
        if options is not None:
            values["options"] = options_json(options)
        if not values:
            return await self.get_session(user_id, talk_session_id)
        talk, _ = await self._context.store.write(
            talks.change, user_id, talk_session_id, values, key=talk_session_id, then=self._changed
        )
        return talk

    async def delete(self, user_id: str, talk_session_id: str) -> None:
        """Stop the talk, and delete it with its branches and everything that belongs to it. Forks of it stay."""
        checks.talk(user_id, talk_session_id)
        await self._context.store.write(
            branches.delete, user_id, talk_session_id, key=talk_session_id, then=self._deleted
        )

    # --- messages --------------------------------------------------------------------------------

    async def add_message(
        self,
        user_id: str,
        talk_session_id: str,
        content: str,
        *,
        key: str | None = None,
        busy: str | None = None,
        attachments: Sequence[str] = (),
    ) -> Message:
        """Store the message, apply the `busy` policy to the run in progress, and return; the answer follows.

        Waits for the commit, never for the agent. With a known `key` and the same content it returns the stored
        message and changes nothing; with other content it raises Conflict. `attachments` are the ids of uploaded files
        (see `add_attachment`); with them the content may be empty.
        """
        checks.talk(user_id, talk_session_id)
        limits = self._context.limits
        files = () if not attachments else attachment_ids(attachments, most=limits.attachments_per_message)
        if content or not files:
            checks.text(content, "the message", most=limits.message_bytes)
        if key is not None:
            checks.name(key, "the key")
        policy = None if busy is None else checks.choice(busy, "the busy policy", BusyPolicy)
        if self.closing:
            raise Unavailable("this Roost is closing: send the message again after its restart")
        self._context.ram.check()
        await self._context.quota.use(user_id, len(content))
        posted: Posted = await self._context.store.write(
            messages_sql.post_with_attachments if files else messages_sql.post,
            user_id,
            talk_session_id,
            content,
            key,
            policy,
            title_from(content) if content else "",
            self._context.host.new_id("env"),
            limits.collect_quiet,
            limits.waiting_per_talk,
            *((files,) if files else ()),
            key=talk_session_id,
            then=partial(self._posted, user_id, talk_session_id),
        )
        if self.remote is not None and posted.node not in ("", self._context.node):
            await self.remote.arrive(user_id, talk_session_id, posted)
        return posted.message

    # --- stopping --------------------------------------------------------------------------------

    @idempotent
    async def stop(self, user_id: str, talk_session_id: str, *, wait: float = 0.0) -> Receipt:
        """Stop the run in progress and drop queued messages. Wait up to `wait` seconds until it has stopped."""
        checks.talk(user_id, talk_session_id)
        checks.seconds(wait, "`wait`")
        found: list[TalkRun] = []
        halted = await self._context.store.write(
            runs.stop, user_id, talk_session_id, key=talk_session_id, then=partial(self._halted, talk_session_id, found)
        )
        if self.remote is not None and halted.node not in ("", self._context.node):
            return await self.remote.stop(user_id, talk_session_id, halted, wait)
        return await self._receipt(found, halted.now, wait)

    async def _receipt(self, found: list[TalkRun], now: float, wait: float) -> Receipt:
        requested = at(now)
        run = found[0] if found else None
        if run is None:
            return Receipt(requested, requested, requested)
        if wait > 0 and await run.quiesced.within(wait):
            stop: Stop = await run.quiesced
            # It may have been told to end already, by a message that came before.
            acknowledged, quiesced = max(stop.acknowledged, now), max(stop.quiesced, now)
            return Receipt(requested, at(acknowledged), at(quiesced), stop.abandoned)
        return Receipt(requested, at(max(run.acknowledged, now)) if run.acknowledged else None)

    # --- for other nodes -------------------------------------------------------------------------

    def _posted_elsewhere(self, user_id: str, talk_id: str, post: list[Any]) -> None:
        """Take up a message that another node has committed for a talk of this one."""
        posted = posted_of_json(post)
        if posted is None:  # of another version: it asks next whether this node has followed
            return
        live = self._talks.known(talk_id)
        if live is not None and live.follow(posted):
            self._begin_posted(user_id, talk_id, posted, is_parked=False)
            return

        def refreshed(loaded: Loaded) -> None:
            is_own = loaded.node == self._context.node
            self._begin_posted(user_id, talk_id, posted, is_parked=loaded.is_parked or not is_own)

        self._talks.refresh(user_id, talk_id, refreshed)

    def _begin_posted(self, user_id: str, talk_id: str, posted: Posted, *, is_parked: bool) -> None:
        """Have a message of another node answered; the lane claims it, since others may have come before it."""
        run, envelope = self._placement.run_of(talk_id), posted.envelope
        if run is not None and run.epoch < posted.epoch:
            why = posted.superseded or StopReason.INTERRUPT
            self._notifier.stop_talk(talk_id, why, posted.message.created.timestamp())
        if envelope.busy == BusyPolicy.STEER and run is not None:
            self._notifier.deliver_talk(talk_id, user_id, envelope, posted.agent)
        elif not is_parked:
            self._notifier.deliver_talk(talk_id, user_id, None, posted.agent)

    def _changed_elsewhere(self, user_id: str, talk_id: str) -> None:
        if self._talks.known(talk_id) is not None:
            self._talks.refresh(user_id, talk_id, lambda _: None)

    async def _read_here(
        self, user_id: str, talk_id: str, after: str | None, before: int | None, limit: int, wait: float
    ) -> Any:
        """Read a talk of this node for another one; None if it belongs to another."""
        try:
            live = await self._talks.get(user_id, talk_id)
            if after is not None and wait > 0:
                with closing(self._context.host.bell()) as bell:
                    await self._listen(live, after, bell, follow=True, seconds=wait)
            live = await self._talks.get(user_id, talk_id)
            return page_to_json(await self._read(live, after, before, limit))
        except (RoostError, TalkElsewhere):  # the other node finds out by the store
            return None

    async def _catch_up(self, user_id: str, talk_id: str, revision: int) -> Any:
        """Follow what other nodes have committed, up to a revision."""
        try:
            live = await self._talks.get(user_id, talk_id)
            is_missed = live.revision < revision
            if is_missed:
                live.missed = True
                live = await self._talks.get(user_id, talk_id)
            self._take_up(live, is_missed=is_missed)
        except (RoostError, TalkElsewhere):
            return None
        return True

    def _take_up(self, live: LiveTalk, *, is_missed: bool) -> None:
        """Answer what waits in a talk if the notice of it was lost, before any message that comes later."""
        run, is_held = self._placement.run_of(live.talk_id), self._placement.holds(live.talk_id)
        is_superseded = run is not None and run.epoch < live.epoch and not run.fenced
        if is_superseded:
            self._notifier.stop_talk(live.talk_id, StopReason.INTERRUPT, self._context.host.clock.now())
        if live.waiting and not live.is_parked and (is_superseded or is_missed or not is_held):
            agent = (live.talk.agent or "").removeprefix("agent:")
            self._notifier.deliver_talk(live.talk_id, live.owner, None, agent)

    async def _stop_here(self, user_id: str, talk_id: str, now: float, epoch: int, revision: int, wait: float) -> Any:
        """Stop the run of a talk that another node has stopped in the store; return the receipt.

        A run that began after that, with a later message, continues.
        """
        run = self._placement.run_of(talk_id)
        is_older = run is not None and (run.epoch < epoch or run.fenced)
        if is_older or run is None:
            self._notifier.stop_talk(talk_id, StopReason.STOP, now)
        await self._catch_up(user_id, talk_id, revision)
        live = self._talks.known(talk_id)
        if live is not None and live.waiting and (is_older or run is None):  # a message came after the stop
            self._notifier.deliver_talk(talk_id, user_id, None, (live.talk.agent or "").removeprefix("agent:"))
        receipt = await self._receipt([run] if run is not None and is_older else [], now, wait)
        times = (receipt.acknowledged, receipt.quiesced)
        return [*(time and time.timestamp() for time in times), list(receipt.abandoned)]

    # --- what follows a commit (on the writer's thread) -------------------------------------------

    def _posted(self, user_id: str, talk_id: str, posted: Posted) -> None:
        if self.remote is not None and posted.node not in ("", self._context.node):
            self.remote.posted(user_id, talk_id, posted)
            return
        live = self._talks.known(talk_id)
        if posted.repeated:
            self._repeated(user_id, talk_id, posted, live)
            return
        if live is not None and posted.was_parked and posted.superseded is not None:
            live.drop()  # to be loaded again, with what became of the run
        elif live is not None:
            live.posted(posted)
        if posted.superseded is not None:
            self._notifier.stop_talk(talk_id, posted.superseded, posted.message.created.timestamp())
        if not posted.was_parked:
            envelope = None if self._may_be_behind(talk_id, posted) else posted.envelope
            self._notifier.deliver_talk(talk_id, user_id, envelope, posted.agent)
        elif posted.superseded is not None:
            self._notifier.deliver_talk(talk_id, user_id, None, posted.agent)

    def _may_be_behind(self, talk_id: str, posted: Posted) -> bool:
        """Return whether a message may wait in the store that nobody here has; all of them are then claimed in order.

        It was left by a process that died, or it is from another node, whose notice is late or lost.
        """
        if posted.alone:
            return False
        is_steered = posted.envelope.busy == BusyPolicy.STEER and self._placement.run_of(talk_id) is not None
        return not self._placement.holds(talk_id) or (self.remote is not None and not is_steered)

    def _repeated(self, user_id: str, talk_id: str, posted: Posted, live: LiveTalk | None) -> None:
        """Take up a message that was committed without the reply reaching us: it is read and answered at once."""
        if live is None or live.knows(posted.message.seq):
            return
        run = self._placement.run_of(talk_id)
        if run is not None and run.epoch < posted.epoch:
            self._notifier.stop_talk(talk_id, StopReason.INTERRUPT, posted.message.created.timestamp())
        live.drop()
        self._notifier.deliver_talk(talk_id, user_id, None, posted.agent)

    def _halted(self, talk_id: str, found: list[TalkRun], halted: Halted) -> None:
        run = self._placement.run_of(talk_id)
        if run is not None and (halted.waiting or run.fenced):  # one that was stopped before may not have ended yet
            found.append(run)
        if not halted.waiting:
            return
        live = self._talks.known(talk_id)
        if live is not None:
            live.stopped(halted)
        self._notifier.stop_talk(talk_id, StopReason.STOP, halted.now)

    def _changed(self, changed: tuple[Talk, int]) -> None:
        talk, revision = changed
        live = self._talks.known(talk.talk_session_id)
        if live is not None:
            live.changed(talk, revision)
        elif self.remote is not None:
            self.remote.changed(talk.user_id, talk.talk_session_id)

    def _deleted(self, talk_ids: list[str]) -> None:
        self._deleted_here(talk_ids)
        if self.remote is not None:
            self.remote.deleted(talk_ids)

    def _deleted_here(self, talk_ids: list[str]) -> None:
        for talk_id in talk_ids:
            self._notifier.stop_talk(talk_id, StopReason.DELETE, self._context.host.clock.now())
            self._talks.forget(talk_id)
