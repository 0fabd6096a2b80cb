"""WebSocket `/rpc`: JSON-RPC 2.0 with batches, notifications, cancellation and subscriptions.

Requests of a connection start in order and end as they are done. Events of a subscription are sent one by one: the next
one is read when the client has taken the last, so that a slow client delays nobody and needs no memory.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from itertools import count
from time import monotonic
from typing import Any

from fastapi import FastAPI, WebSocket
from starlette.websockets import WebSocketDisconnect

from roost.api.auth import Identity
from roost.api.endpoints import Caller, Endpoint
from roost.api.limits.concurrency import ConcurrencyLimit
from roost.api.limits.rate_limits import RateLimit
from roost.api.routes.dependencies import caller_of
from roost.api.rpc import agent_control
from roost.api.rpc.methods import RpcMethods, as_rpc_error, of_endpoints, validated
from roost.api.security import USER
from roost.api.subscriptions import SubscribeParams, UnsubscribeParams, events
from roost.core.limits.limits import Limits
from roost.errors import Conflict, LimitReached, NotFound, RoostError
from roost.protocol.rpc import (
    CANCELLED,
    INVALID_PARAMS,
    RpcCall,
    RpcError,
    RpcRefusal,
    error_reply,
    notification,
    parse,
    reply,
)
from roost.service import AsyncAgentService

log = logging.getLogger("roost.api.rpc")

PATH = "/rpc"
IN_PROGRESS = 64
"""Messages of a connection that are handled at once; further ones are read when one is done."""
SUBSCRIPTIONS = 64
"""Most subscriptions of a connection."""
GRACE = 10.0
REFUSED, TRY_LATER = 1008, 1013
GONE = (WebSocketDisconnect, TimeoutError, RuntimeError)
"""Raised by connections that are closed, or whose client does not read."""


class RpcSockets:
    """Open connections of this process."""

    def __init__(
        self, service: AsyncAgentService, endpoints: Sequence[Endpoint], identity: Identity, limits: Limits
    ) -> None:
        self.service = service
        known = of_endpoints(endpoints)
        self.methods = RpcMethods(known | agent_control.methods(service, known))
        self.patience = limits.send_timeout + GRACE
        self.rates = RateLimit(monotonic, limits.requests_per_second, limits.request_burst)
        self._identity = identity
        self._places = ConcurrencyLimit("connections")

    async def serve(self, socket: WebSocket) -> None:
        """Serve one connection until the client leaves, or Roost closes."""
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


def add(app: FastAPI, sockets: RpcSockets) -> None:
    app.add_api_websocket_route(PATH, sockets.serve)


class _Connection:
    """One client: its requests in progress, and its subscriptions."""

    def __init__(self, sockets: RpcSockets, socket: WebSocket, caller: Caller) -> None:
        self._sockets = sockets
        self._socket = socket
        self._caller = caller
        self._sending = asyncio.Lock()
        self._places = asyncio.Semaphore(IN_PROGRESS)
        self._calls: dict[str, asyncio.Task[Any]] = {}
        self._subscriptions: dict[str, asyncio.Task[None]] = {}
        self._names = map("s{}".format, count(1))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            while (text := await self._received()) is not None:
                await self._places.acquire()
                tasks.create_task(self._handle(text), name="rpc: message")
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

    async def _handle(self, text: str) -> None:
        """Answer a message, then start the subscriptions that it has opened."""
        opened: list[asyncio.Event] = []
        try:
            entries, is_batch = parse(text)
            answers = await asyncio.gather(*(self._answer(entry, opened) for entry in entries))
            replies = [answer for answer in answers if answer is not None]
            if replies:
                await self._send(replies if is_batch else replies[0])
        except RpcError as error:
            await self._send(error_reply(None, error))
        finally:
            self._places.release()
            for start in opened:
                start.set()

    async def _answer(self, entry: RpcCall | RpcRefusal, opened: list[asyncio.Event]) -> dict[str, Any] | None:
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

    async def _result(self, call: RpcCall, opened: list[asyncio.Event]) -> Any:
        """Return the result of a request; raise RpcError."""
        try:
            self._check_rate()
            if call.method == "subscribe":
                return await self._subscribe(validated(SubscribeParams, call.params), opened)
            if call.method == "unsubscribe":
                return self._unsubscribe(validated(UnsubscribeParams, call.params).subscription)
            if call.method == "$/cancelRequest":
                return self._cancel(call.params)
            return await self._sockets.methods.call(self._caller, call.method, call.params)
        except RpcError:
            raise
        except Exception as error:
            raise as_rpc_error(error, is_operator=self._caller.is_operator) from error

    def _check_rate(self) -> None:
        if not self._caller.is_operator and not self._sockets.rates.admits(self._caller.user):
            raise LimitReached("too many requests: wait a moment and try again")

    def _cancel(self, params: dict[str, Any] | list[Any]) -> bool:
        """Cancel a request in progress; return whether there is one. What it has done already stays done."""
        if not isinstance(params, dict) or "id" not in params:
            raise RpcError(INVALID_PARAMS, "id: must be given")
        task = self._calls.get(json.dumps(params["id"]))
        return task is not None and task.cancel()

    # --- subscriptions ---------------------------------------------------------------------------

    async def _subscribe(self, params: SubscribeParams, opened: list[asyncio.Event]) -> dict[str, str]:
        name = params.subscription or next(self._names)
        if name in self._subscriptions:
            raise Conflict(f"there is a subscription {name!r} already: choose another name, or unsubscribe first")
        if len(self._subscriptions) >= SUBSCRIPTIONS:
            raise LimitReached(f"a connection has at most {SUBSCRIPTIONS} subscriptions: end one, or open another")
        found = await events(self._sockets.service, self._caller, params)
        start = asyncio.Event()
        self._subscriptions[name] = self._tasks.create_task(
            self._notify(name, params.topic, found, start), name=f"rpc: subscription to {params.topic}"
        )
        opened.append(start)
        return {"subscription": name}

    def _unsubscribe(self, name: str) -> bool:
        task = self._subscriptions.pop(name, None)
        if task is None:
            raise NotFound(f"there is no subscription {name!r} on this connection")
        return task.cancel()

    async def _notify(self, name: str, topic: str, found: Any, start: asyncio.Event) -> None:
        """Send the events of a subscription after the reply that has opened it, and at its end why it has ended."""
        end: dict[str, Any] = {"subscription": name}
        try:
            await start.wait()
            async for event in found:
                params = {"subscription": name, "topic": topic, "cursor": event.cursor, "event": event.content}
                await self._send(notification("event", params))
        except GONE:
            raise
        except Exception as error:
            end["error"] = as_rpc_error(error, is_operator=self._caller.is_operator).as_json()
        finally:
            if isinstance(found, AsyncGenerator):
                await found.aclose()
        self._subscriptions.pop(name, None)
        await self._send(notification("ended", end))

    async def _send(self, content: Any) -> None:
        """Send one message; raise TimeoutError if the client does not read."""
        text = json.dumps(content, separators=(",", ":"))
        async with self._sending, asyncio.timeout(self._sockets.patience):
            await self._socket.send_text(text)


def _outcome(call: RpcCall, task: asyncio.Task[Any]) -> dict[str, Any]:
    if task.cancelled():
        return error_reply(call.id, RpcError(CANCELLED, "the request was cancelled", {"code": "cancelled"}))
    error = task.exception()
    if error is None:
        return reply(call.id, task.result())
    assert isinstance(error, RpcError)
    return error_reply(call.id, error)
