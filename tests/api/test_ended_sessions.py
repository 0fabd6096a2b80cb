"""Each protocol × each end of a session: refused, and disconnected. One table, so that no protocol is forgotten."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.api.account_pages.people import joined
from tests.api.serving import Served
from tests.conftest import eventually

Ask = Callable[[httpx.Client], int]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "1"},
    },
}


def _streamed(path: str) -> Ask:
    def ask(client: httpx.Client) -> int:
        with client.stream("GET", path) as response:
            return response.status_code

    return ask


def _rpc(client: httpx.Client) -> int:
    try:
        connected(client).close()
    except InvalidStatus as refused:
        return refused.response.status_code
    return 101


def connected(client: httpx.Client) -> ClientConnection:
    names = ("authorization", "cookie", "origin")
    asked = client.build_request("GET", "/rpc").headers
    headers = {name: asked[name] for name in names if name in asked}
    return connect(str(client.base_url).replace("http", "ws") + "/rpc", additional_headers=headers, proxy=None)


PROTOCOLS: dict[str, tuple[Ask, int]] = {
    "REST, read": (lambda client: client.get("/api/v1/agents").status_code, 200),
    "REST, write": (lambda client: client.post("/api/v1/events", json={"name": "x"}).status_code, 201),
    "JSON-RPC": (_rpc, 101),
    "SSE, monitor": (_streamed("/api/v1/monitor/stream"), 200),
    "SSE, mail": (_streamed("/api/v1/mail/stream"), 200),
    "OpenAI, models": (lambda client: client.get("/v1/models").status_code, 200),
    "OpenAI, chat": (
        lambda client: (
            client.post(
                "/v1/chat/completions", json={"model": "parrot", "messages": [{"role": "user", "content": "x"}]}
            ).status_code
        ),
        200,
    ),
    "MCP": (
        lambda client: (
            client.post("/mcp", json=INITIALIZE, headers={"Accept": "application/json, text/event-stream"}).status_code
        ),
        200,
    ),
    "REST, me": (lambda client: client.get("/api/v1/me").status_code, 200),
}
"""A request of each protocol, and the status of one that is accepted."""
REFUSED = dict.fromkeys(PROTOCOLS, 401) | {"JSON-RPC": 403}
"""The handshake of a WebSocket is refused with this status for every reason."""


def _revoke(served: Served) -> None:
    for token in served.service.tokens.list("ann"):
        served.service.tokens.revoke("ann", token.token_id)


ENDS: dict[str, tuple[str, Callable[[Served], object], int]] = {
    "revoked token": ("token", _revoke, 202),
    "token of a disabled user": ("token", lambda served: served.service.users.disable("local", "ann"), 401),
    "token of a deleted user": ("token", lambda served: served.service.users.delete("local", "ann"), 401),
    "session of a disabled user": ("session", lambda served: served.service.users.disable("local", "ann"), 401),
    "session of a deleted user": ("session", lambda served: served.service.users.delete("local", "ann"), 401),
    "session before a reset": ("session", lambda served: served.service.users.reset("local", "ann"), 202),
}
"""Ways to end a credential; and the status of the user's hook then, which has a token of its own."""


def signed_in(served: Served, kind: str) -> httpx.Client:
    if kind == "session":
        return served.browser("ann")
    secret = served.service.tokens.create("ann", "test").secret
    authorization = {"Authorization": f"Bearer {secret}"}
    return httpx.Client(base_url=served.url, headers=authorization, trust_env=False, timeout=30)


@pytest.mark.parametrize("end", ENDS)
def test_every_protocol_refuses_and_disconnects_a_session_that_has_ended(served: Served, end: str) -> None:
    joined(served, "ann")
    kind, ended, status_of_hook = ENDS[end]
    hook = served.service.hooks.create("ann", event="heard", secret=False)
    with (
        signed_in(served, kind) as client,
        httpx.Client(base_url=served.url, trust_env=False, timeout=30) as anybody,
        connected(client) as socket,
        client.stream("GET", "/api/v1/monitor/stream") as stream,
    ):
        assert {name: ask(client) for name, (ask, _) in PROTOCOLS.items()} == {
            name: accepted for name, (_, accepted) in PROTOCOLS.items()
        }
        assert anybody.post(hook.path, json={}).status_code == 202
        ended(served)
        eventually(lambda: client.get("/api/v1/agents").status_code == 401, 30)
        assert {name: ask(client) for name, (ask, _) in PROTOCOLS.items()} == REFUSED
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)
        assert socket.close_code == 1008
        with pytest.raises(httpx.RemoteProtocolError):  # it is cut off
            list(stream.iter_bytes())
        assert anybody.post(hook.path, json={}).status_code == status_of_hook
