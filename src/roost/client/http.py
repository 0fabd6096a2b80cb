"""HTTP with the standard library: pooled connections, bounded retries, and errors that are Roost's own."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from roost.client.network import Broken, Connection, Network
from roost.errors import Forbidden, Invalid, NotFound, RoostError, Unavailable
from roost.protocol.faults import USER_HEADER, error_from

TRIES = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
IDLE_CONNECTIONS = 8
MOST_BYTES = 256 * 1024 * 1024
MOST_HEADERS = 200
HEX = b"0123456789abcdefABCDEF"


class Unreached(ConnectionError):
    """No connection was made: the server has seen nothing of the request."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of an answer, and its body as it comes."""

    connection: Connection
    status: int
    headers: Mapping[str, str]
    keeps_open: bool

    @property
    def length(self) -> int | None:
        """How many bytes are to come, if that is known."""
        if self.status in (204, 304):
            return 0
        told = self.headers.get("content-length", "")
        return int(told) if told.isdecimal() and not self.is_chunked else None

    @property
    def is_chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "").lower() == "chunked"

    async def whole(self) -> bytes:
        """All of it; Broken when it is not all there, also if its head was cut off."""
        if self.length is None and not self.is_chunked:
            raise Broken("the answer has no end")
        pieces, size = list[bytes](), 0
        async for piece in self.pieces():
            pieces.append(piece)
            size = _bounded(size + len(piece))
        return b"".join(pieces)

    async def pieces(self) -> AsyncIterator[bytes]:
        """As it comes: chunk by chunk, at once if its length is known, or else until the connection ends."""
        if self.is_chunked:
            while size := await self._chunk_size():
                yield await self.connection.exactly(size)
                await self.connection.line()
            while (await self.connection.line()).strip():
                pass  # what may follow the last chunk says nothing to us
        elif (length := self.length) is not None:
            yield await self.connection.exactly(_bounded(length))
        else:
            while piece := await self.connection.some():
                yield piece

    async def _chunk_size(self) -> int:
        told = (await self.connection.line()).partition(b";")[0].strip()
        if not told or set(told) - set(HEX):
            raise Broken("a chunk has no size")
        return _bounded(int(told, 16))


class Wire:
    """Requests to one server. May be used from any number of threads; with a loop's network, on that loop."""

    def __init__(self, network: Network, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"the URL {url!r:.80} is not one of a server: use http://host:port")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._network = network
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port or (443 if self._secure else 80)
        self._name = parts.netloc.rpartition("@")[2]
        self._base = quote(parts.path.rstrip("/"), safe="/%") + "/api/v1"
        self._token = token
        self._idle: deque[Connection] = deque(maxlen=IDLE_CONNECTIONS)
        self._closed = False

    async def ask(
        self, method: str, path: str, user_id: str | None, body: Mapping[str, Any] | None = None, *,
        repeatable: bool = True, query: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """One request, and its answer. `repeatable`: it may reach the server twice; if not, it is tried only while
        it can't have reached it."""
        text = None if body is None else json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass")
        for number in range(1, TRIES + 1):
            try:
                return await self._once(method, path + encoded(query), user_id, text, fresh=not repeatable)
            except Unreached as error:
                if number == TRIES:
                    raise self._unreachable() from error
            except OSError as error:
                if number == TRIES or not repeatable:
                    raise self._unreachable() from error
            except NotFound:
                if method == "DELETE" and number > 1:
                    return None  # an earlier try has done it, and its answer was lost
                raise
            await self.pause(number)
        raise self._unreachable()

    async def stream(self, path: str, user_id: str, headers: Mapping[str, str]) -> Answer:
        """Open a stream; whoever asked for it closes its connection."""
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
        """Wait before the next try: longer each time, and not all clients at once."""
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (number - 1))
        await self._network.sleep(random.uniform(0.5, 1.0) * longest)

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        await self._network.sleep(0)  # a loop closes them in its next round

    async def _once(self, method: str, target: str, user_id: str | None, body: bytes | None, *, fresh: bool) -> Any:
        # A connection that lay idle may have been closed by the server; what can't be repeated gets a new one.
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
        except ValueError as error:
            raise Unavailable(f"what answers at {self.url} is no Roost: check the address") from error

    async def _exchange(
        self, connection: Connection, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        """Send a request; the head of what is answered."""
        if body is not None:
            headers = {**headers, "Content-Length": str(len(body))}
        head = [f"{method} {self._base}{target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        await connection.send("\r\n".join([*head, "", ""]).encode("ascii") + (body or b""))
        while (answer := await _head(connection)).status < 200:
            pass  # it says that it goes on, and then the answer comes
        return answer

    def _idle_one(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _keep(self, connection: Connection, answer: Answer) -> None:
        if self._closed or not answer.keeps_open or len(self._idle) == IDLE_CONNECTIONS:
            connection.close()
        else:
            self._idle.append(connection)

    async def _connect(self) -> Connection:
        if self._closed:
            raise Unavailable("this client is closed")
        try:
            return await self._network.connect(self._host, self._port, secure=self._secure)
        except OSError as error:
            raise Unreached from error

    def _headers(self, user_id: str | None) -> dict[str, str]:
        headers = {
            "Host": self._name, "Content-Type": "application/json", "Accept": "application/json",
            "Accept-Encoding": "identity",
        }  # fmt: skip
        if self._token:
            headers["Authorization"] = f"Bearer {sendable(self._token, 'the token')}"
        if user_id is not None:
            headers[USER_HEADER] = quote(str(user_id), safe="")
        return headers

    def _unreachable(self) -> Unavailable:
        return Unavailable(f"the server at {self.url} cannot be reached: check that it runs, and try again")


async def _head(connection: Connection) -> Answer:
    version, _, rest = (await connection.line()).decode("latin-1").partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not status.isdecimal():
        raise Broken("what came is no HTTP")
    headers: dict[str, str] = {}
    for _ in range(MOST_HEADERS):
        line = (await connection.line()).decode("latin-1").strip()
        if not line:
            closes = version == "HTTP/1.0" or headers.get("connection", "").lower() == "close"
            return Answer(connection, int(status), headers, not closes)
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    raise Broken("there are too many headers")


def _bounded(size: int) -> int:
    if size > MOST_BYTES:
        raise Unavailable(f"the answer is too large: {size:,} bytes")
    return size


def sendable(text: str, what: str) -> str:
    """The text, if a header can hold it; else Invalid."""
    if not (text.isascii() and text.isprintable()):
        raise Invalid(f"{what} has characters that cannot be sent: give it as it was given to you")
    return text


def encoded(query: Mapping[str, Any] | None) -> str:
    pairs = [f"{name}={quote(str(value), safe='')}" for name, value in (query or {}).items() if value is not None]
    return "?" + "&".join(pairs) if pairs else ""


def error_in(status: int, data: bytes) -> RoostError:
    """The error a reply tells of."""
    try:
        fault = json.loads(data)["error"]
        code, message = str(fault["code"]), str(fault["message"])
    except (ValueError, KeyError, TypeError):
        return Unavailable(f"the server answered with status {status}: try again, or look at its log")
    if status in (401, 403):
        return Forbidden(message)
    if status in (400, 413, 422):
        return Invalid(message)
    return error_from(code, message)
