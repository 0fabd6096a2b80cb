"""Service of a remote server: AsyncRemoteService with coroutines, RemoteService with blocking methods."""

from __future__ import annotations

import math
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from roost.client.events import changes
from roost.client.http import HttpClient
from roost.client.namespaces import remote_namespace
from roost.client.network import AsyncConnector, BlockingConnector, Connector
from roost.core.monitoring.health import Health
from roost.core.talks.messages import PAGE, Change, Message, Page
from roost.core.talks.talk import Receipt, Talk
from roost.core.values import checks
from roost.ports import Profile
from roost.protocol.talks import (
    HealthReply,
    MessageReply,
    PageReply,
    ProfileList,
    ReceiptReply,
    TalkList,
    TalkReply,
)
from roost.sync import AsyncNamespaces, SyncNamespaces, iterate, sync_method

LONGEST_WAIT = 30.0


def connect(url: str, token: str | None = None) -> RemoteService:
    """Return the service of a running `roost up`. Nothing is sent yet: `health()` checks the connection."""
    return RemoteService(url, token)


def aconnect(url: str, token: str | None = None) -> AsyncRemoteService:
    """Return the same service with coroutines, for one event loop: `async with aconnect(…) as service`."""
    return AsyncRemoteService(url, token)


class AsyncRemoteService(AsyncNamespaces):
    """Same methods as AsyncAgentService, with the same errors; its synchronous methods are coroutines here.

    Connection errors are retried where that is safe, and then raise Unavailable.
    """

    def __init__(self, url: str, token: str | None = None, network: Connector | None = None) -> None:
        self._wire = HttpClient(network or AsyncConnector(), url, token)
        self.url = self._wire.url
        super().__init__(lambda name: remote_namespace(self._wire, name))

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
        """Start a talk with a profile (the default if none is named); return its id."""
        body = {
            "profile": profile,
            "agent": agent,
            "busy": busy,
            "title": title,
            "model": model,
            "temperature": temperature,
            "instructions": instructions,
        }
        answer = await self._wire.ask("POST", "/talks", _user(user_id), body, repeatable=False)
        return TalkReply.model_validate(answer).talk_session_id

    async def list_sessions(self, user_id: str, *, limit: int = PAGE, before: str | None = None) -> list[Talk]:
        """Return the user's talks, last used first."""
        answer = await self._wire.ask("GET", "/talks", _user(user_id), query={"limit": limit, "before": before})
        return [reply.talk(user_id) for reply in TalkList.model_validate(answer).talks]

    async def get_session(self, user_id: str, talk_session_id: str) -> Talk:
        answer = await self._wire.ask("GET", _path(talk_session_id), _user(user_id))
        return TalkReply.model_validate(answer).talk(user_id)

    async def rename(self, user_id: str, talk_session_id: str, title: str) -> Talk:
        return await self._change(user_id, talk_session_id, {"title": title})

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
        """Change the title, and the settings of the talk from the next answer on."""
        kept = None if options is None else dict(options)
        wanted = {"title": title, "profile": profile, "busy": busy, "options": kept}
        return await self._change(user_id, talk_session_id, wanted)

    async def delete(self, user_id: str, talk_session_id: str) -> None:
        """Stop the talk, and delete it with everything that belongs to it."""
        await self._wire.ask("DELETE", _path(talk_session_id), _user(user_id))

    async def add_message(
        self, user_id: str, talk_session_id: str, content: str, *, key: str | None = None, busy: str | None = None
    ) -> Message:
        """Store the message, apply the `busy` policy to the run in progress, and return; the answer follows.

        Without a key a new one is used, so that a retry adds nothing twice.
        """
        body = {"content": content, "key": secrets.token_hex(16) if key is None else key, "busy": busy}
        answer = await self._wire.ask("POST", _path(talk_session_id) + "/messages", _user(user_id), body)
        return MessageReply.model_validate(answer).message()

    async def get_messages(
        self,
        user_id: str,
        talk_session_id: str,
        *,
        after: str | None = None,
        before: int | None = None,
        limit: int = PAGE,
    ) -> Page:
        """Return the newest messages; with `after` the changes since; with `before` older ones."""
        query = {"after": after, "before": before, "limit": limit}
        answer = await self._wire.ask("GET", _path(talk_session_id) + "/messages", _user(user_id), query=query)
        return PageReply.model_validate(answer).page()

    def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> AsyncIterator[Change]:
        """Yield what exists, then each piece as it is written. Waits; ends with the run, or never with `follow`.

        After a broken connection it reconnects and resumes.
        """
        return changes(self._wire, _user(user_id), _path(talk_session_id), after, follow)

    async def stop(self, user_id: str, talk_session_id: str, *, wait: float = 0.0) -> Receipt:
        """Stop the run in progress and drop queued messages. Wait up to `wait` seconds (at most 30) for the stop."""
        bounded = min(wait, LONGEST_WAIT) if wait > 0 and not math.isnan(wait) else 0.0
        answer = await self._wire.ask("POST", _path(talk_session_id) + "/stop", _user(user_id), {"wait": bounded})
        return ReceiptReply.model_validate(answer).receipt()

    async def profiles(self) -> Sequence[Profile]:
        """Return the profiles that talks can use, the default first."""
        answer = await self._wire.ask("GET", "/profiles", None)
        return [reply.profile() for reply in ProfileList.model_validate(answer).profiles]

    async def health(self) -> Health:
        return HealthReply.model_validate(await self._wire.ask("GET", "/health", None)).health()

    async def link(self) -> str:
        """Return a link that signs one browser in as the local user, once."""
        return self.url + str((await self._wire.ask("POST", "/links", None, repeatable=False))["path"])

    async def close(self) -> None:
        """Close the connections; the server is not affected."""
        await self._wire.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _change(self, user_id: str, talk_session_id: str, body: Mapping[str, Any]) -> Talk:
        answer = await self._wire.ask("PATCH", _path(talk_session_id), _user(user_id), body)
        return TalkReply.model_validate(answer).talk(user_id)


class RemoteService(SyncNamespaces):
    """Same methods as AgentService, with the same errors; see AsyncRemoteService."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._asynchronous = AsyncRemoteService(url, token, BlockingConnector())
        self.url = self._asynchronous.url
        super().__init__(self._asynchronous)

    create_talk_session = sync_method(AsyncRemoteService.create_talk_session)
    list_sessions = sync_method(AsyncRemoteService.list_sessions)
    get_session = sync_method(AsyncRemoteService.get_session)
    rename = sync_method(AsyncRemoteService.rename)
    configure = sync_method(AsyncRemoteService.configure)
    delete = sync_method(AsyncRemoteService.delete)
    add_message = sync_method(AsyncRemoteService.add_message)
    get_messages = sync_method(AsyncRemoteService.get_messages)
    stop = sync_method(AsyncRemoteService.stop)
    profiles = sync_method(AsyncRemoteService.profiles)
    health = sync_method(AsyncRemoteService.health)
    link = sync_method(AsyncRemoteService.link)
    close = sync_method(AsyncRemoteService.close)

    def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> Iterator[Change]:
        """Yield what exists, then each piece as it is written. Waits; ends with the run, or never with `follow`."""
        return iterate(self._asynchronous.stream_messages(user_id, talk_session_id, after=after, follow=follow))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _user(user_id: str) -> str:
    return checks.name(user_id, "the user id")


def _path(talk_session_id: str) -> str:
    return "/talks/" + quote(checks.name(talk_session_id, "the talk session id"), safe="")
