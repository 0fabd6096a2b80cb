"""The methods of the service, done by a server: AsyncRemoteService as coroutines, RemoteService as plain ones."""

from __future__ import annotations

import math
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from roost.client.events import changes
from roost.client.faces import far
from roost.client.http import Wire
from roost.client.network import LoopNetwork, Network, PlainNetwork
from roost.core import checks
from roost.core.health import Health
from roost.core.messages import PAGE, Change, Message, Page
from roost.core.talks import Receipt, Talk
from roost.faces import AsyncFaces, PlainFaces, each, plain
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

LONGEST_WAIT = 30.0


def connect(url: str, token: str | None = None) -> RemoteService:
    """The service of a running `roost up`. Nothing is sent yet: `health()` tells whether it is there."""
    return RemoteService(url, token)


def aconnect(url: str, token: str | None = None) -> AsyncRemoteService:
    """The same with coroutines, for one event loop: `async with aconnect(…) as service`."""
    return AsyncRemoteService(url, token)


class AsyncRemoteService(AsyncFaces):
    """The same methods as AsyncAgentService, with the same errors; what answers at once there is awaited here too.

    What breaks on the way is tried again where that is safe; then it is Unavailable.
    """

    def __init__(self, url: str, token: str | None = None, network: Network | None = None) -> None:
        self._wire = Wire(network or LoopNetwork(), url, token)
        self.url = self._wire.url
        super().__init__(lambda name: far(self._wire, name))

    async def create_talk_session(
        self, user_id: str, *, profile: str | None = None, agent: str | None = None, busy: str = "interrupt",
        title: str | None = None, model: str | None = None, temperature: float | None = None,
        instructions: str | None = None,
    ) -> str:  # fmt: skip
        """Start a talk with a profile (the default one if none is named); its id."""
        body = {
            "profile": profile, "agent": agent, "busy": busy, "title": title,
            "model": model, "temperature": temperature, "instructions": instructions,
        }  # fmt: skip
        answer = await self._wire.ask("POST", "/talks", _user(user_id), body, repeatable=False)
        return TalkReply.model_validate(answer).talk_session_id

    async def list_sessions(self, user_id: str, *, limit: int = PAGE, before: str | None = None) -> list[Talk]:
        """The user's talks, last used first."""
        answer = await self._wire.ask("GET", "/talks", _user(user_id), query={"limit": limit, "before": before})
        return [reply.talk(user_id) for reply in TalkList.model_validate(answer).talks]

    async def get_session(self, user_id: str, talk_session_id: str) -> Talk:
        answer = await self._wire.ask("GET", _path(talk_session_id), _user(user_id))
        return TalkReply.model_validate(answer).talk(user_id)

    async def rename(self, user_id: str, talk_session_id: str, title: str) -> Talk:
        return await self._change(user_id, talk_session_id, {"title": title})

    async def configure(
        self, user_id: str, talk_session_id: str, *, title: str | None = None, profile: str | None = None,
        busy: str | None = None, options: Mapping[str, Any] | None = None,
    ) -> Talk:  # fmt: skip
        """Change the title, and how the talk goes on from the next answer."""
        kept = None if options is None else dict(options)
        wanted = {"title": title, "profile": profile, "busy": busy, "options": kept}
        return await self._change(user_id, talk_session_id, wanted)

    async def delete(self, user_id: str, talk_session_id: str) -> None:
        """Stop it and remove it with everything that belongs to it."""
        await self._wire.ask("DELETE", _path(talk_session_id), _user(user_id))

    async def add_message(
        self, user_id: str, talk_session_id: str, content: str, *, key: str | None = None, busy: str | None = None
    ) -> Message:
        """Keep the message, stop the run under way (see `busy`), and return: the answer comes by itself.

        Without a key it gets one of its own, so that a try that is repeated adds nothing twice.
        """
        body = {"content": content, "key": secrets.token_hex(16) if key is None else key, "busy": busy}
        answer = await self._wire.ask("POST", _path(talk_session_id) + "/messages", _user(user_id), body)
        return MessageReply.model_validate(answer).message()

    async def get_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, before: int | None = None,
        limit: int = PAGE,
    ) -> Page:  # fmt: skip
        """The newest messages; or with `after` what is new since; or with `before` older ones."""
        query = {"after": after, "before": before, "limit": limit}
        answer = await self._wire.ask("GET", _path(talk_session_id) + "/messages", _user(user_id), query=query)
        return PageReply.model_validate(answer).page()

    def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> AsyncIterator[Change]:
        """What there is, then each piece as it is written. Waits; ends when the run does, or never with `follow`.

        A connection that breaks is made again, and the stream goes on where it broke.
        """
        return changes(self._wire, _user(user_id), _path(talk_session_id), after, follow)

    async def stop(self, user_id: str, talk_session_id: str, *, wait: float = 0.0) -> Receipt:
        """Stop the run under way and drop what waits. Waits up to `wait` seconds (30 at most) for it to be at rest."""
        bounded = min(wait, LONGEST_WAIT) if wait > 0 and not math.isnan(wait) else 0.0
        answer = await self._wire.ask("POST", _path(talk_session_id) + "/stop", _user(user_id), {"wait": bounded})
        return ReceiptReply.model_validate(answer).receipt()

    async def profiles(self) -> Sequence[Profile]:
        """What can be talked with, the default first."""
        answer = await self._wire.ask("GET", "/profiles", None)
        return [reply.profile() for reply in ProfileList.model_validate(answer).profiles]

    async def health(self) -> Health:
        return HealthReply.model_validate(await self._wire.ask("GET", "/health", None)).health()

    async def link(self) -> str:
        """A link that signs one browser in as the local user, once."""
        return self.url + str((await self._wire.ask("POST", "/links", None, repeatable=False))["path"])

    async def close(self) -> None:
        """Let go of the connections; the server goes on."""
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


class RemoteService(PlainFaces):
    """The same methods as AgentService, with the same errors; see AsyncRemoteService for what each does."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._face = AsyncRemoteService(url, token, PlainNetwork())
        self.url = self._face.url
        super().__init__(self._face)

    create_talk_session = plain(AsyncRemoteService.create_talk_session)
    list_sessions = plain(AsyncRemoteService.list_sessions)
    get_session = plain(AsyncRemoteService.get_session)
    rename = plain(AsyncRemoteService.rename)
    configure = plain(AsyncRemoteService.configure)
    delete = plain(AsyncRemoteService.delete)
    add_message = plain(AsyncRemoteService.add_message)
    get_messages = plain(AsyncRemoteService.get_messages)
    stop = plain(AsyncRemoteService.stop)
    profiles = plain(AsyncRemoteService.profiles)
    health = plain(AsyncRemoteService.health)
    link = plain(AsyncRemoteService.link)
    close = plain(AsyncRemoteService.close)

    def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> Iterator[Change]:
        """What there is, then each piece as it is written. Waits; ends when the run does, or never with `follow`."""
        return each(self._face.stream_messages(user_id, talk_session_id, after=after, follow=follow))

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
