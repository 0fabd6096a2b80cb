"""A client of `/rpc` by the plain `websockets` library."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

from websockets.sync.client import connect
from websockets.sync.connection import Connection

from tests.api.serving import Served


def opened(served: Served, user: str | None = "ann", **headers: str) -> Connection:
    """A connection with the cookie of a user; by default from a page of this server."""
    cookie = {"Cookie": f"{served.identity.cookie_name}={served.identity.cookie(user)}"} if user else {}
    sent = {"Origin": served.url, **cookie, **headers}
    return connect(served.url.replace("http", "ws") + "/rpc", additional_headers=sent, proxy=None)


class Client:
    """Calls by name; what else arrives meanwhile is kept."""

    def __init__(self, socket: Connection) -> None:
        self.socket = socket
        self.notified: list[dict[str, Any]] = []
        self._ids = count(1)

    def ask(self, method: str, /, **params: Any) -> dict[str, Any]:
        """Send a request; return the whole reply."""
        number = self.send(method, **params)
        return self.until(lambda message: message.get("id") == number)

    def call(self, method: str, /, **params: Any) -> Any:
        reply = self.ask(method, **params)
        assert "error" not in reply, reply
        return reply["result"]

    def send(self, method: str, /, **params: Any) -> int:
        number = next(self._ids)
        self.socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        return number

    def until(self, is_it: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        while True:
            message: dict[str, Any] = self.receive()
            if is_it(message):
                return message
            self.notified.append(message)

    def receive(self) -> Any:
        message = json.loads(self.socket.recv(timeout=15))
        for one in message if isinstance(message, list) else [message]:
            assert one["jsonrpc"] == "2.0"
        return message

    def event(self) -> dict[str, Any]:
        """Return the parameters of the next event."""
        while True:
            message = self.notified.pop(0) if self.notified else self.receive()
            if message.get("method") in ("event", "ended"):
                return {**message["params"], "method": message["method"]}
