"""Talking: everything the service's face says about talks, on the store and the talks in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

from roost.core import addresses, checks
from roost.core.messages import MOST, PAGE, Change, Cursor, Message, Page, at
from roost.core.runs import Halted, Posted, Stop, Why
from roost.core.talks import BusyPolicy, Receipt, Talk, title_from
from roost.errors import Invalid, Unavailable
from roost.ports import Pending
from roost.runtime.inbox import Inbox
from roost.runtime.live import LiveTalk
from roost.runtime.pieces import Pieces
from roost.runtime.runner import Run
from roost.runtime.shop import Shop

SLOW_LOOK = 5.0


class Talks:
    """The talk methods as coroutines; nothing but pendings is awaited in them, so that plain threads can drive them."""

    def __init__(self, shop: Shop, inbox: Inbox) -> None:
        self._shop = shop
        self._inbox = inbox
        self._ops = shop.statements
        self.closing = False
        """No new messages are taken."""
        self.closed = False
        """Nothing more is going to happen; streams end."""

    # --- talks -----------------------------------------------------------------------------------

    async def create(
        self,
        user_id: str,
        profile: str | None,
        agent: str | None,
        busy: str,
        title: str | None,
        options: Mapping[str, Any],
    ) -> str:
        self._check(user_id)
        with_agent = await self._reached(user_id, agent, profile) if agent is not None else ""
        name = "" if with_agent else self._shop.brains.profile(profile or self._shop.brains.default).name
        policy = checks.choice(busy, "the busy policy", BusyPolicy)
        named = "" if title is None else checks.name(checks.name(title, "the title").strip(), "the title")
        talk_id = self._shop.host.new_id("talk")
        await self._shop.store.write(
            self._ops.talks.create, talk_id, user_id, name, policy, named, _options(options),
            self._shop.limits.talks_per_user, with_agent, key=talk_id, then=self._shop.talks.add,
        )  # fmt: skip
        return talk_id

    async def _reached(self, user_id: str, agent: str, profile: str | None) -> str:
        """The key of an agent that this user may talk with: one's own, or a shared one."""
        if profile is not None:
            raise Invalid("give the profile or the agent to talk with, not both: an agent has its own profile")
        address = addresses.of_agent(agent, user_id)
        await self._shop.store.read(self._ops.agents.reach, user_id, address.key, False)
        return address.key

    async def listed(self, user_id: str, limit: int, before: str | None) -> list[Talk]:
        self._check(user_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        if before is not None:
            checks.name(before, "`before`")
        return await self._shop.store.read(self._ops.talks.listed, user_id, limit, before)

    async def get(self, user_id: str, talk_id: str) -> Talk:
        self._check(user_id, talk_id)
        return await self._shop.store.read(self._ops.talks.get, user_id, talk_id)

    async def change(
        self,
        user_id: str,
        talk_id: str,
        profile: str | None,
        busy: str | None,
        title: str | None,
        options: Mapping[str, Any] | None,
    ) -> Talk:
        self._check(user_id, talk_id)
        values: dict[str, str] = {}
        if profile is not None:
            values["profile"] = self._shop.brains.profile(profile).name
        if busy is not None:
            values["busy"] = checks.choice(busy, "the busy policy", BusyPolicy)
        if title is not None:
            values["title"] = checks.name(checks.name(title, "the title").strip(), "the title")
        if options is not None:
            values["options"] = _options(options)
        if not values:
            return await self.get(user_id, talk_id)
        return await self._shop.store.write(
            self._ops.talks.change, user_id, talk_id, values, key=talk_id, then=partial(self._changed, talk_id)
        )  # fmt: skip

    async def delete(self, user_id: str, talk_id: str) -> None:
        self._check(user_id, talk_id)
        await self._shop.store.write(
            self._ops.talks.delete, user_id, talk_id, key=talk_id, then=partial(self._deleted, talk_id)
        )  # fmt: skip

    # --- messages --------------------------------------------------------------------------------

    async def add_message(self, user_id: str, talk_id: str, content: str, key: str | None, busy: str | None) -> Message:
        self._check(user_id, talk_id)
        limits = self._shop.limits
        checks.text(content, "the message", most=limits.message_bytes)
        if key is not None:
            checks.name(key, "the key")
        policy = None if busy is None else checks.choice(busy, "the busy policy", BusyPolicy)
        if self.closing:
            raise Unavailable("this Roost is closing: send the message again after its restart")
        self._shop.memory.check()
        posted: Posted = await self._shop.store.write(
            self._ops.messages.post, user_id, talk_id, content, key, policy, title_from(content),
            self._shop.host.new_id("env"), limits.collect_quiet, limits.waiting_per_talk,
            key=talk_id, then=partial(self._posted, user_id, talk_id),
        )  # fmt: skip
        return posted.message

    async def get_messages(self, user_id: str, talk_id: str, after: str | None, before: int | None, limit: int) -> Page:
        self._check(user_id, talk_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        if after is not None and before is not None:
            raise Invalid("give `after` or `before`, not both")
        live = await self._shop.talks.get(user_id, talk_id)
        if before is not None:
            return await self._before(live, checks.count(before, "`before`", least=1, most=1 << 53), limit)
        if after is None:
            return live.newest(limit) or await self._newest(live, limit)
        return await self._look(live, after, limit)

    async def _look(self, live: LiveTalk, after: str, limit: int) -> Page:
        cursor = Cursor.decode(after, live.talk_id)
        return live.since(cursor, limit) or await self._since(live, cursor, limit)

    async def _next(self, user_id: str, talk_id: str, cursor: str, follow: bool) -> Page:
        """What is new since the cursor; waits for it while something runs, and with `follow` for ever."""
        while True:
            live = await self._shop.talks.get(user_id, talk_id)
            bell: Pending[None] = self._shop.host.pending()
            live.waiters.append(bell)  # listen first, then look, then wait
            try:
                if not live.has_news(Cursor.decode(cursor, talk_id)) and (live.running or follow) and not self.closed:
                    await bell.within(SLOW_LOOK)
            finally:
                _unlisten(live, bell)
            page = await self._look(live, cursor, MOST)
            cursor = page.cursor
            if live.gone:
                continue  # the next look says that it does not exist, or loads it again
            if page.messages or self.closed or not (page.running or follow):
                return page

    async def stream(self, user_id: str, talk_id: str, after: str | None, follow: bool) -> AsyncIterator[Change]:
        page = await self.get_messages(user_id, talk_id, after, None, MOST if after else PAGE)
        pieces = Pieces(talk_id, after)
        while True:
            for change in pieces.of(page):
                yield change
            if not (page.running or page.more_after or follow) or self.closed:
                return
            page = await self._next(user_id, talk_id, page.cursor, follow)

    # --- stopping --------------------------------------------------------------------------------

    async def stop(self, user_id: str, talk_id: str, wait: float) -> Receipt:
        self._check(user_id, talk_id)
        checks.seconds(wait, "`wait`")
        found: list[Run] = []
        halted = await self._shop.store.write(
            self._ops.runs.stop, user_id, talk_id, key=talk_id, then=partial(self._halted, talk_id, found)
        )  # fmt: skip
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
        if posted.repeated:
            return
        live = self._shop.talks.known(talk_id)
        if live is not None and posted.rested and posted.superseded is not None:
            live.drop()  # to be loaded again, with what became of the run
        elif live is not None:
            live.posted(posted)
        if posted.superseded is not None:
            self._inbox.stop(talk_id, posted.superseded, posted.message.created.timestamp())
        if not posted.rested:
            # What nobody here has was left by a program that was killed: all of it is taken over together.
            left = not posted.alone and not self._inbox.holds(talk_id)
            self._inbox.deliver(talk_id, user_id, None if left else posted.envelope, posted.agent)
        elif posted.superseded is not None:
            self._inbox.deliver(talk_id, user_id, None, posted.agent)

    def _halted(self, talk_id: str, found: list[Run], halted: Halted) -> None:
        if not halted.waiting:
            lane = self._inbox.lane(talk_id)
            if lane is not None and (run := lane.run) is not None and run.fenced:
                found.append(run)  # stopped before, and perhaps not at rest yet
            return
        live = self._shop.talks.known(talk_id)
        if live is not None:
            live.stopped(halted)
        run = self._inbox.stop(talk_id, Why.STOP, halted.now)
        if run is not None:
            found.append(run)

    def _changed(self, talk_id: str, talk: Talk) -> None:
        live = self._shop.talks.known(talk_id)
        if live is not None:
            live.changed(talk)

    def _deleted(self, talk_id: str, _: None) -> None:
        self._inbox.stop(talk_id, Why.DELETE, self._shop.host.clock.now())
        self._shop.talks.forget(talk_id)

    # --- reading beyond the memory ---------------------------------------------------------------

    async def _before(self, live: LiveTalk, seq: int, limit: int) -> Page:
        target = max(live.revision, 1)
        found = await self._shop.store.read(self._ops.messages.before, live.owner, live.talk_id, seq, limit)
        messages = tuple(live.overlay(found))
        page = live.newest(1)
        assert page is not None
        if not messages:
            return Page((), Cursor(0).encode(live.talk_id), page.running, more_after=bool(page.messages))
        passed = messages[-1].seq
        # From here on follows whatever comes after these, read already or not.
        cursor = Cursor(0, position=passed, target=target).encode(live.talk_id)
        return Page(messages, cursor, page.running, messages[0].seq > 1, passed < page.messages[-1].seq)

    async def _newest(self, live: LiveTalk, limit: int) -> Page:
        page = live.newest(PAGE)  # what was loaded is at least that much
        assert page is not None
        older = await self._before(live, page.messages[0].seq, limit - len(page.messages))
        return Page(older.messages + page.messages, page.cursor, page.running, older.more_before)

    async def _since(self, live: LiveTalk, cursor: Cursor, limit: int) -> Page:
        target = live.reached(cursor)
        found = await self._shop.store.read(
            self._ops.messages.changed, live.owner, live.talk_id, cursor.revision, cursor.position, limit + 1
        )
        more = len(found) > limit
        messages = tuple(live.overlay(found[:limit]))
        onward = Cursor(cursor.revision, 0, 0, found[limit - 1].seq, target) if more else Cursor(target)
        return Page(messages, onward.encode(live.talk_id), live.running, more_after=more or live.revision > target)

    def _check(self, user_id: str, talk_id: str | None = None) -> None:
        checks.name(user_id, "the user id")
        if talk_id is not None:
            checks.name(talk_id, "the talk session id")


def _options(options: Mapping[str, Any]) -> str:
    """A talk's own model, temperature and instructions, as they are stored."""
    if not isinstance(options, Mapping):
        raise Invalid(f"the options must be a mapping of model, temperature and instructions, not {options!r:.80}")
    kept: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        if name == "temperature":
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
                raise Invalid(f"the temperature must be a number from 0 to 2, not {value!r:.80}")
            kept[name] = float(value)
        elif name == "model":
            kept[name] = checks.name(value, "the model")
        elif name == "instructions":
            kept[name] = checks.text(value, "the instructions", most=100_000)
        else:
            raise Invalid(f"the option {name!r:.80} is not known: use model, temperature or instructions")
    return json.dumps(kept)


def _unlisten(live: LiveTalk, bell: Pending[None]) -> None:
    try:
        live.waiters.remove(bell)
    except ValueError:
        return
