"""Talking: everything the service's face says about talks, on the store and the talks in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from roost.core.talks.attachments import ids as attachment_ids
from roost.core.talks.messages import MOST, PAGE, Change, Cursor, Message, Page, TalkLog, at, stale
from roost.core.talks.runs import Halted, Posted, Stop, StopReason
from roost.core.talks.search import LIMIT, SearchPage
from roost.core.talks.talk import BusyPolicy, Receipt, Talk, title_from
from roost.core.values import checks
from roost.errors import Invalid, Unavailable
from roost.ports import Pending
from roost.runtime.context import RuntimeContext
from roost.runtime.handlers.talks.attachments import TalkAttachments
from roost.runtime.handlers.talks.branches import TalkBranches
from roost.runtime.handlers.talks.settings import options_json, reached
from roost.runtime.handlers.talks.transcripts import TalkTranscripts
from roost.runtime.ports.notifier import Notifier
from roost.runtime.talks.live_talk import LiveTalk
from roost.runtime.talks.live_talks import LiveTalks
from roost.runtime.talks.placement import Placement
from roost.runtime.talks.run import TalkRun
from roost.runtime.talks.search import search_talks
from roost.runtime.talks.stream import TalkStream
from roost.stores.sql.talks import branches, runs, talks
from roost.stores.sql.talks import messages as messages_sql

SLOW_LOOK = 5.0


class Talks(TalkBranches, TalkTranscripts, TalkAttachments):
    """The talk methods as coroutines; nothing but pendings is awaited in them, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, talks: LiveTalks, placement: Placement, notifier: Notifier) -> None:
        super().__init__(context, notifier)
        self._talks = talks
        self._placement = placement
        self.closed = False
        """Nothing more is going to happen; streams end."""

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
    ) -> str:
        """Start a talk with a profile (the default if none is named); return its id.

        `busy` is the policy for a message that arrives while an answer is being written: interrupt, queue, reject,
        rollback, steer or collect.
        """
        self._check(user_id)
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
        self._check(user_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        if before is not None:
            checks.name(before, "`before`")
        return await self._context.store.read(talks.listed, user_id, limit, before)

    async def get_session(self, user_id: str, talk_session_id: str) -> Talk:
        """Return a talk."""
        self._check(user_id, talk_session_id)
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
        self._check(user_id, talk_session_id)
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
        return await self._context.store.write(
            talks.change,
            user_id,
            talk_session_id,
            values,
            key=talk_session_id,
            then=partial(self._changed, talk_session_id),
        )

    async def delete(self, user_id: str, talk_session_id: str) -> None:
        """Stop the talk, and delete it with its branches and everything that belongs to it. Forks of it stay."""
        self._check(user_id, talk_session_id)
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
        self._check(user_id, talk_session_id)
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
        return posted.message

    async def get_messages(
        self,
        user_id: str,
        talk_session_id: str,
        *,
        after: str | None = None,
        before: int | None = None,
        limit: int = PAGE,
    ) -> Page:
        """Return the newest messages; with `after` (a cursor) the changes since; with `before` (a number) older ones.

        A message that is being written is returned again, with all its text so far, when it has grown.
        """
        self._check(user_id, talk_session_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        if after is not None and before is not None:
            raise Invalid("give `after` or `before`, not both")
        self._check_store()
        live = await self._talks.get(user_id, talk_session_id)
        if before is not None:
            return await self._before(live, checks.count(before, "`before`", least=1, most=1 << 53), limit)
        if after is None:
            return live.newest(limit) or await self._newest(live, limit)
        return await self._look(live, after, limit)

    def _check_store(self) -> None:
        """Refuse to show what is in memory once it cannot be kept: another program may have the talk by now."""
        if (lost := self._context.store.lost) is not None:
            raise lost.with_traceback(None)  # the same one may be raised again and again

    async def _look(self, live: LiveTalk, after: str, limit: int) -> Page:
        self._check_store()
        cursor = Cursor.decode(after, live.log)
        if cursor.revision > live.revision:
            raise stale(after)
        return live.since(cursor, limit) or await self._since(live, cursor, limit)

    async def _next(self, user_id: str, talk_id: str, cursor: str, follow: bool) -> Page:
        """Return what is new since the cursor; waits for it while something runs, and with `follow` without end."""
        while True:
            live, page = await self._wait(user_id, talk_id, cursor, follow)
            cursor = page.cursor
            if live.gone:
                continue  # the next look says that it does not exist, or loads it again
            if page.messages or self.closed or not (page.running or follow):
                return page

    async def _wait(self, user_id: str, talk_id: str, cursor: str, follow: bool) -> tuple[LiveTalk, Page]:
        """Wait once, for a bounded time, while something runs or with `follow`; return the changes since the cursor."""
        live = await self._talks.get(user_id, talk_id)
        bell: Pending[None] = self._context.host.pending()
        live.waiters.append(bell)  # listen first, then look, then wait
        try:
            if not live.has_news(Cursor.decode(cursor, live.log)) and (live.running or follow) and not self.closed:
                await bell.within(SLOW_LOOK)
        finally:
            _unlisten(live, bell)
        return live, await self._look(live, cursor, MOST)

    async def follow_pages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, limit: int = PAGE
    ) -> AsyncIterator[Page]:
        """Yield the newest messages, or all changes since `after`; then a page for each change, until Roost closes.

        A page without messages says that only `running` has changed.
        """
        page = await self.get_messages(user_id, talk_session_id, after=after, limit=limit)
        while True:
            yield page
            running, is_news = page.running, False
            while not is_news:
                if self.closed:
                    return
                live, page = await self._wait(user_id, talk_session_id, page.cursor, True)
                is_news = bool(page.messages) or (page.running != running and not live.gone)

    async def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> AsyncIterator[Change]:
        """Yield what exists, then each piece as it is written. Waits; ends with the run, or never with `follow`."""
        page = await self.get_messages(user_id, talk_session_id, after=after, limit=MOST if after else PAGE)
        pieces = TalkStream(TalkLog(talk_session_id, self._context.store.generation), after)
        while True:
            for change in pieces.of(page):
                yield change
            if not (page.running or page.more_after or follow) or self.closed:
                return
            page = await self._next(user_id, talk_session_id, page.cursor, follow)

    async def search(
        self,
        user_id: str,
        query: str,
        *,
        limit: int = LIMIT,
        after: str | None = None,
        talk_session_id: str | None = None,
    ) -> SearchPage:
        """Return messages of the user's talks, or of one talk, that contain all words and quoted phrases of the query.

        Talks last used come first, and in a talk the newest messages. Without case and accents; the last word may be
        the start of a word. `after` is the cursor of the previous page.
        """
        self._check(user_id)
        return await search_talks(self._context, user_id, query, limit, after, talk_session_id)

    # --- stopping --------------------------------------------------------------------------------

    async def stop(self, user_id: str, talk_session_id: str, *, wait: float = 0.0) -> Receipt:
        """Stop the run in progress and drop queued messages. Wait up to `wait` seconds until it has stopped."""
        self._check(user_id, talk_session_id)
        checks.seconds(wait, "`wait`")
        found: list[TalkRun] = []
        halted = await self._context.store.write(
            runs.stop, user_id, talk_session_id, key=talk_session_id, then=partial(self._halted, talk_session_id, found)
        )
        requested = at(halted.now)
        run = found[0] if found else None
        if run is None:
            return Receipt(requested, requested, requested)
        if wait > 0 and await run.quiesced.within(wait):
            stop: Stop = await run.quiesced
            # It may have been told to end already, by a message that came before.
            acknowledged, quiesced = max(stop.acknowledged, halted.now), max(stop.quiesced, halted.now)
            return Receipt(requested, at(acknowledged), at(quiesced), stop.abandoned)
        return Receipt(requested, at(max(run.acknowledged, halted.now)) if run.acknowledged else None)

    # --- what follows a commit (on the writer's thread) -------------------------------------------

    def _posted(self, user_id: str, talk_id: str, posted: Posted) -> None:
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
            # What nobody here has was left by a program that was killed: all of it is taken over together.
            left = not posted.alone and not self._placement.holds(talk_id)
            self._notifier.deliver_talk(talk_id, user_id, None if left else posted.envelope, posted.agent)
        elif posted.superseded is not None:
            self._notifier.deliver_talk(talk_id, user_id, None, posted.agent)

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

    def _changed(self, talk_id: str, talk: Talk) -> None:
        live = self._talks.known(talk_id)
        if live is not None:
            live.changed(talk)

    def _deleted(self, talk_ids: list[str]) -> None:
        for talk_id in talk_ids:
            self._notifier.stop_talk(talk_id, StopReason.DELETE, self._context.host.clock.now())
            self._talks.forget(talk_id)

    # --- reading beyond the memory ---------------------------------------------------------------

    async def _before(self, live: LiveTalk, seq: int, limit: int) -> Page:
        target = max(live.revision, 1)
        found = await self._context.store.read(messages_sql.before, live.owner, live.talk_id, seq, limit)
        messages = tuple(live.overlay(found))
        page = live.newest(1)
        assert page is not None
        if not messages:
            return Page((), Cursor(0).encode(live.log), page.running, more_after=bool(page.messages))
        passed = messages[-1].seq
        # From here on follows whatever comes after these, read already or not.
        cursor = Cursor(0, position=passed, target=target).encode(live.log)
        return Page(messages, cursor, page.running, messages[0].seq > 1, passed < page.messages[-1].seq)

    async def _newest(self, live: LiveTalk, limit: int) -> Page:
        page = live.in_memory(limit)
        older = await self._before(live, page.messages[0].seq, limit - len(page.messages))
        return Page(older.messages + page.messages, page.cursor, page.running, older.more_before)

    async def _since(self, live: LiveTalk, cursor: Cursor, limit: int) -> Page:
        target = live.reached(cursor)
        found = await self._context.store.read(
            messages_sql.changed, live.owner, live.talk_id, cursor.revision, cursor.position, limit + 1
        )
        messages, is_cut = live.overlay_until(found[:limit], target)
        onward = Cursor(target)
        if is_cut:  # what has changed since the target comes with the next page, and what follows it
            onward = Cursor(cursor.revision, position=messages[-1].seq if messages else cursor.position, target=target)
        elif len(found) > limit:
            onward = Cursor(cursor.revision, position=found[limit - 1].seq, target=target)
        onward = live.placed(onward, messages, cursor)
        more = is_cut or len(found) > limit or live.revision > target
        return Page(tuple(messages), onward.encode(live.log), live.running, more_after=more)

    def _check(self, user_id: str, talk_id: str | None = None) -> None:
        checks.name(user_id, "the user id")
        if talk_id is not None:
            checks.name(talk_id, "the talk session id")


def _unlisten(live: LiveTalk, bell: Pending[None]) -> None:
    try:
        live.waiters.remove(bell)
    except ValueError:
        return
