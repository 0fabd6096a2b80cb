"""Namespaces of the service over the network: coroutines with the same signatures, built from the service's."""

from __future__ import annotations

import functools
import secrets
import time
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from typing import Any
from urllib.parse import quote, unquote

from pydantic import TypeAdapter

from roost.client.events import changes
from roost.client.http import HttpClient
from roost.core.envelopes.mail import Mail, decode_cursor, followed
from roost.core.meetings.view.shown import MeetingView
from roost.core.meetings.view.watch import watched
from roost.core.monitoring.facts import Fact, FactPage, decode
from roost.core.monitoring.metrics import Metric
from roost.core.talks.attachments import Attachment, AttachmentFile, file_name
from roost.core.talks.messages import Change, Message
from roost.core.values import checks
from roost.protocol.metrics import MetricList
from roost.protocol.namespaces import LONGEST_WAIT, Method, methods
from roost.protocol.values import made, wired
from roost.sync import HANDLERS


def remote_namespace(wire: HttpClient, name: str) -> Any:
    """Return the namespace of this name, whose methods the server executes."""
    return _kind(name)(wire)


class RemoteNamespace:
    def __init__(self, wire: HttpClient) -> None:
        self._wire = wire


class RemoteTalks(RemoteNamespace):
    get_messages: Callable[..., Any]

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

    async def metrics(self, user_id: str | None = None) -> dict[str, Metric]:
        """Return the metrics of the server process by name; only with the local token."""
        return MetricList.model_validate(await self._wire.ask("GET", "/metrics", user_id)).by_name()

    def follow(self, user_id: str, *, after: str | None = None) -> AsyncIterator[Fact]:
        """Yield each fact as it is recorded, from a cursor or from now on. Waits; ends with the process."""
        checks.name(user_id, "the user id")
        if after is not None:
            decode(after)
        return self._follow(user_id, after)

    async def _follow(self, user_id: str, after: str | None) -> AsyncIterator[Fact]:
        cursor = (await self.facts(user_id, limit=1)).cursor if after is None else after
        while True:
            page: FactPage = await self.wait(user_id, cursor)
            if not page.is_over:
                return
            for fact in page.in_order(user_id):
                yield fact
            cursor = page.cursor


class RemoteMail(RemoteNamespace):
    arrivals: Callable[..., Any]
    wait: Callable[..., Any]

    def follow(self, user_id: str, *, after: str | None = None) -> AsyncIterator[Mail]:
        """Yield each mail to the user when it arrives, from a cursor or from the first read on."""
        checks.name(user_id, "the user id")
        if after is not None:
            decode_cursor(after)
        return followed(partial(self.arrivals, user_id, limit=1), partial(self.wait, user_id), after)


class RemoteMeetings(RemoteNamespace):
    view: Callable[..., Any]
    wait: Callable[..., Any]

    def watch(
        self, user_id: str, meeting_id: str, *, seen_by: str | None = None, after: str | None = None
    ) -> AsyncIterator[MeetingView]:
        """Yield the view, and again after each change. Waits; ends with the meeting."""
        checks.name(user_id, "the user id")
        view = partial(self.view, user_id, meeting_id, seen_by=seen_by)
        wait = partial(self.wait, user_id, meeting_id, seen_by=seen_by)
        return watched(view, wait, after)


@cache
def _kind(name: str) -> type[RemoteNamespace]:
    bases = {"talks": RemoteTalks, "monitor": RemoteMonitor, "mail": RemoteMail, "meetings": RemoteMeetings}
    handler = HANDLERS[name]
    generated = {one.name: _asking(one) for one in methods(name, handler)}
    return type(f"Remote{handler.__name__}", (bases.get(name, RemoteNamespace),), generated)


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
    answer = await wire.ask(verb, f"/{path}", user, sent, query=query, repeatable=again)
    return method.result(answer, user)


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
        if found.is_over or is_last:
            return found
