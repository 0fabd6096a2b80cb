"""Answers in one piece, from servers that ignore the request to stream and reply with JSON.

Libraries of providers take such a reply for a broken connection. Here it is kept, and passed to the same library in
reply to the same request without streaming. The server is asked once.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2

_REPLY: ContextVar[WholeReply | None] = ContextVar("roost_unstreamed_reply", default=None)


@dataclass(slots=True)
class WholeReply:
    """Reply to one request, if it came in one piece."""

    body: bytes | None = None
    is_replayed: bool = False
    """True if the next request is answered with it."""

    def __enter__(self) -> WholeReply:
        _REPLY.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _REPLY.set(None)


class ReplyCapturingClient(httpx2.AsyncClient):
    """Client that captures replies in one piece while a `WholeReply` is entered."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        reply = _REPLY.get()
        if reply is not None and reply.is_replayed:
            json = {"Content-Type": "application/json"}
            return httpx2.Response(200, headers=json, content=reply.body or b"", request=request)
        response = await super().send(request, **options)
        if reply is not None and response.is_success and _is_json(response) and _asks_to_stream(request):
            reply.body = await response.aread()
            await response.aclose()
            raise httpx2.ReadError("the reply came in one piece", request=request)
        return response


def _is_json(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").partition(";")[0].strip().endswith("json")


def _asks_to_stream(request: httpx2.Request) -> bool:
    """Return whether a request asks for a stream: in the body (OpenAI, Anthropic) or in the URL (Google)."""
    in_body = request.content.replace(b" ", b"")
    return b'"stream":true' in in_body or "streamGenerateContent" in request.url.path
