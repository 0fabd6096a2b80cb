"""Upload and download of files in messages, as raw bytes."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from roost.api.error_responses import HttpError
from roost.api.limits.requests import int_or_zero
from roost.api.routes.dependencies import TalkReader, TalkWriter
from roost.core.limits.limits import Limits
from roost.core.talks.attachments import Attachment, check_size
from roost.errors import Invalid
from roost.protocol.values import wired
from roost.service import AsyncAgentService

POLICY = "default-src 'none'; sandbox"
"""Content security policy of files: nothing in them runs or loads anything."""
CACHE = "private, max-age=3600"
_CONTENT = {"schema": {"type": "string", "format": "binary"}}


def add(api: APIRouter, service: AsyncAgentService, limits: Limits) -> None:
    @api.post(
        "/attachments",
        status_code=201,
        response_model=wired(Attachment),
        openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": _CONTENT}}},
    )
    async def add_attachment(request: Request, user: TalkWriter, name: Annotated[str, Query()]) -> Any:
        """Upload a file, which is the body, for a message."""
        try:
            data = await _body(request, limits.attachment_bytes)
        except ClientDisconnect:
            return Response(status_code=400)  # the client is gone
        return await service.add_attachment(user, name, data)

    @api.get(
        "/attachments/{attachment_id}",
        response_class=StreamingResponse,
        responses={200: {"content": {"*/*": _CONTENT}}},
    )
    async def get_attachment(
        user: TalkReader, attachment_id: str, if_none_match: Annotated[str | None, Header()] = None
    ) -> Response:
        """Return the bytes of a file; images may be shown by a browser, everything else is saved."""
        found, pieces = await service.roost.talks.open_attachment(user, attachment_id)
        headers = _headers(found)
        if if_none_match == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        length = {"Content-Length": str(found.size)}
        return StreamingResponse(pieces, headers=headers | length, media_type=found.media_type)


async def _body(request: Request, most: int) -> bytes:
    """Receive a body; raise 413 as soon as it is too large."""
    try:
        check_size(int_or_zero(request.headers.get("content-length")), most)
        received = bytearray()
        async for chunk in request.stream():
            received += chunk
            check_size(len(received), most)
    except Invalid as error:
        raise HttpError(413, "too_large", str(error)) from None
    return bytes(received)


def _headers(attachment: Attachment) -> dict[str, str]:
    place = "inline" if attachment.is_image else "attachment"
    return {
        "Content-Disposition": f"{place}; filename*=UTF-8''{quote(attachment.name, safe='')}",
        "Content-Security-Policy": POLICY,
        "Cache-Control": CACHE,
        "Vary": "Cookie, Authorization",
        "ETag": f'"{attachment.sha256}"',
    }
