"""Namespaces of the service over the network: coroutines with the same signatures, built from the service's."""

from __future__ import annotations

import functools
import math
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from pydantic import TypeAdapter

from roost.client.events import changes
from roost.client.http import HttpClient
from roost.core.accounts.deletions import Deletion
from roost.core.envelopes.mail import Mail, MailPage, decode_cursor, followed
from roost.core.meetings.view.shown import MeetingView
from roost.core.meetings.view.watch import watched
from roost.core.monitoring.facts import Fact, FactPage, about_agents, agent_key, decode
from roost.core.monitoring.metrics import MetricTotals
from roost.core.talks.attachments import Attachment, AttachmentFile, file_name
from roost.core.talks.messages import Change, Message
from roost.core.talks.transcripts import MOST_BYTES
from roost.core.values import checks
from roost.errors import NotFound
from roost.protocol.metrics import MetricList
from roost.protocol.namespaces import LONGEST_WAIT, Method, methods
from roost.protocol.values import made, wired
from roost.sync import HANDLERS, AsyncTalks, SyncUsers

T = TypeVar("T")
PIECE = 1024 * 1024
"""Bytes of a transcript in one request; a larger one is uploaded in pieces first."""
LONG = "within"
"""Parameter with the seconds that a long call may take."""
AFTER_NOTHING = 1.0
"""Seconds between two waits of a stream if the first one ends early: the server is about to close."""


def remote_namespace(wire: HttpClient, name: str) -> Any:
    """Return the namespace of this name, whose methods the server executes."""
    return _kind(name)(wire)


class RemoteNamespace:
    def __init__(self, wire: HttpClient) -> None:
        self._wire = wire

    async def _news(self, wait: Callable[[], Awaitable[T]], is_news: Callable[[T], bool]) -> T:
        """Wait for news without end, also across restarts of the server."""
        while not is_news(found := await wait()):
            await self._wire.sleep(AFTER_NOTHING)
        return found


class RemoteTalks(RemoteNamespace):
    get_messages: Callable[..., Any]
    _import_talk: Callable[..., Any]

    def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> AsyncIterator[Change]:
        """Yield what exists, then each piece as it is written; reconnect and resume after a broken connection."""
        checks.name(user_id, "the user id")
        talk = checks.name(talk_session_id, "the talk session id")

        async def load(seq: int) -> Message:
            newest: Message = (await self.get_messages(user_id, talk, before=seq + 1, limit=1)).messages[-1]
            return newest

        return changes(self._wire, user_id, f"/talks/{quote(talk, safe='')}/stream", load, after, follow)

    @functools.wraps(AsyncTalks.import_talk)
    async def import_talk(self, user_id: str, text: str = "", **options: Any) -> str:
        """Send a transcript; one that is too large for a request is uploaded in pieces first."""
        data = checks.text(text, "the transcript", most=MOST_BYTES).encode() if text else b""
        if len(data) > PIECE and not options.get("attachments"):
            pieces = [data[first : first + PIECE] for first in range(0, len(data), PIECE)]
            uploads = [await self.add_attachment(user_id, "transcript", piece) for piece in pieces]
            text, options["attachments"] = "", [one.attachment_id for one in uploads]
        added: str = await self._import_talk(user_id, text, **options)
        return added

    async def add_attachment(self, user_id: str, name: str, data: bytes) -> Attachment:
        """Upload a file for a message; see `add_message`."""
        checks.name(user_id, "the user id")
        query = {"name": file_name(name, "the name of the file")}
        answer = await self._wire.upload("/attachments", user_id, bytes(data), query)
        found: Attachment = made(TypeAdapter(wired(Attachment)).validate_python(answer), user_id)
        return found

    async def get_attachment(self, user_id: str, attachment_id: str) -> AttachmentFile:
        """Return a file of the user with its bytes."""
        checks.name(user_id, "the user id")
        name = checks.name(attachment_id, "the attachment id")
        headers, data = await self._wire.download(f"/attachments/{quote(name, safe='')}", user_id)
        shown = unquote(headers["content-disposition"].partition("filename*=UTF-8''")[2])
        kind = headers["content-type"].partition(";")[0]
        return AttachmentFile(Attachment(name, shown, kind, len(data), headers["etag"].strip('"')), data)


class RemoteMonitor(RemoteNamespace):
    facts: Callable[..., Any]
    wait: Callable[..., Any]

    async def metrics(self, user_id: str | None = None) -> MetricTotals:
        """Return the metrics of the server by name, of a cluster summed and by node; only with the local token."""
        return MetricList.model_validate(await self._wire.ask("GET", "/metrics", user_id)).totals()

    def follow(self, user_id: str, *, after: str | None = None) -> AsyncIterator[Fact]:
        """Yield each fact as it is recorded, from a cursor or from now on. Waits; ends with the process."""
        checks.name(user_id, "the user id")
        if after is not None:
            decode(after)
        return self._follow(user_id, after)

    async def _follow(self, user_id: str, after: str | None) -> AsyncIterator[Fact]:
        cursor = (await self.facts(user_id, limit=1)).cursor if after is None else after
        while True:
            page: FactPage = await self._news(partial(self.wait, user_id, cursor), lambda page: page.is_over)
            for fact in page.in_order(user_id):
                yield fact
            cursor = page.cursor


