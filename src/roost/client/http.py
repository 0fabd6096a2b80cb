"""Requests to one server: bounded retries, bounded responses, and Roost's own errors."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2

from roost.client.network import TIMEOUT, Network
from roost.errors import Forbidden, Invalid, NotFound, RoostError, Unavailable
from roost.protocol.errors import USER_HEADER, error_from

TRIES = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
MOST_BYTES = 256 * 1024 * 1024


class HttpClient:
    """Client of one server. Safe for threads with a BlockingNetwork; with an AsyncNetwork used on one loop."""

    def __init__(self, network: Callable[..., Network], url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"the URL {url!r:.80} is not the URL of a server: use http://host:port")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._base = quote(parts.path.rstrip("/"), safe="/%") + "/api/v1"
        self._network = network(secure=parts.scheme == "https")
        self._token = token
        self._closed = False

    async def ask(
        self,
        method: str,
        path: str,
        user_id: str | None,
        body: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = True,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """Send a request and return its result. A request that is not `repeatable` is retried only if it cannot have
        reached the server."""
        text = None if body is None else json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass")
        request = self._request(method, path + encoded(query), text, self._headers(user_id))
        return self._json((await self._tried(request, repeatable=repeatable))[1])

    async def upload(self, path: str, user_id: str, data: bytes, query: Mapping[str, Any]) -> Any:
        """Send a file, and return the result."""
        headers = self._headers(user_id) | {"Content-Type": "application/octet-stream"}
        request = self._request("POST", path + encoded(query), data, headers)
        return self._json((await self._tried(request, repeatable=True))[1])

    async def download(self, path: str, user_id: str) -> tuple[Mapping[str, str], bytes]:
        """Return a file, after the headers of the response."""
        headers = self._headers(user_id) | {"Accept": "*/*"}
        return await self._tried(self._request("GET", path, None, headers), repeatable=True)

    async def _tried(self, request: httpx2.Request, *, repeatable: bool) -> tuple[Mapping[str, str], bytes]:
        """Send a request, again if it is safe; return headers and body of the response. Raise the error it holds."""
        for number in range(1, TRIES + 1):
            try:
                return await self._once(request, fresh=not repeatable)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                if number == TRIES:
                    raise self._unreachable() from error
            except httpx2.TransportError as error:
                if number == TRIES or not repeatable:
                    raise self._unreachable() from error
            except NotFound:
                if request.method == "DELETE" and number > 1:
                    return {}, b""  # an earlier attempt succeeded, and its response was lost
                raise
            await self.pause(number)
        raise self._unreachable()

    async def events(
        self, path: str, user_id: str, headers: Mapping[str, str]
    ) -> AsyncGenerator[httpx2.ServerSentEvent]:
        """Yield the events of a stream until the connection ends."""
        response = await self._send(
            self._request("GET", path, None, {**self._headers(user_id), "Accept": "text/event-stream", **headers}),
            fresh=True,
        )
        try:
            if response.status_code != 200:
                raise error_in(response.status_code, await self._whole(response))
            async for event in self._network.events(response):
                yield event
        finally:
            await self._network.end(response)

    async def pause(self, number: int) -> None:
        """Wait before the next attempt, with exponential backoff and jitter."""
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (number - 1))
        await self._network.sleep(random.uniform(0.5, 1.0) * longest)

    async def close(self) -> None:
        self._closed = True
        await self._network.close()

    async def _once(self, request: httpx2.Request, *, fresh: bool) -> tuple[Mapping[str, str], bytes]:
        # The server may have closed an idle connection, so requests that are not repeatable get a new one.
        response = await self._send(request, fresh=fresh)
        try:
            data = await self._whole(response)
        finally:
            await self._network.end(response)
        if response.status_code >= 400:
            raise error_in(response.status_code, data)
        return response.headers, data

    def _json(self, data: bytes) -> Any:
        try:
            return json.loads(data) if data else None
        except (ValueError, RecursionError) as error:
            raise Unavailable(f"the server at {self.url} is not a Roost: check the URL") from error

    async def _send(self, request: httpx2.Request, *, fresh: bool) -> httpx2.Response:
        if self._closed:
            raise Unavailable("this client is closed")
        return await self._network.send(request, fresh=fresh)

    async def _whole(self, response: httpx2.Response) -> bytes:
        """Return the whole body; raise TransportError if it is incomplete, also if the head was cut off."""
        ends = response.headers.keys() & {"content-length", "transfer-encoding"} or response.status_code in (204, 304)
        if not ends:
            raise httpx2.RemoteProtocolError("the response has no end")
        _bounded(int(response.headers.get("content-length", 0)))
        pieces, size = list[bytes](), 0
        async for piece in self._network.pieces(response):
            pieces.append(piece)
            size = _bounded(size + len(piece))
        return b"".join(pieces)

    def _request(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> httpx2.Request:
        # `target` is sent as it is: a path with `..` in an id must not be shortened.
        extensions = {"target": f"{self._base}{target}".encode("ascii"), "timeout": TIMEOUT}
        return httpx2.Request(method, self._server, headers=headers, content=body, extensions=extensions)

    def _headers(self, user_id: str | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._token:
            headers["Authorization"] = f"Bearer {sendable(self._token, 'the token')}"
        if user_id is not None:
            headers[USER_HEADER] = quote(str(user_id), safe="")
        return headers

    def _unreachable(self) -> Unavailable:
        return Unavailable(f"cannot reach the server at {self.url}: check that it runs, and try again")


def _bounded(size: int) -> int:
    if size > MOST_BYTES:
        raise Unavailable(f"the response is too large: {size:,} bytes")
    return size


def sendable(text: str, what: str) -> str:
    """Return the text if a header can hold it; otherwise raise Invalid."""
    if not (text.isascii() and text.isprintable()):
        raise Invalid(f"{what} has characters that cannot be sent: check that it was copied completely and unchanged")
    return text


def encoded(query: Mapping[str, Any] | None) -> str:
    pairs = [f"{name}={quote(str(value), safe='')}" for name, value in (query or {}).items() if value is not None]
    return "?" + "&".join(pairs) if pairs else ""


def error_in(status: int, data: bytes) -> RoostError:
    """Return the error of a response."""
    try:
        problem = json.loads(data)
        code, message = str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return Unavailable(f"the server returned status {status}: try again, or see its log")
    if status in (401, 403):
        return Forbidden(message)
    if status in (400, 413, 422):
        return Invalid(message)
    return error_from(code, message)
