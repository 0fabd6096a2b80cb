"""Small GET requests with a deadline, a size limit and no redirects, whatever the server does."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage, HTTPResponse
from typing import IO, Never
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

LARGEST = 4 * 1024 * 1024
"""Bytes of a reply."""
PIECE = 64 * 1024


class ReplyRefused(Exception):
    """Reply with an error status. The body is not kept: it may repeat the key."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP status {status}")
        self.status = status


class NoReply(Exception):
    """No server, no reply in time, or a reply that is not JSON."""


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would send the key to another host."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Never:
        fp.close()
        raise ReplyRefused(code)


def get_json(url: str, headers: Mapping[str, str], *, seconds: float, is_local: bool = False) -> object:
    """Return the JSON at a URL; raise ReplyRefused or NoReply. `is_local`: never through a proxy."""
    until = time.monotonic() + seconds
    opener = build_opener(_NoRedirects, *([ProxyHandler({})] if is_local else []))
    try:
        with opener.open(Request(url, headers={"User-Agent": "roost", **headers}), timeout=seconds) as reply:
            return json.loads(_body(reply, until))
    except HTTPError as error:
        error.close()
        raise ReplyRefused(error.code) from None
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise NoReply(type(error).__name__) from None


def _body(reply: HTTPResponse, until: float) -> bytes:
    found = bytearray()
    while piece := reply.read1(PIECE):
        found += piece
        if len(found) > LARGEST or time.monotonic() > until:
            raise NoReply("the reply is too long")
    return bytes(found)