class RemoteAgents(RemoteNamespace):
    def follow(self, user_id: str, agent_id: str | None = None, *, after: str | None = None) -> AsyncIterator[Fact]:
        """Yield each fact about an agent, or about all agents, from a cursor or from now on. Waits."""
        about = agent_key(user_id, agent_id)
        return about_agents(self._monitor.follow(user_id, after=after), about)

    async def _fact_cursor(self, user_id: str) -> str:
        cursor: str = (await self._monitor.facts(user_id, limit=1)).cursor
        return cursor

    @property
    def _monitor(self) -> RemoteMonitor:
        found: RemoteMonitor = remote_namespace(self._wire, "monitor")
        return found


class RemoteMail(RemoteNamespace):
    arrivals: Callable[..., Any]
    wait: Callable[..., Any]

    def follow(self, user_id: str, *, after: str | None = None) -> AsyncIterator[Mail]:
        """Yield each mail to the user when it arrives, from a cursor or from the first read on."""
        checks.name(user_id, "the user id")
        if after is not None:
            decode_cursor(after)
        return followed(partial(self.arrivals, user_id, limit=1), partial(self._next, user_id), after)

    async def _next(self, user_id: str, after: str) -> MailPage:
        return await self._news(partial(self.wait, user_id, after), lambda page: bool(page.mail))


class RemoteUsers(RemoteNamespace):
    _delete: Callable[..., Any]

    @functools.wraps(SyncUsers.delete)
    async def delete(self, user_id: str, name: str, timeout: float | None = None) -> Deletion:  # noqa: ASYNC109
        """Delete a user, in as many requests as it takes: one request waits a bounded time."""
        latest = math.inf if timeout is None else time.monotonic() + checks.seconds(timeout, "the timeout")
        found: Deletion | None = None
        while True:
            wanted = min(LONGEST_WAIT / 2, max(0.0, latest - time.monotonic()))
            try:
                found = await self._delete(user_id, name, timeout=wanted) or Deletion(name, is_over=True)
            except NotFound:
                if found is None:
                    raise
                return replace(found, is_over=True)  # it ended between two requests
            if found.is_over or time.monotonic() >= latest:
                return found


class RemoteMeetings(RemoteNamespace):
    view: Callable[..., Any]
    wait: Callable[..., Any]

    def watch(
        self, user_id: str, meeting_id: str, *, seen_by: str | None = None, after: str | None = None
    ) -> AsyncIterator[MeetingView]:
        """Yield the view, and again after each change. Waits; ends with the meeting."""
        checks.name(user_id, "the user id")
        view = partial(self.view, user_id, meeting_id, seen_by=seen_by)

        async def changed(cursor: str) -> MeetingView:
            wait = partial(self.wait, user_id, meeting_id, cursor, seen_by=seen_by)
            return await self._news(wait, lambda found: found.cursor != cursor or found.is_over)

        return watched(view, changed, after)


@cache
def _kind(name: str) -> type[RemoteNamespace]:
    bases: dict[str, type[RemoteNamespace]] = {
        "talks": RemoteTalks,
        "agents": RemoteAgents,
        "monitor": RemoteMonitor,
        "mail": RemoteMail,
        "meetings": RemoteMeetings,
        "users": RemoteUsers,
    }
    handler, base = HANDLERS[name], bases.get(name, RemoteNamespace)
    # A method that the base has calls the generated one, as `_name`.
    generated = {f"_{one.name}" if one.name in vars(base) else one.name: one for one in methods(name, handler)}
    return type(f"Remote{handler.__name__}", (base,), {called: _asking(one) for called, one in generated.items()})


def _asking(method: Method) -> Callable[..., Any]:
    @functools.wraps(method.coroutine)
    async def call(self: RemoteNamespace, /, *args: Any, **options: Any) -> Any:
        user, body = method.request(*args, **options)
        checks.name(user, "the user id")
        ask = _wait if method.has("timeout") else _ask
        return await ask(self._wire, method, user, body)

    return call


async def _ask(wire: HttpClient, method: Method, user: str, body: dict[str, Any]) -> Any:
    if method.has("key") and body.get("key") is None:
        # Makes a retry idempotent.
        body["key"] = secrets.token_hex(16)
    path, query, sent = method.placed(body)
    verb, again = method.route.verb, method.is_repeatable
    seconds = _seconds(method, body)
    answer = await wire.ask(verb, f"/{path}", user, sent, query=query, repeatable=again, within=seconds)
    if answer is None and verb == "DELETE":
        return None  # of an earlier attempt, whose response was lost
    try:
        return method.result(answer, user)
    except (ValueError, TypeError, KeyError) as error:
        raise wire.misread() from error


def _seconds(method: Method, body: dict[str, Any]) -> float:
    """Return how long a call may take; the server judges what is no duration."""
    given = body.get(LONG, method.fields[LONG][1]) if method.has(LONG) else 0.0
    return given if isinstance(given, int | float) and 0 <= given < timedelta(days=1).total_seconds() else 0.0


async def _wait(wire: HttpClient, method: Method, user: str, body: dict[str, Any]) -> Any:
    """Repeat a waiting request until it has a result or the timeout is over: one request waits a bounded time."""
    timeout = body.get("timeout")
    latest = None if timeout is None else time.monotonic() + checks.seconds(timeout, "the timeout")
    while True:
        asked = time.monotonic()
        wanted = LONGEST_WAIT if latest is None else min(LONGEST_WAIT, max(0.0, latest - asked))
        found = await _ask(wire, method, user, body | {"timeout": wanted})
        # A server that is closing replies early: do not repeat the request at once.
        is_last = wanted < LONGEST_WAIT or time.monotonic() - asked < LONGEST_WAIT / 2
        if is_last or found is None or found.is_over:
            return found
