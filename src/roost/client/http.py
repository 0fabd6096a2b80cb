"""Requests to one server: retries while it is away, bounded responses, and Roost's own errors."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

import httpx2

from roost.client.network import READ_TIMEOUT, TIMEOUT, Network, pinned, plain, trusted
from roost.client.outages import PATIENCE, Outage, ServerAway, raised_for
from roost.core.values import checks
from roost.errors import Invalid, LimitReached, NotFound, RoostError, Unavailable
from roost.protocol.errors import TOO_FAST, USER_HEADER

MOST_BYTES = 256 * 1024 * 1024
LONGEST_BODY = 300.0
"""Seconds in which a response must arrive after its head."""


class HttpClient:
    """Client of one server. Safe for threads with a BlockingNetwork; with an AsyncNetwork used on one loop."""

    def __init__(
        self,
        network: Callable[..., Network],
        url: str,
        token: str | None,
        *,
        ca_file: str | None = None,
        certificate: str | None = None,
        patience: float | None = None,
    ) -> None:
        parts = _parsed(url)
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._base = quote(parts.path.rstrip("/"), safe="/%") + "/api/v1"
        self._patience = PATIENCE if patience is None else checks.seconds(patience, "the patience")
        known = pinned(certificate) if certificate else trusted(ca_file) if parts.scheme == "https" else plain()
        self._network = network(known)
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
        within: float = 0.0,
    ) -> Any:
        """Send a request and return its result. A request that is not `repeatable` is retried only if it cannot have
        reached the server. `within`: seconds that it may take longer than others."""
        text = None if body is None else json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass")
        request = self._request(method, path + encoded(query), text, self._headers(user_id), within)
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
        outage, is_lost = self.outage(), False
        while True:
            try:
                return await self._once(request, fresh=not repeatable)
            except httpx2.TransportError as error:
                is_sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                if (is_sent and not repeatable) or self.is_final(error) or not await outage.pause():
                    raise self.unreachable(error) from error
                is_lost = is_lost or is_sent
            except LimitReached as error:
                if str(error) != TOO_FAST or not await outage.pause():
                    raise
            except NotFound:
                if request.method == "DELETE" and is_lost:
                    return {}, b""  # an earlier attempt succeeded, and its response was lost
                raise

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
                raise raised_for(response.status_code, await self._whole(response))
            async for event in self._network.events(response):
                yield event
        finally:
            await self._network.end(response)

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)

    def outage(self) -> Outage:
        return Outage(self._network, self._patience, self.url)

    def is_final(self, error: httpx2.TransportError) -> bool:
        """Return whether another attempt would fail too."""
        return self._closed or _untrusted(error) is not None or _is_without_tls(error)

    def unreachable(self, error: httpx2.TransportError) -> RoostError:
        """Return the error for users, after the last attempt."""
        if self._closed:
            return closed()
        if isinstance(error, ServerAway):
            return error.error
        if (untrusted := _untrusted(error)) is not None:
            reason = untrusted.verify_message or "it cannot be verified"
            return Unavailable(f"the certificate of {self.url} is not trusted ({reason}): check the URL and `ca_file`")
        if _is_without_tls(error):
            return Unavailable(f"the server at {self.url} does not use TLS: use http://, or the port of its proxy")
        is_dropped = isinstance(error, httpx2.RemoteProtocolError) and self.url.startswith("http:")
        hint = ", use https:// if it uses TLS" if is_dropped else ""
        return Unavailable(f"cannot reach the server at {self.url}: check that it runs{hint}, and try again")

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
            raise raised_for(response.status_code, data)
        if response.status_code >= 300 and response.status_code != 304:
            # Not followed: the token is for this server alone.
            raise Unavailable(f"the server at {self.url} redirects to another address: use that one, if it is yours")
        return response.headers, data

    def _json(self, data: bytes) -> Any:
        try:
            return json.loads(data) if data else None
        except (ValueError, RecursionError) as error:
            raise self.misread() from error

    def misread(self) -> Unavailable:
        """Return the error for a response that a Roost of this version does not send."""
        return Unavailable(f"the server at {self.url} is not a Roost, or of another version: check the URL")

    async def _send(self, request: httpx2.Request, *, fresh: bool) -> httpx2.Response:
        if self._closed:
            raise closed()
        return await self._network.send(request, fresh=fresh)

    async def _whole(self, response: httpx2.Response) -> bytes:
        """Return the whole body; raise TransportError if it is incomplete, also if the head was cut off."""
        ends = response.headers.keys() & {"content-length", "transfer-encoding"} or response.status_code in (204, 304)
        if not ends:
            raise httpx2.RemoteProtocolError("the response has no end")
        _bounded(int(response.headers.get("content-length", 0)))
        pieces, size, latest = list[bytes](), 0, time.monotonic() + LONGEST_BODY
        async for piece in self._network.pieces(response):
            pieces.append(piece)
            size = _bounded(size + len(piece))
            if time.monotonic() > latest:
                raise Unavailable(f"the response of {self.url} takes longer than {LONGEST_BODY:g} seconds")
        return b"".join(pieces)

    def _request(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str], within: float = 0.0
    ) -> httpx2.Request:
        # `target` is sent as it is: a path with `..` in an id must not be shortened.
        timeout = TIMEOUT | {"read": READ_TIMEOUT + within}
        extensions = {"target": f"{self._base}{target}".encode("ascii"), "timeout": timeout}
        return httpx2.Request(method, self.url, headers=headers, content=body, extensions=extensions)

    def _headers(self, user_id: str | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._token:
            headers["Authorization"] = f"Bearer {sendable(self._token, 'the token')}"
        if user_id is not None:
            headers[USER_HEADER] = quote(str(user_id), safe="")
        return headers


def _parsed(url: object) -> SplitResult:
    """Return the parts of a server's URL. Raise Invalid if it is none."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        is_server = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of an address or a port
        parts, is_server = None, False
    if parts is not None and "@" in parts.netloc:
        raise Invalid("the URL has a user name or a password: leave them out, and pass a token")
    if parts is None or not is_server:
        raise Invalid(f"the URL {url!r:.80} is not the URL of a server: use http://host:port")
    return parts


def closed() -> Unavailable:
    return Unavailable("this client is closed")


def _untrusted(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Return the refusal of a certificate, if it is the cause of an error."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def _is_without_tls(error: BaseException | None) -> bool:
    """Return whether the server has answered TLS with plain text."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error is not None and error.reason == "WRONG_VERSION_NUMBER"


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
