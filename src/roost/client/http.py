"""HTTP client with the standard library: pooled connections, bounded retries, and Roost's own errors."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from roost.client.network import BrokenConnection, Connector, NetworkConnection
from roost.errors import Forbidden, Invalid, NotFound, RoostError, Unavailable
from roost.protocol.errors import USER_HEADER, error_from

TRIES = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
IDLE_CONNECTIONS = 8
MOST_BYTES = 256 * 1024 * 1024
MOST_HEADERS = 200
HEX = b"0123456789abcdefABCDEF"


class NotReached(ConnectionError):
    """No connection was established: the server has not seen the request."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Head of a response, and its body as it arrives."""

    connection: NetworkConnection
    status: int
    headers: Mapping[str, str]
    keeps_open: bool

    @property
    def length(self) -> int | None:
        """Return the length of the body, if it is known."""
        if self.status in (204, 304):
            return 0
        told = self.headers.get("content-length", "")
        return int(told) if told.isdecimal() and not self.is_chunked else None

    @property
    def is_chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "").lower() == "chunked"

    async def whole(self) -> bytes:
        """Return the whole body; raise BrokenConnection if it is incomplete, also if the head was cut off."""
        if self.length is None and not self.is_chunked:
            raise BrokenConnection("the response has no end")
        pieces, size = list[bytes](), 0
        async for piece in self.pieces():
            pieces.append(piece)
            size = _bounded(size + len(piece))
        return b"".join(pieces)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body: by chunks, or at once if its length is known, or until the connection ends."""
        if self.is_chunked:
            while size := await self._chunk_size():
                yield await self.connection.exactly(size)
                await self.connection.line()
            while (await self.connection.line()).strip():
                pass  # trailers are ignored
        elif (length := self.length) is not None:
            yield await self.connection.exactly(_bounded(length))
        else:
            while piece := await self.connection.some():
                yield piece

    async def _chunk_size(self) -> int:
        told = (await self.connection.line()).partition(b";")[0].strip()
        if not told or set(told) - set(HEX):
            raise BrokenConnection("a chunk has no size")
        return _bounded(int(told, 16))


class HttpClient:
    """Client of one server. Safe for threads with a BlockingConnector; with an AsyncConnector used on one loop."""

    def __init__(self, network: Connector, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"the URL {url!r:.80} is not the URL of a server: use http://host:port")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._network = network
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port or (443 if self._secure else 80)
        self._name = parts.netloc.rpartition("@")[2]
        self._base = quote(parts.path.rstrip("/"), safe="/%") + "/api/v1"
        self._token = token
        self._idle: deque[NetworkConnection] = deque(maxlen=IDLE_CONNECTIONS)
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
        for number in range(1, TRIES + 1):
            try:
                return await self._once(method, path + encoded(query), user_id, text, fresh=not repeatable)
            except NotReached as error:
                if number == TRIES:
                    raise self._unreachable() from error
            except OSError as error:
                if number == TRIES or not repeatable:
                    raise self._unreachable() from error
            except NotFound:
                if method == "DELETE" and number > 1:
                    return None  # an earlier attempt succeeded, and its response was lost
                raise
            await self.pause(number)
        raise self._unreachable()

    async def stream(self, path: str, user_id: str, headers: Mapping[str, str]) -> HttpResponse:
        """Open a stream; the caller closes its connection."""
        connection = await self._connect()
        try:
            answer = await self._exchange(connection, "GET", path, None, {**self._headers(user_id), **headers})
            data = b"" if answer.status == 200 else await answer.whole()
        except BaseException:
            connection.close()
            raise
        if answer.status != 200:
            connection.close()
            raise error_in(answer.status, data)
        return answer

    async def pause(self, number: int) -> None:
        """Wait before the next attempt, with exponential backoff and jitter."""
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (number - 1))
        await self._network.sleep(random.uniform(0.5, 1.0) * longest)

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        await self._network.sleep(0)  # the loop closes them in its next iteration

    async def _once(self, method: str, target: str, user_id: str | None, body: bytes | None, *, fresh: bool) -> Any:
        # The server may have closed an idle connection, so requests that are not repeatable get a new one.
        connection = (None if fresh else self._idle_one()) or await self._connect()
        try:
            answer = await self._exchange(connection, method, target, body, self._headers(user_id))
            data = await answer.whole()
        except BaseException:
            connection.close()
            raise
        self._keep(connection, answer)
        if answer.status >= 400:
            raise error_in(answer.status, data)
        try:
            return json.loads(data) if data else None
        except (ValueError, RecursionError) as error:
            raise Unavailable(f"the server at {self.url} is not a Roost: check the URL") from error

    async def _exchange(
        self, connection: NetworkConnection, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> HttpResponse:
        """Send a request; return the head of the response."""
        if body is not None:
            headers = {**headers, "Content-Length": str(len(body))}
        head = [f"{method} {self._base}{target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        await connection.send("\r\n".join([*head, "", ""]).encode("ascii") + (body or b""))
        while (answer := await _head(connection)).status < 200:
            pass  # 100 Continue precedes the response
        return answer

    def _idle_one(self) -> NetworkConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _keep(self, connection: NetworkConnection, answer: HttpResponse) -> None:
        if self._closed or not answer.keeps_open or len(self._idle) == IDLE_CONNECTIONS:
            connection.close()
        else:
            self._idle.append(connection)

    async def _connect(self) -> NetworkConnection:
        if self._closed:
            raise Unavailable("this client is closed")
        try:
            return await self._network.connect(self._host, self._port, secure=self._secure)
        except OSError as error:
            raise NotReached from error

    def _headers(self, user_id: str | None) -> dict[str, str]:
        headers = {
            "Host": self._name,
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if self._token:
            headers["Authorization"] = f"Bearer {sendable(self._token, 'the token')}"
        if user_id is not None:
            headers[USER_HEADER] = quote(str(user_id), safe="")
        return headers

    def _unreachable(self) -> Unavailable:
        return Unavailable(f"cannot reach the server at {self.url}: check that it runs, and try again")


async def _head(connection: NetworkConnection) -> HttpResponse:
    version, _, rest = (await connection.line()).decode("latin-1").partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not status.isdecimal():
        raise BrokenConnection("the response is not HTTP")
    headers: dict[str, str] = {}
    for _ in range(MOST_HEADERS):
        line = (await connection.line()).decode("latin-1").strip()
        if not line:
            closes = version == "HTTP/1.0" or headers.get("connection", "").lower() == "close"
            return HttpResponse(connection, int(status), headers, not closes)
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    raise BrokenConnection("too many headers")


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
        fault = json.loads(data)["error"]
        code, message = str(fault["code"]), str(fault["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return Unavailable(f"the server returned status {status}: try again, or see its log")
    if status in (401, 403):
        return Forbidden(message)
    if status in (400, 413, 422):
        return Invalid(message)
    return error_from(code, message)
