"""Reading talks: pages of messages, streams of changes, and search."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing

from roost.core.talks.messages import MOST, PAGE, Change, Cursor, Page, TalkLog, stale
from roost.core.talks.search import LIMIT, SearchPage
from roost.core.values import checks
from roost.core.values.traits import reads
from roost.errors import Invalid, Unavailable
from roost.ports import Bell
from roost.runtime.context import RuntimeContext
from roost.runtime.handlers.talks.remote import TalksElsewhere
from roost.runtime.talks.live_talk import LiveTalk
from roost.runtime.talks.live_talks import LiveTalks, TalkElsewhere
from roost.runtime.talks.search import search_talks
from roost.runtime.talks.stream import TalkStream
from roost.stores.sql.talks import messages as stored

SLOW_LOOK = 5.0


class TalkReading:
    """Methods of talks that read messages, from RAM as far as they are there, and from the store."""

    closed = False
    """True if nothing more is going to happen: streams end."""
    _context: RuntimeContext
    _talks: LiveTalks
    remote: TalksElsewhere | None
    """Talks of other nodes; None in a single process."""

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
        checks.talk(user_id, talk_session_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        if after is not None and before is not None:
            raise Invalid("give `after` or `before`, not both")
        self._check_store()
        if before is not None:
            checks.count(before, "`before`", least=1, most=1 << 53)
        try:
            live = await self._talks.get(user_id, talk_session_id)
            return await self._read(live, after, before, limit)
        except TalkElsewhere as elsewhere:
            assert self.remote is not None
            return await self.remote.read(user_id, talk_session_id, elsewhere.node, after, before, limit)

    async def _read(self, live: LiveTalk, after: str | None, before: int | None, limit: int) -> Page:
        if before is not None:
            return await self._before(live, before, limit)
        if after is None:
            return live.newest(limit) or await self._newest(live, limit)
        return await self._look(live, after, limit)

    def _check_store(self) -> None:
        """Refuse to show what is in RAM once it cannot be kept: another program may have the talk by now."""
        if (lost := self._context.store.lost) is not None:
            raise lost.with_traceback(None)  # the same one may be raised again and again

    async def _look(self, live: LiveTalk, after: str, limit: int) -> Page:
        self._check_store()
        cursor = Cursor.decode(after, live.log)
        if cursor.revision > live.revision and self.remote is not None and live is self._talks.known(live.talk_id):
            live.miss()  # the reader comes from another node, which knows of a later commit
            live = await self._talks.get(live.owner, live.talk_id)
        if cursor.revision > live.revision:
            raise stale(after)
        return live.since(cursor, limit) or await self._since(live, cursor, limit)

    async def _next(self, user_id: str, talk_id: str, cursor: str, bell: Bell, *, follow: bool) -> Page:
        """Return what is new since the cursor; waits for it while something runs, and with `follow` without end."""
        while True:
            page, is_gone = await self._wait(user_id, talk_id, cursor, bell, follow=follow)
            cursor = page.cursor
            if is_gone:
                continue  # the next look says that it does not exist, or loads it again
            if page.messages or self.closed or not (page.running or follow):
                return page

    async def _wait(self, user_id: str, talk_id: str, cursor: str, bell: Bell, *, follow: bool) -> tuple[Page, bool]:
        """Wait once, for a bounded time, while something runs or with `follow`.

        Return the changes since the cursor, and whether the talk in RAM is gone.
        """
        try:
            live = await self._talks.get(user_id, talk_id)
            await self._listen(live, cursor, bell, follow=follow)
            if live.missed:
                live = await self._talks.get(user_id, talk_id)
            return await self._look(live, cursor, MOST), live.gone
        except TalkElsewhere as elsewhere:  # it may also have moved while this reader waited
            return await self._wait_elsewhere(user_id, talk_id, elsewhere.node, cursor), False

    async def _wait_elsewhere(self, user_id: str, talk_id: str, node: str, cursor: str) -> Page:
        assert self.remote is not None
        wait = 0.0 if self.closed else self._context.poll_interval(SLOW_LOOK)
        try:
            return await self.remote.read(user_id, talk_id, node, cursor, None, MOST, wait)
        except Unavailable:
            if self.closed:  # the store was closed while this reader waited: its stream ends
                return Page((), cursor, running=False)
            raise

    async def _listen(
        self, live: LiveTalk, cursor: str, bell: Bell, *, follow: bool, seconds: float = SLOW_LOOK
    ) -> None:
        """Wait for news after the cursor, for at most these seconds."""
        bell.clear()
        live.waiters.append(bell)  # listen first, then look, then wait
        try:
            if not live.has_news(Cursor.decode(cursor, live.log)) and (live.running or follow) and not self.closed:
                await bell.within(seconds)
        finally:
            _unlisten(live, bell)

    async def follow_pages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, limit: int = PAGE
    ) -> AsyncIterator[Page]:
        """Yield the newest messages, or all changes since `after`; then a page for each change, until Roost closes.

        A page without messages says that only `running` has changed.
        """
        page = await self.get_messages(user_id, talk_session_id, after=after, limit=limit)
        with closing(self._context.host.bell()) as bell:
            while True:
                yield page
                running, is_news = page.running, False
                while not is_news:
                    if self.closed:
                        return
                    page, is_gone = await self._wait(user_id, talk_session_id, page.cursor, bell, follow=True)
                    is_news = bool(page.messages) or (page.running != running and not is_gone)

    async def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> AsyncIterator[Change]:
        """Yield what exists, then each piece as it is written. Waits; ends with the run, or never with `follow`."""
        # No generator inside of this one: a plain thread that gets a Ctrl-C while it waits could not close it.
        with closing(self.follower(user_id, talk_session_id, after=after, follow=follow)) as follower:
            while True:
                for change in await follower.read():
                    yield change
                if follower.is_over:
                    return

    def follower(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> TalkFollower:
        """Return a reader of the same changes, in batches."""
        return TalkFollower(self, self._context, user_id, talk_session_id, after, follow)

    @reads
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
        checks.name(user_id, "the user id")
        return await search_talks(self._context, user_id, query, limit, after, talk_session_id)

    # --- reading beyond RAM --------------------------------------------------------------------

    async def _before(self, live: LiveTalk, seq: int, limit: int) -> Page:
        target = max(live.revision, 1)
        found = await self._context.store.read(stored.before, live.owner, live.talk_id, seq, limit)
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
        page = live.loaded(limit)
        older = await self._before(live, page.messages[0].seq, limit - len(page.messages))
        return Page(older.messages + page.messages, page.cursor, page.running, older.more_before)

    async def _since(self, live: LiveTalk, cursor: Cursor, limit: int) -> Page:
        target = live.reached(cursor)
        found = await self._context.store.read(
            stored.changed, live.owner, live.talk_id, cursor.revision, cursor.position, limit + 1
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


class TalkFollower:
    """Changes of a talk in batches: all that is there at once.

    Used by one caller at a time, which may be cancelled while it waits; the next one gets the changes.
    """

    __slots__ = ("_bell", "_context", "_follow", "_is_last", "_page_cursor", "_reading", "_stream", "_whose", "cursor")

    def __init__(
        self, reading: TalkReading, context: RuntimeContext, user_id: str, talk_id: str, after: str | None, follow: bool
    ) -> None:
        self._reading = reading
        self._context = context
        self._whose = user_id, talk_id
        self._bell = context.host.bell()
        self._stream: TalkStream | None = None
        self._page_cursor = ""
        """Cursor of the last page."""
        self._follow = follow
        self.cursor = after
        """Cursor of the last change."""
        self._is_last = False

    @property
    def is_over(self) -> bool:
        """Return whether no changes follow the last ones."""
        return self._is_last or self._reading.closed

    async def read(self) -> tuple[Change, ...]:
        """Return the next changes; wait until there are some. None at the end, when `is_over`."""
        while True:
            page = await self._next_page()  # from here on nothing waits: a call that was cancelled has read nothing
            stream = self._stream
            if stream is None:
                log = TalkLog(self._whose[1], self._context.store.generation)
                self._stream = stream = TalkStream(log, self.cursor)
            self._page_cursor = page.cursor
            changes = tuple(stream.of(page))
            self._is_last = not (page.running or page.more_after or self._follow)
            if changes:
                self.cursor = changes[-1].cursor
            if changes or self.is_over:
                return changes

    async def _next_page(self) -> Page:
        if self._stream is None:
            limit = MOST if self.cursor else PAGE
            return await self._reading.get_messages(*self._whose, after=self.cursor, limit=limit)
        return await self._reading._next(*self._whose, self._page_cursor, self._bell, follow=self._follow)

    def close(self) -> None:
        self._bell.close()


def _unlisten(live: LiveTalk, bell: Bell) -> None:
    try:
        live.waiters.remove(bell)
    except ValueError:
        return
