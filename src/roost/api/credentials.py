"""Credentials of requests: verified in the store, remembered for a moment, and watched while a connection is open."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from time import monotonic
from typing import Any, NamedTuple

from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger("roost.api.credentials")

REMEMBERED = 0.5
"""Seconds for which a verified credential is not read again: one that has ended is refused no later than this."""
MOST_REMEMBERED = 10_000
ENDED = 1008
"""Code that closes a WebSocket whose credential has ended."""


class CredentialKind(StrEnum):
    COOKIE = "session"
    TOKEN = "token"
    ACCESS_TOKEN = "access token"
    """Token of the identity provider."""
    PROXY = "proxy"
    """Name of a user, from a trusted proxy."""


class Credential(NamedTuple):
    """Credential of a request. `value`: the cookie, the token, or the name that the proxy has given."""

    kind: CredentialKind
    value: str


@dataclass(frozen=True, slots=True)
class Grant:
    """Verified credential: it allows to act for a user. `scopes`: those of an API token, None without one."""

    user_id: str
    scopes: tuple[str, ...] | None = None


Verify = Callable[[Credential], Awaitable[Grant | None]]


class CredentialVerifier:
    """Verifies the credentials of requests; ends requests and connections whose credential has ended."""

    def __init__(self, verify: Verify) -> None:
        self._verify = verify
        self._known: OrderedDict[bytes, tuple[float, Grant | None]] = OrderedDict()
        """Results of recent verifications, by a digest: a request may present a credential of any length."""
        self._open: dict[Credential, set[CredentialEnd]] = {}
        """Requests in progress, by credential."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch(), name="credentials")
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def verified(self, credential: Credential) -> Grant | None:
        """Return what a credential allows, if it is valid."""
        mark = _digest(credential)
        read, grant = self._known.get(mark, (-inf, None))
        if monotonic() - read < REMEMBERED:
            return grant
        grant = await self._verify(credential)
        self._known[mark] = (monotonic(), grant)
        self._known.move_to_end(mark)
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return grant

    def forget(self, credential: Credential) -> None:
        """Verify a credential again at its next use."""
        self._known.pop(_digest(credential), None)

    async def watched(
        self,
        credential: Credential,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve a request; when its credential ends, the client is disconnected."""
        with self._opened(credential) as ended:
            await app(scope, _until(ended, scope, receive, send), send)

    @contextmanager
    def _opened(self, credential: Credential) -> Iterator[CredentialEnd]:
        ended = CredentialEnd()
        waiting = self._open.setdefault(credential, set())
        waiting.add(ended)
        try:
            yield ended
        finally:
            waiting.discard(ended)
            if not waiting and self._open.get(credential) is waiting:
                del self._open[credential]

    async def _watch(self) -> None:
        """End the requests whose credential is no longer valid, without end."""
        while True:
            await asyncio.sleep(REMEMBERED)
            for credential in list(self._open):
                try:
                    is_valid = await self.verified(credential) is not None
                except Exception as error:  # the next look may succeed; without one, no credential would ever end
                    log.warning("a credential cannot be verified: %s", error)
                    continue
                for ended in () if is_valid else self._open.get(credential, ()):
                    ended.set()


def _digest(credential: Credential) -> bytes:
    return hashlib.sha256(f"{credential.kind} {credential.value}".encode(errors="replace")).digest()


class CredentialEnd:
    """End of the credential of one request; it interrupts the wait for the client.

    It has no tasks of its own: thousands of idle connections wait in this way.
    """

    __slots__ = ("_is_over", "_waiting")

    def __init__(self) -> None:
        self._is_over = False
        self._waiting: set[asyncio.Task[Any]] = set()

    def set(self) -> None:
        self._is_over = True
        for task in self._waiting:
            task.cancel()

    async def or_next(self, receive: Receive) -> Message | None:
        """Return the next message of the client; None if the credential ends before."""
        task = asyncio.current_task()
        if self._is_over or task is None:
            return None
        others = task.cancelling()
        self._waiting.add(task)
        try:
            return await receive()
        except asyncio.CancelledError:
            if self._is_interrupted(task, others):
                return None
            raise
        finally:
            self._waiting.discard(task)

    def _is_interrupted(self, task: asyncio.Task[Any], others: int) -> bool:
        """Return whether this end has cancelled a task, and nobody else has: then the task continues."""
        return self._is_over and task.uncancel() <= others


def _until(ended: CredentialEnd, scope: Scope, receive: Receive, send: Send) -> Receive:
    """Return a `receive` that reports a disconnected client when the credential has ended."""
    is_socket = scope["type"] == "websocket"

    async def receiving() -> Message:
        if (message := await ended.or_next(receive)) is not None:
            return message
        if is_socket:
            await send({"type": "websocket.close", "code": ENDED, "reason": "signed out, or the token has ended"})
            return {"type": "websocket.disconnect", "code": ENDED}
        return {"type": "http.disconnect"}

    return receiving
