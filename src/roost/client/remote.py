"""Service of a remote server: AsyncRemoteService with coroutines, RemoteService with blocking methods."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from pydantic import TypeAdapter

from roost.client.http import HttpClient
from roost.client.namespaces import remote_namespace
from roost.client.network import AsyncNetwork, BlockingNetwork, Network
from roost.core.accounts.current_user import CurrentUser
from roost.core.monitoring.health import Health
from roost.ports import Profile
from roost.protocol.talks import HealthReply, ProfileList
from roost.protocol.values import made, wired
from roost.sync import AsyncNamespaces, SyncNamespaces, sync_method


def connect(
    url: str,
    token: str | None = None,
    *,
    ca_file: str | os.PathLike[str] | None = None,
    patience: float | None = None,
) -> RemoteService:
    """Return the service of a server, for any number of threads. Nothing is sent yet: `me()` checks the connection.

    `token` is an API token. `ca_file` has the certificates to trust, in place of those of the system. A server that is
    away for `patience` seconds (30) raises Unavailable; until then, requests wait and streams resume.
    """
    return RemoteService(url, token, ca_file=ca_file, patience=patience)


def aconnect(
    url: str,
    token: str | None = None,
    *,
    ca_file: str | os.PathLike[str] | None = None,
    patience: float | None = None,
) -> AsyncRemoteService:
    """Return the same service with coroutines, for one event loop: `async with roost.aconnect(…) as service`."""
    return AsyncRemoteService(url, token, ca_file=ca_file, patience=patience)


class AsyncRemoteService(AsyncNamespaces):
    """Same methods as AsyncAgentService, with the same errors; its synchronous methods are coroutines here.

    Connection errors are retried where that is safe, and then raise Unavailable.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        network: Callable[..., Network] = AsyncNetwork,
        *,
        ca_file: str | os.PathLike[str] | None = None,
        certificate: str | None = None,
        patience: float | None = None,
    ) -> None:
        """`certificate`: the only one to accept, in PEM format, as a server on this machine has announced it."""
        file = None if ca_file is None else os.fspath(ca_file)
        self._wire = HttpClient(network, url, token, ca_file=file, certificate=certificate, patience=patience)
        self.url = self._wire.url
        super().__init__(lambda name: remote_namespace(self._wire, name))

    async def me(self) -> CurrentUser:
        """Return the user of the token, the role of the account, and the scopes."""
        answer = await self._wire.ask("GET", "/me", None)
        try:
            found: CurrentUser = made(TypeAdapter(wired(CurrentUser)).validate_python(answer), "")
        except ValueError as error:
            raise self._wire.misread() from error
        return found

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


class RemoteService(SyncNamespaces):
    """Same methods as AgentService, with the same errors; see AsyncRemoteService."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        ca_file: str | os.PathLike[str] | None = None,
        certificate: str | None = None,
        patience: float | None = None,
    ) -> None:
        asynchronous = AsyncRemoteService(
            url, token, BlockingNetwork, ca_file=ca_file, certificate=certificate, patience=patience
        )
        self.url = asynchronous.url
        super().__init__(asynchronous)

    me = sync_method(AsyncRemoteService.me)
    profiles = sync_method(AsyncRemoteService.profiles)
    health = sync_method(AsyncRemoteService.health)
    link = sync_method(AsyncRemoteService.link)
    close = sync_method(AsyncRemoteService.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
