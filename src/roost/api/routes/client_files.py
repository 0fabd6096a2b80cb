"""The JavaScript client and its types under /client, for pages of this server and for downloads."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.responses import Response

FOLDER = Path(__file__).resolve().parents[2] / "client" / "javascript"
MEDIA_TYPES = {"roost.mjs": "text/javascript", "roost.d.mts": "text/plain"}


def add(app: FastAPI) -> None:
    """Add the files; they are no part of the API, and need no sign-in."""
    for name, media_type in MEDIA_TYPES.items():
        _add(app, name, media_type)


def _add(app: FastAPI, name: str, media_type: str) -> None:
    data = (FOLDER / name).read_bytes()
    tag = f'"{sha256(data).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    @app.get(f"/client/{name}", include_in_schema=False)
    def file(request: Request) -> Response:
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=media_type, headers=headers)
