"""HTTP with the standard library: pooled connections, bounded retries, and errors that are Roost's own."""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from roost.errors import Forbidden, Invalid, NotFound, RoostError, Unavailable
from roost.protocol.faults import USER_HEADER, error_from

CONNECT_PATIENCE = 5.0
PATIENCE = 60.0
TRIES = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
IDLE_CONNECTIONS = 8
MOST_BYTES = 256 * 1024 * 1024


class Wire:
    """Requests to one server. May be used from any number of threads."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"the URL {url!r:.80} is not one of a server: use http://host:port")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._base = parts.path.rstrip("/") + "/api/v1"
        self._token = token
        self._idle: deque[HTTPConnection] = deque(maxlen=IDLE_CONNECTIONS)
        self._closed = False

    def ask(
        self, method: str, path: str, user_id: str | None, body: Mapping[str, Any] | None = None, *,
        repeatable: bool = True, query: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """One request, and its answer. `repeatable`: it may reach the server twice; if not, it is tried only while
        it can't have reached it."""
        text = None if body is None else json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass")
        for number in range(1, TRIES + 1):
            try:
                return self._once(method, path + encoded(query), user_id, text, fresh=not repeatable)
            except ConnectionRefusedError as error:
                if number == TRIES:
                    raise self._unreachable() from error
            except (OSError, HTTPException) as error:
                if number == TRIES or not repeatable:
                    raise self._unreachable() from error
            except NotFound:
                if method == "DELETE" and number > 1:
                    return None  # an earlier try has done it, and its answer was lost
                raise
            pause(number)
        raise self._unreachable()

    def stream(self, path: str, user_id: str, headers: Mapping[str, str]) -> tuple[HTTPConnection, HTTPResponse]:
        """Open a stream; whoever asked for it closes the connection."""
        connection = self._connection()
        try:
            connection.request("GET", self._base + path, headers={**self._headers(user_id), **headers})
            response = connection.getresponse()
            data = b"" if response.status == 200 else whole(response)
        except BaseException:
            connection.close()
            raise
        if response.status != 200:
            connection.close()
            raise error_in(response.status, data)
        return connection, response

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _once(self, method: str, target: str, user_id: str | None, body: bytes | None, *, fresh: bool) -> Any:
        # A connection that lay idle may have been closed by the server; what can't be repeated gets a new one.
        connection = self._connection() if fresh or not self._idle else self._idle.pop()
        try:
            connection.request(method, self._base + target, body, self._headers(user_id))
            response = connection.getresponse()
            data = whole(response)
        except BaseException:
            connection.close()
            raise
        if response.will_close or self._closed:
            connection.close()
        else:
            self._idle.append(connection)
        if response.status >= 400:
            raise error_in(response.status, data)
        try:
            return json.loads(data) if data else None
        except ValueError as error:
            raise Unavailable(f"what answers at {self.url} is no Roost: check the address") from error

    def _connection(self) -> HTTPConnection:
        if self._closed:
            raise Unavailable("this client is closed")
        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=CONNECT_PATIENCE)
        connection.connect()
        connection.sock.settimeout(PATIENCE)
        return connection

    def _headers(self, user_id: str | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if user_id is not None:
            headers[USER_HEADER] = quote(str(user_id), safe="")
        return headers

    def _unreachable(self) -> Unavailable:
        return Unavailable(f"the server at {self.url} cannot be reached: check that it runs, and try again")


def whole(response: HTTPResponse) -> bytes:
    """The body of an answer; raises HTTPException when it is not all there, also if its head was cut off."""
    length = response.length
    if length is None and not response.chunked:
        raise HTTPException("the answer has no end")
    if length is not None and length > MOST_BYTES:
        raise Unavailable(f"the answer is too large: {length:,} bytes")
    return response.read()


def pause(number: int) -> None:
    """Wait before the next try: longer each time, and not all clients at once."""
    time.sleep(random.uniform(0.5, 1.0) * min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (number - 1)))


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
