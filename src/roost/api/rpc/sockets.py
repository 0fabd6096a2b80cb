"""WebSocket `/rpc`: JSON-RPC 2.0 with batches, notifications, cancellation and subscriptions.

Requests of a connection start in order and end as they are done. Events of a subscription are sent one by one: the next
one is read when the client has taken the last, so that a slow client delays nobody and needs no memory.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from time import monotonic
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.utils import ClientDisconnected
from websockets.frames import Frame, Opcode

from roost.api import subscriptions
from roost.api.auth import Identity
from roost.api.endpoints import Caller, Endpoint, current_user
from roost.api.error_responses import HttpError, reply_to
from roost.api.limits.bodies import LARGE, MOST_VALUES, check_message
from roost.api.limits.concurrency import ConcurrencyLimit
from roost.api.limits.connections import FRAMES
from roost.api.limits.rate_limits import RateLimit
from roost.api.limits.requests import CHARGED
from roost.api.routes.dependencies import caller_of
from roost.api.rpc import agent_control
from roost.api.rpc.methods import RpcMethods, as_rpc_error, of_endpoints, validated
from roost.api.security import USER
from roost.api.subscriptions import SubscribeParams, SubscriptionEvent, Subscriptions, UnsubscribeParams
from roost.core.limits.limits import Limits
from roost.errors import Conflict, LimitReached, NotFound, RoostError
from roost.protocol.errors import TOO_FAST
from roost.protocol.rpc import (
    CANCELLED,
    INVALID_PARAMS,
    PARSE_ERROR,
    RpcCall,
    RpcError,
    RpcRefusal,
    error_reply,
    notification,
    parse,
    reply,
)
from roost.protocol.values import shown
from roost.service import AsyncAgentService

log = logging.getLogger("roost.api.rpc")

PATH = "/rpc"
IN_PROGRESS = 64
"""Messages of a connection that are handled at once; further ones are read when one is done."""
SMALL = 4 * 1024
"""Bytes of a message that is parsed even if the user has sent too many: its requests are refused by their ids."""
SUBSCRIPTIONS = 64
"""Most subscriptions of a connection."""
REFUSED, TRY_LATER = 1008, 1013
GONE = (WebSocketDisconnect, ClientDisconnected, RuntimeError)
"""Raised by connections that are closed, or aborted because their client does not read."""
Message = tuple[list[RpcCall | RpcRefusal], bool]
"""Requests of a message, and whether it is a batch."""


class RpcSockets:
    """Open connections of this process."""

    def __init__(
        self,
        service: AsyncAgentService,
        endpoints: Sequence[Endpoint],
        subscriptions: Subscriptions,
        identity: Identity,
        limits: Limits,
    ) -> None:
        self.service = service
        self.subscriptions = subscriptions
        known = of_endpoints(endpoints)
        self.methods = RpcMethods(known | agent_control.methods(service, known))
        self.rates = RateLimit(monotonic, limits.requests_per_second, limits.request_burst, service.count_nodes)
        self._identity = identity
        self._places = ConcurrencyLimit("connections", limits)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection until the client leaves, or Roost closes."""
        socket = WebSocket(scope, receive, send)
        user: str | None = socket.scope.get(USER)
        if user is None:
            return await socket.close(REFUSED)
        caller = caller_of(socket, user, self._identity)
        try:
            self._places.take(user, caller.address)
        except RoostError:
            return await socket.close(TRY_LATER)
        try:
            await socket.accept()
            await _Connection(self, socket, caller).run()
        except* GONE:
            log.debug("client disconnected", extra={"user": user, "address": caller.address})
        finally:
            self._places.leave(user, caller.address)


class RpcMiddleware:
    """Passes connections to `/rpc` on before any router: an idle one would hold their coroutines in RAM."""

    def __init__(self, app: ASGIApp, sockets: RpcSockets) -> None:
        self._app = app
        self._sockets = sockets

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] not in ("http", "websocket") or scope["path"] != PATH:
            return self._app(scope, receive, send)
        return (self._sockets.serve if scope["type"] == "websocket" else _no_websocket())(scope, receive, send)


def _no_websocket() -> Response:
    message = f"{PATH} is a WebSocket: connect to it with a WebSocket client, or use the HTTP API under /api/v1"
    return reply_to(HttpError(426, "upgrade_required", message, {"Upgrade": "websocket", "Connection": "Upgrade"}))


