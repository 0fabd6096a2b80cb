"""API tokens of requests: verified in the store, remembered for a moment, and watched while a connection is open."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from math import inf
from time import monotonic

from starlette.types import Message, Receive, Scope, Send

from roost.core.accounts.tokens import PREFIX, ApiToken

log = logging.getLogger("roost.api.tokens")

REMEMBERED = 0.5
"""Seconds for which a verified token is not read again: a revoked one is refused no later than this."""
MOST_REMEMBERED = 10_000
REVOKED = 1008
"""Code that closes a WebSocket whose token was revoked."""
Authenticate = Callable[[str], Awaitable[ApiToken | None]]


class TokenVerifier:
    """Verifies the tokens of requests; ends requests and connections whose token was revoked or has expired."""

    def __init__(self, authenticate: Authenticate) -> None:
        self._authenticate = authenticate
        self._known: OrderedDict[str, tuple[float, ApiToken | None]] = OrderedDict()
        self._open: dict[str, set[asyncio.Event]] = {}
        """Requests in progress, by secret."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch(), name="tokens")
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def verified(self, secret: str) -> ApiToken | None:
        """Return the token of a secret, if it is valid."""
        if not secret.startswith(PREFIX) or len(secret) > 200:
            return None
        read, token = self._known.get(secret, (-inf, None))
        if monotonic() - read < REMEMBERED:
            return token
        token = await self._authenticate(secret)
        self._known[secret] = (monotonic(), token)
        self._known.move_to_end(secret)
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return token

    async def watched(
        self,
        secret: str,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve a request; when its token ends, the client is disconnected."""
        with self._opened(secret) as ended:
            await app(scope, _until(ended, scope, receive, send), send)

    @contextmanager
    def _opened(self, secret: str) -> Iterator[asyncio.Event]:
        ended = asyncio.Event()
        waiting = self._open.setdefault(secret, set())
        waiting.add(ended)
        try:
            yield ended
        finally:
            waiting.discard(ended)
            if not waiting and self._open.get(secret) is waiting:
                del self._open[secret]

    async def _watch(self) -> None:
        """End the requests whose token is no longer valid, without end."""
        while True:
            await asyncio.sleep(REMEMBERED)
            for secret in list(self._open):
                try:
                    is_valid = await self.verified(secret) is not None
                except Exception as error:  # the next look may succeed; without one, no token would ever end
                    log.warning("tokens cannot be verified: %s", error)
                    break
                for ended in () if is_valid else self._open.get(secret, ()):
                    ended.set()


def _until(ended: asyncio.Event, scope: Scope, receive: Receive, send: Send) -> Receive:
    """Return a `receive` that reports a disconnected client when the token has ended."""
    is_socket = scope["type"] == "websocket"

    async def receiving() -> Message:
        getting = asyncio.ensure_future(receive())
        ending = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait((getting, ending), return_when=asyncio.FIRST_COMPLETED)
            if getting.done():
                return getting.result()
        finally:
            for task in (getting, ending):
                task.cancel()
        if is_socket:
            await send({"type": "websocket.close", "code": REVOKED, "reason": "the token was revoked or has expired"})
            return {"type": "websocket.disconnect", "code": REVOKED}
        return {"type": "http.disconnect"}

    return receiving
