"""WebSocket of the talk page: the messages of the open talk as they change, rendered.

A tab has one socket, since browsers allow only six HTTP/1.1 connections per host. The browser sends
`{"open": talk, "after": cursor}`, `{"older": seq}` or, to get news of them at once, `{"approvals": true}`; each reply
carries whole states of messages and approvals, so that one sent twice changes nothing, and `after` continues without
a gap. The other pages send `{"watch": {}}`, or `{"watch": {"meeting": id}}`, and get another value of `news` whenever
they should be drawn again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, WebSocket
from starlette.websockets import WebSocketDisconnect

from roost.api.auth import Identity
from roost.api.limits.concurrency import ConcurrencyLimit
from roost.api.routes.dependencies import scopes_of
from roost.api.security import USER
from roost.core.accounts.tokens import ALL
from roost.core.journal.approvals import TalkApproval
from roost.core.limits.limits import Limits
from roost.core.meetings.view.shown import MeetingView
from roost.core.talks.messages import Message, Page, Status
from roost.errors import Invalid, NotFound, RoostError, StaleCursor
from roost.service import AsyncAgentService
from roost.ui.messages.approval_cards import CARDS, approval_cards
from roost.ui.messages.digest import TALKS, digest
from roost.ui.messages.views import MessageView, Views

log = logging.getLogger("roost.api.live")

PATH = "/api/v1/live"
NEWEST = 50
OLDER = 50
MOST_ASKED = 4 * 1024
"""Characters of a message of the browser."""
FRAME = 256 * 1024
"""Characters of messages in one frame; the rest follows in the next one."""
PACE = 0.02
"""Seconds between two frames of a text that is being written."""
LOOK_AROUND = 1.0
"""Seconds between two looks at the talks, approvals and mail of a user, for all tabs together."""
MEETING_PACE = 0.2
"""Seconds between two notices of a meeting."""
BEAT = 15.0
"""Seconds after which a frame is sent in any case: a browser that hears nothing for longer reconnects."""
GRACE = 10.0
REFUSED, TOO_LARGE, TRY_LATER = 1008, 1009, 1013
GONE = (WebSocketDisconnect, TimeoutError, RuntimeError)
"""Raised by sockets that are closed, or whose browser does not read."""


class LiveSockets:
    """Open sockets of this process."""

    def __init__(self, service: AsyncAgentService, identity: Identity, limits: Limits) -> None:
        self._service = service
        self._identity = identity
        self.patience = limits.send_timeout + GRACE
        self._places = ConcurrencyLimit("live pages", limits)
        self.views = Views()
        self._renderers = ThreadPoolExecutor(2, "roost-renderer")
        self._around: dict[str, _Around] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._renderers.shutdown(wait=False, cancel_futures=True)

    async def serve(self, socket: WebSocket) -> None:
        """Serve one tab until it disconnects, or Roost closes."""
        user: str | None = socket.scope.get(USER)
        address = socket.client.host if socket.client else ""
        if user is None or ALL not in scopes_of(socket):
            return await socket.close(REFUSED)
        try:
            self._places.take(user, address)
        except RoostError:
            return await socket.close(TRY_LATER)
        try:
            await socket.accept()
            await _Tab(self, socket, user).run()
        except* GONE:
            log.debug("live page disconnected", extra={"user": user, "address": address})
        finally:
            self._places.leave(user, address)

    async def view(self, talk_id: str, message: Message) -> MessageView:
        """Return the view of a message; it is rendered on a thread of its own, once for all readers."""
        known = self.views.known(talk_id, message)
        if known is not None:
            return known
        return await asyncio.get_running_loop().run_in_executor(self._renderers, self.views.get, talk_id, message)

    async def details(self, user: str, message: Message) -> str | None:
        """Return the traceback of a failed answer, for the operator only."""
        if message.status is not Status.FAILED or message.run_id is None or user != self._identity.local_user:
            return None
        try:
            return (await self._service.runs.get(user, message.run_id)).traceback
        except NotFound:
            return None

    def pages(self, user: str, talk_id: str, after: str | None) -> AsyncIterator[Page]:
        return self._service.roost.talks.follow_pages(user, talk_id, after=after, limit=NEWEST)

    async def approvals(self, user: str, talk_id: str) -> dict[str, TalkApproval] | None:
        """Return the approvals of a talk by id; None if it cannot be read, which the feed reports."""
        try:
            found = await self._service.approvals.in_talk(user, talk_id, limit=CARDS)
        except RoostError:
            return None
        return {one.approval.approval_id: one for one in found}

    def meeting(self, user: str, meeting_id: str) -> AsyncIterator[MeetingView]:
        return self._service.meetings.watch(user, meeting_id)

    async def older(self, user: str, talk_id: str, before: int) -> Page:
        return await self._service.get_messages(user, talk_id, before=before, limit=OLDER)

    @asynccontextmanager
    async def around(self, user: str) -> AsyncIterator[_Around]:
        """Watch the talks, approvals and mail of a user while at least one tab is open."""
        around = self._around.setdefault(user, _Around(self._service, user))
        around.tabs += 1
        try:
            yield around
        finally:
            around.tabs -= 1
            if not around.tabs:
                del self._around[user]


class _Around:
    """Digest of what the pages of one user show around the messages."""

    def __init__(self, service: AsyncAgentService, user: str) -> None:
        self._service = service
        self._user = user
        self._looking = asyncio.Lock()
        self._looked = -LOOK_AROUND
        self._digest = ""
        self._news = 0
        self._cursor = ""
        self.tabs = 0

    async def look(self) -> tuple[str, str]:
        """Return the digest, and a value that changes with facts.

        Of all tabs that ask within `LOOK_AROUND`, one reads them.
        """
        async with self._looking:
            now = asyncio.get_running_loop().time()
            if now - self._looked >= LOOK_AROUND * 0.9:
                talks = await self._service.list_sessions(self._user, limit=TALKS)
                waiting = await self._service.approvals.list(self._user, limit=200)
                unread = await self._service.mail.unread_count(self._user)
                self._digest = digest(talks, waiting, unread, self._service.health().problem)
                await self._read_facts()
                self._looked = now
            return self._digest, str(self._news)

    async def _read_facts(self) -> None:
        monitor = self._service.monitor
        page = await monitor.facts(self._user, after=self._cursor or None, limit=1)
        if self._cursor and page.is_over:
            self._news += 1
            page = await monitor.facts(self._user, limit=1)
        self._cursor = page.cursor


class _Tab:
    """One socket: a task reads what the browser asks, one follows the open talk, one looks around."""

    def __init__(self, sockets: LiveSockets, socket: WebSocket, user: str) -> None:
        self._sockets = sockets
        self._socket = socket
        self._user = user
        self._talk = ""
        self._watches = False
        """True for pages that are drawn again when something has changed."""
        self._sending = asyncio.Lock()
        self._sent_at = 0.0
        self._written: dict[int, MessageView] = {}
        """States of messages being written that the browser has."""
        self._running = False
        self._cards: dict[str, TalkApproval] | None = None
        """Approvals of the open talk that the browser has; None before its first messages are sent."""
        self._has_none = True
        """True if the browser has no approvals before its first messages."""
        self._sending_cards = asyncio.Lock()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            around = tasks.create_task(self._look_around(), name="live: look around")
            feed: asyncio.Task[None] | None = None
            try:
                while (asked := await self._asked()) is not None:
                    if "open" in asked or "watch" in asked:
                        if feed is not None:
                            feed.cancel()
                            await asyncio.wait([feed])
                        start = self._feed if "open" in asked else self._watch
                        feed = tasks.create_task(start(asked), name="live: follow")
                    elif "older" in asked:
                        await self._send_older(asked)
                    elif "approvals" in asked:
                        await self._send_cards()
            finally:
                around.cancel()
                if feed is not None:
                    feed.cancel()

    async def _asked(self) -> dict[str, Any] | None:
        """Return the next request of the browser; None at the end."""
        try:
            text = await self._socket.receive_text()
        except (WebSocketDisconnect, RuntimeError, KeyError):  # KeyError: bytes
            return None
        try:
            asked = json.loads(text) if len(text) <= MOST_ASKED else None
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict):
            await self._close(TOO_LARGE if len(text) > MOST_ASKED else REFUSED)
            return None
        return asked

    # --- the open talk ---------------------------------------------------------------------------

    async def _feed(self, asked: dict[str, Any]) -> None:
        talk, after = asked.get("open"), asked.get("after")
        self._written.clear()
        self._cards, self._has_none = None, after is None
        self._talk = talk if isinstance(talk, str) else ""
        if not self._talk:
            return
        try:
            await self._follow(after if isinstance(after, str) else None)
        except StaleCursor:
            await self._restart()
        except (NotFound, Invalid):
            await self._send({"talk": self._talk, "gone": True})
        except RoostError as error:
            log.info("live page closed: %s", error)
        except GONE:
            return  # the reader ends too
        await self._close(TRY_LATER)

    async def _restart(self) -> None:
        """Start again from the newest messages: the store was restored, so known ones may be wrong."""
        try:
            self._cards, self._has_none = None, True
            await self._send({"talk": self._talk, "reset": True})
            await self._follow(None)
        except RoostError as error:
            log.info("live page closed: %s", error)

    async def _follow(self, after: str | None) -> None:
        is_first, now = after is None, asyncio.get_running_loop().time
        async for page in self._sockets.pages(self._user, self._talk, after):
            began = now()
            await self._send_page(page, {"more": page.more_before} if is_first else {})
            has_ended = any(message.status is not Status.STREAMING for message in page.messages if message.run_id)
            if has_ended or self._cards is None or self._running != page.running:
                await self._send_cards()  # an answer may have begun and ended since the last page
            is_first, self._running = False, page.running
            if any(message.status is Status.STREAMING for message in page.messages):
                # Meanwhile the text grows. A text that takes long to render is rendered less often.
                await asyncio.sleep(max(PACE, now() - began))

    async def _send_cards(self) -> None:
        """Send the approvals of the open talk that have changed; `whole`: there are no others."""
        async with self._sending_cards:
            talk, known = self._talk, self._cards
            found = await self._sockets.approvals(self._user, talk)
            if found is None or talk != self._talk or self._cards is not known:
                return  # or another talk was opened meanwhile
            is_whole = not self._has_none if known is None else bool(known.keys() - found.keys())
            news = [one for name, one in found.items() if known is None or known.get(name) != one]
            self._cards = found
            if is_whole or news:
                cards = approval_cards(found.values() if is_whole else news)
                await self._send({"talk": talk, "approvals": cards, "whole_approvals": is_whole})

    async def _send_older(self, asked: dict[str, Any]) -> None:
        before = asked["older"]
        if not self._talk or not isinstance(before, int) or isinstance(before, bool):
            return
        try:
            page = await self._sockets.older(self._user, self._talk, before)
        except RoostError:
            return
        shown = [await self._as_json(message) for message in page.messages]
        for part in _parts(shown):
            await self._send({"talk": self._talk, "older": True, "messages": part})
        await self._send({"talk": self._talk, "older": True, "messages": [], "more": page.more_before})

    async def _send_page(self, page: Page, more: dict[str, object]) -> None:
        """Send the messages of a page in parts; only the last one has the cursor."""
        shown = [await self._as_json(message) for message in page.messages]
        *parts, last = _parts(shown)
        for part in parts:
            await self._send({"talk": self._talk, "messages": part})
        state = {"cursor": page.cursor, "running": page.running, **more}
        await self._send({"talk": self._talk, "messages": last, **state})

    async def _as_json(self, message: Message) -> dict[str, Any]:
        view = await self._sockets.view(self._talk, message)
        known = self._written.pop(message.seq, None)
        if message.status is Status.STREAMING:
            self._written[message.seq] = view
        shown = view.as_json(known)
        if details := await self._sockets.details(self._user, message):
            shown["details"] = details
        return shown

    # --- other pages -----------------------------------------------------------------------------

    async def _watch(self, asked: dict[str, Any]) -> None:
        """Say from now on when something of the user has changed, or a meeting."""
        self._watches = True
        about = asked["watch"]
        meeting = about.get("meeting") if isinstance(about, dict) else None
        if not isinstance(meeting, str):
            return
        try:
            async for view in self._sockets.meeting(self._user, meeting):
                await self._send({"meeting": view.cursor})
                await asyncio.sleep(MEETING_PACE)
        except RoostError as error:
            log.info("meeting is not followed: %s", error)
        except GONE:
            return  # the reader ends too

    # --- around it -------------------------------------------------------------------------------

    async def _look_around(self) -> None:
        sent: dict[str, str] = {}
        try:
            async with self._sockets.around(self._user) as around:
                while True:
                    digest, news = await around.look()
                    found = {"around": digest, **({"news": news} if self._watches else {})}
                    now = asyncio.get_running_loop().time()
                    if self._talk and self._cards is not None and (self._running or found != sent):
                        await self._send_cards()
                    if found != sent or now - self._sent_at > BEAT:
                        await self._send(dict(found))
                        sent = found
                    await asyncio.sleep(LOOK_AROUND)
        except (RoostError, *GONE):
            await self._close(TRY_LATER)

    # --- sending ---------------------------------------------------------------------------------

    async def _send(self, content: dict[str, Any]) -> None:
        """Send one frame; raise TimeoutError if the browser does not read."""
        text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
        async with self._sending, asyncio.timeout(self._sockets.patience):
            await self._socket.send_text(text)
            self._sent_at = asyncio.get_running_loop().time()

    async def _close(self, code: int) -> None:
        try:
            await self._socket.close(code)
        except RuntimeError:
            return  # it is closed already


def _parts(messages: list[dict[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """Split messages into frames; there is at least one, which may be empty."""
    part: list[dict[str, Any]] = []
    size = 0
    for message in messages:
        length = len(str(message.get("source", ""))) + sum(map(len, message["text"]["add"]))
        if part and size + length > FRAME:
            yield part
            part, size = [], 0
        part.append(message)
        size += length
    yield part


def add(app: FastAPI, sockets: LiveSockets) -> None:
    app.add_api_websocket_route(PATH, sockets.serve)