class _Connection:
    """One client: its requests in progress, and its subscriptions."""

    def __init__(self, sockets: RpcSockets, socket: WebSocket, caller: Caller) -> None:
        self._sockets = sockets
        self._socket = socket
        self._send_frame: Callable[[bytes], Awaitable[None]] = socket.scope["extensions"][FRAMES]
        self._caller = caller
        self._places = asyncio.Semaphore(IN_PROGRESS)
        self._calls: dict[str, asyncio.Task[Any]] = {}
        self._subscriptions: dict[str, asyncio.Task[None]] = {}
        self._opening: set[str] = set()
        """Names of subscriptions whose first read is in progress."""
        self._names = map("s{}".format, count(1))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            while (text := await self._received()) is not None:
                await self._places.acquire()
                tasks.create_task(self._handle(await self._parsed(text)), name="rpc: message")
            for task in (*self._calls.values(), *self._subscriptions.values()):
                task.cancel()

    async def _received(self) -> str | None:
        """Return the next message; None when the client has left."""
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        text: str | None = message.get("text")
        return text if text is not None else bytes(message.get("bytes") or b"").decode(errors="replace")

    # --- requests --------------------------------------------------------------------------------

    async def _parsed(self, text: str) -> Message | RpcError:
        """Return the requests of a message, or its error. It counts as several requests if it is large.

        Parsing costs more than a request: if the user has none left, it waits, and so does the connection.
        """
        rates, user = self._sockets.rates, self._caller.user
        size, is_limited = len(text), not self._caller.is_operator
        while is_limited and size >= SMALL and (delay := rates.delay(user)):  # noqa: ASYNC110
            await asyncio.sleep(delay)  # other connections of the user may take what there is by then
        if is_limited and size >= CHARGED:
            rates.charge(user, size // CHARGED)
        try:
            return await asyncio.to_thread(_checked, text) if size >= LARGE else _checked(text)
        except RpcError as error:
            return error if not is_limited or rates.admits(user) else _as_too_fast()

    async def _handle(self, message: Message | RpcError) -> None:
        """Answer a message, then start the subscriptions that it has opened."""
        opened: list[asyncio.Future[None]] = []
        try:
            if isinstance(message, RpcError):
                raise message
            entries, is_batch = message
            answers = await asyncio.gather(*(self._answer(entry, opened) for entry in entries))
            replies = [answer for answer in answers if answer is not None]
            if replies:
                await self._send(replies if is_batch else replies[0])
        except RpcError as error:
            await self._send(error_reply(None, error))
        finally:
            self._places.release()
            for start in opened:
                if not start.done():  # else it was unsubscribed before
                    start.set_result(None)

    async def _answer(self, entry: RpcCall | RpcRefusal, opened: list[asyncio.Future[None]]) -> dict[str, Any] | None:
        if isinstance(entry, RpcRefusal):
            return error_reply(entry.id, entry.error)
        key = json.dumps(entry.id)
        task = asyncio.create_task(self._result(entry, opened), name=f"rpc: {entry.method:.80}")
        self._calls[key] = task
        try:
            await asyncio.wait([task])
            answer = _outcome(entry, task)
        finally:
            task.cancel()
            if self._calls.get(key) is task:
                del self._calls[key]
        return None if entry.is_notification else answer

    async def _result(self, call: RpcCall, opened: list[asyncio.Future[None]]) -> Any:
        """Return the result of a request; raise RpcError."""
        try:
            self._check_rate()
            if call.method == "subscribe":
                return await self._subscribe(validated(SubscribeParams, call.params), opened)
            if call.method == "unsubscribe":
                return self._unsubscribe(validated(UnsubscribeParams, call.params).subscription)
            if call.method == "$/cancelRequest":
                return self._cancel(call.params)
            if call.method == "me":
                return shown(await current_user(self._sockets.service, self._caller))
            return await self._sockets.methods.call(self._caller, call.method, call.params)
        except RpcError:
            raise
        except Exception as error:
            raise as_rpc_error(error, is_operator=self._caller.is_operator) from error

    def _check_rate(self) -> None:
        if not self._caller.is_operator and not self._sockets.rates.admits(self._caller.user):
            raise LimitReached(TOO_FAST)

    def _cancel(self, params: dict[str, Any] | list[Any]) -> bool:
        """Cancel a request in progress; return whether there is one. What it has done already stays done."""
        if not isinstance(params, dict) or "id" not in params:
            raise RpcError(INVALID_PARAMS, "id: must be given")
        task = self._calls.get(json.dumps(params["id"]))
        return task is not None and task.cancel()

    # --- subscriptions ---------------------------------------------------------------------------

    async def _subscribe(self, params: SubscribeParams, opened: list[asyncio.Future[None]]) -> dict[str, str]:
        name = params.subscription or next(self._names)
        with self._reserved(name):
            found = await self._sockets.subscriptions.events(self._caller, params)
        start = asyncio.get_running_loop().create_future()
        self._subscriptions[name] = self._tasks.create_task(
            self._notify(name, params.topic, found, start), name=f"rpc: subscription to {params.topic}"
        )
        opened.append(start)
        return {"subscription": name}

    @contextmanager
    def _reserved(self, name: str) -> Iterator[None]:
        """Reserve a name while its subscription is opened. Raise Conflict if it is taken, LimitReached at the limit."""
        taken = self._subscriptions.keys() | self._opening
        if name in taken:
            raise Conflict(f"there is a subscription {name!r} already: choose another name, or unsubscribe first")
        if len(taken) >= SUBSCRIPTIONS:
            raise LimitReached(f"a connection has at most {SUBSCRIPTIONS} subscriptions: end one, or open another")
        self._opening.add(name)
        try:
            yield
        finally:
            self._opening.discard(name)

    def _unsubscribe(self, name: str) -> bool:
        task = self._subscriptions.pop(name, None)
        if task is None:
            raise NotFound(f"there is no subscription {name!r} on this connection")
        return task.cancel()

    async def _notify(self, name: str, topic: str, found: Any, start: asyncio.Future[None]) -> None:
        """Send the events of a subscription after the reply that has opened it, and at its end why it has ended."""
        end: dict[str, Any] = {"subscription": name}
        head = _event_head(name, topic)
        try:
            await start
            async for event in found:
                await self._send_event(name, event, event.encoded(_frame, head))
        except GONE:
            raise
        except subscriptions.CutOff:
            end = {}
        except Exception as error:
            end["error"] = as_rpc_error(error, is_operator=self._caller.is_operator).as_json()
        finally:
            if isinstance(found, AsyncGenerator):
                await found.aclose()
        self._subscriptions.pop(name, None)
        if end:
            await self._send(notification("ended", end))

    async def _send_event(self, name: str, event: SubscriptionEvent, frame: bytes) -> None:
        """Send an event when the client has read the earlier ones; then tell it if that has taken long."""
        start = monotonic()
        await self._send_frame(frame)
        if (waited := monotonic() - start) > subscriptions.DELAYED:
            params = {"subscription": name, "cursor": event.cursor, "seconds": round(waited, 1)}
            await self._send(notification("delayed", params))

    async def _send(self, content: Any) -> None:
        """Send one message; wait until the client has read the earlier ones. If it does not, it is disconnected."""
        await self._socket.send_text(json.dumps(content, separators=(",", ":")))


def _checked(text: str) -> Message:
    """Return the requests of a message. Raise RpcError if it has none, or an unreasonable shape."""
    try:
        check_message(text.encode())
    except HttpError:
        raise RpcError(
            PARSE_ERROR, f"the message must be JSON, not too deep, with up to {MOST_VALUES:,} values"
        ) from None
    return parse(text)


def _as_too_fast() -> RpcError:
    return as_rpc_error(LimitReached(TOO_FAST), is_operator=False)


def _event_head(name: str, topic: str) -> str:
    """Return the first part of the notifications of a subscription, as JSON; the cursor and the event follow."""
    head = json.dumps(notification("event", {"subscription": name, "topic": topic}), separators=(",", ":"))
    return head.removesuffix("}}") + ","


def _frame(event: SubscriptionEvent, head: str) -> bytes:
    """Return the frame of a notification."""
    text = f'{head}"cursor":{json.dumps(event.cursor)},"event":{event.content}}}}}'
    return Frame(Opcode.TEXT, text.encode()).serialize(mask=False)


def _outcome(call: RpcCall, task: asyncio.Task[Any]) -> dict[str, Any]:
    if task.cancelled():
        return error_reply(call.id, RpcError(CANCELLED, "the request was cancelled", {"code": "cancelled"}))
    error = task.exception()
    if error is None:
        return reply(call.id, task.result())
    assert isinstance(error, RpcError)
    return error_reply(call.id, error)
