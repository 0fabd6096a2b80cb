"""Chat completions: as one response, or as a stream of chunks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from roost.api.error_responses import reply_to
from roost.api.limits.concurrency import ConcurrencyLimit
from roost.api.openai import messages, tools
from roost.api.openai.answers import LOOK, ChatAnswer
from roost.api.openai.models import ChatModelId, ChatModels
from roost.api.openai.requests import TALK_FIELD, TALK_HEADER, ChatRequest
from roost.api.openai.talks import ChatTalks, PostedMessage
from roost.api.routes.dependencies import address_of, while_connected
from roost.api.routes.event_stream import PING
from roost.core.limits.limits import Limits
from roost.core.limits.usage import Usage
from roost.core.talks.side_channels import ToolNote
from roost.service import AsyncAgentService

DONE = b"data: [DONE]\n\n"
WAITING = b": waiting\n\n"
"""Comment in a stream without text, for proxies that close silent connections. Clients ignore it."""


class Completions:
    """Completions that this process is writing, with a concurrency limit."""

    def __init__(self, service: AsyncAgentService, limits: Limits) -> None:
        self._service = service
        self._talks = ChatTalks(service)
        self._models = ChatModels(service)
        self._places = ConcurrencyLimit("completions", limits)

    async def complete(self, connection: Request, user: str, request: ChatRequest, mark: str | None) -> Response:
        """Return the whole answer. If the client disconnects, the answer in a temporary talk is stopped."""
        with self._places.taken(user, address_of(connection)):
            posted = await self._post(user, request, mark)  # not cancelled: a talk must be known to be deleted
            try:
                response: Response = await while_connected(connection, self._whole(posted, request))
            finally:
                await self._end(posted)
        return response

    async def _whole(self, posted: PostedMessage, request: ChatRequest) -> Response:
        answer, text, thoughts = ChatAnswer(self._service, posted, tools.names(request)), "", ""
        async for piece in answer.pieces():
            text, thoughts = text + piece.text, thoughts + piece.thoughts
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if answer.calls:
            message["content"] = text or None
            message["tool_calls"] = [_call(call) for call in answer.calls]
        if thoughts:
            message["reasoning_content"] = thoughts
        choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason, "logprobs": None}
        body = _head(posted, request, "chat.completion") | {"choices": [choice], "usage": _usage(answer.usage)}
        return JSONResponse(body, headers=_headers(posted))

    async def stream(self, connection: Request, user: str, request: ChatRequest, mark: str | None) -> Response:
        """Return the answer as server-sent events; raise errors up to the new message before anything is sent."""
        address = address_of(connection)
        self._places.take(user, address)
        try:
            posted = await self._post(user, request, mark)
        except BaseException:
            self._places.leave(user, address)
            raise

        async def over() -> None:
            self._places.leave(user, address)
            await self._end(posted)

        return _ChunkResponse(self._events(posted, request), over, _headers(posted))

    async def _post(self, user: str, request: ChatRequest, mark: str | None) -> PostedMessage:
        request.check()
        model = ChatModelId.parse(request.model, user)
        offered = tools.options(request)
        if offered:
            self._models.check_tools(model)
        conversation = messages.read(request.messages)
        given = {"temperature": request.temperature, "instructions": conversation.instructions}
        options = {name: value for name, value in given.items() if value is not None} | offered
        return await self._talks.post(user, model, conversation, options, request.talk(mark))

    async def _end(self, posted: PostedMessage) -> None:
        if posted.is_temporary:
            await self._talks.delete(posted.user, posted.talk_id)

    async def _events(self, posted: PostedMessage, request: ChatRequest) -> AsyncIterator[bytes]:
        head = _head(posted, request, "chat.completion.chunk") | ({"usage": None} if request.includes_usage else {})
        try:
            yield _event(head | _choice({"role": "assistant", "content": ""}))
            answer, silence = ChatAnswer(self._service, posted, tools.names(request)), 0.0
            async for piece in answer.pieces():
                silence = 0.0 if piece.has_text else silence + LOOK
                if silence >= PING:
                    silence = 0.0
                    yield WAITING
                if piece.thoughts:
                    yield _event(head | _choice({"reasoning_content": piece.thoughts}))
                if piece.text:
                    yield _event(head | _choice({"content": piece.text}))
            if answer.calls:
                calls = [{"index": at} | _call(call) for at, call in enumerate(answer.calls)]
                yield _event(head | _choice({"tool_calls": calls}))
            yield _event(head | _choice({}, answer.finish_reason))
            if request.includes_usage:
                yield _event(head | {"choices": [], "usage": _usage(answer.usage)})
            last = DONE
        except Exception as error:
            last = _event(reply_to(error).for_openai)  # the status is already sent
        await self._end(posted)  # a client that has read the end finds no temporary talk
        yield last


class _ChunkResponse(StreamingResponse):
    """Stream that awaits `over` at its end, also if the client disconnects before the first event.

    Plainer than that of talks, to be faster: a client that does not read is disconnected by the connection registry.
    """

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncIterator[bytes], over: Callable[[], Awaitable[None]], headers: dict[str, str]
    ) -> None:
        super().__init__(events, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **headers})
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._over()


def _headers(posted: PostedMessage) -> dict[str, str]:
    return {} if posted.is_temporary else {TALK_HEADER: posted.talk_id}


def _head(posted: PostedMessage, request: ChatRequest, kind: str) -> dict[str, Any]:
    head = {
        "id": f"chatcmpl-{posted.talk_id.removeprefix('talk_')}-{posted.seq}",
        "object": kind,
        "created": int(datetime.now(UTC).timestamp()),
        "model": request.model,
    }
    return head if posted.is_temporary else head | {TALK_FIELD: posted.talk_id}


def _choice(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}]}


def _call(call: ToolNote) -> dict[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.call_id, "type": "function", "function": {"name": call.tool, "arguments": arguments}}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.tokens,
    }


def _event(content: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % json.dumps(content, separators=(",", ":")).encode()
