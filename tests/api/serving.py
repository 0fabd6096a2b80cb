"""A real server on a free port of this machine, in a thread of the test."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import uvicorn
from pydantic.alias_generators import to_camel

import roost
from roost.api.app import create_app
from roost.api.auth import Identity
from roost.api.limits.connections import ConnectionRegistry
from roost.api.server import config
from roost.cli.commands.server.ports import bind
from roost.protocol.namespaces import Method, methods
from roost.settings import Settings
from roost.sync import HANDLERS
from tests.conftest import eventually

_NEARBY: dict[str, Any] = {"trust_env": False, "verify": False, "timeout": 30}
"""There is nothing on the way, and nothing to verify: all certificates there are would be read for each client.

The disk of a busy machine may take seconds for a commit.
"""
SECRET = b"a secret of the tests, long enough"


@dataclass(frozen=True)
class Served:
    """A service and the server before it."""

    url: str
    service: roost.AgentService
    identity: Identity
    connections: ConnectionRegistry

    def browser(self, user: str | None, **headers: str) -> httpx.Client:
        """What a browser of this user sends: the cookie, and from where it asks."""
        cookies = {self.identity.cookie_name: self.identity.cookie(user)} if user else {}
        return httpx.Client(base_url=self.url, cookies=cookies, headers={"Origin": self.url, **headers}, **_NEARBY)

    def command_line(self, **headers: str) -> httpx.Client:
        token = {"Authorization": f"Bearer {self.identity.token}"}
        return httpx.Client(base_url=self.url, headers=token | headers, **_NEARBY)


METHODS = {one.full_name: one for name, kind in HANDLERS.items() for one in methods(name, kind)}


def ask(client: httpx.Client, method: str, /, **arguments: Any) -> httpx.Response:
    """Send the request of a method, such as `agents.create`; the arguments are those on the wire."""
    return send(client, METHODS[method], arguments)


def send(client: httpx.Client, method: Method, arguments: Mapping[str, Any], **headers: str) -> httpx.Response:
    given = {name: value for name, value in arguments.items() if value is not None}
    path = re.sub(r"{\w+}", lambda _: quote(str(given.pop(to_camel(method.route.argument))), safe=""), method.path)
    query, body = ({}, given) if method.route.has_body else (given, None)
    return client.request(method.route.verb, f"/api/v1/{path}", params=query, json=body, headers=headers)


@contextmanager
def serving(service: roost.AgentService, **options: Any) -> Iterator[Served]:
    identity = Identity(SECRET, "local")
    settings = Settings(**options)
    app = create_app(service, settings, identity, pages=False)
    listeners = bind("127.0.0.1", 0)
    server = uvicorn.Server(config(app, settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": listeners})
    thread.start()
    try:
        eventually(lambda: server.started)
        yield Served(f"http://localhost:{listeners[0].getsockname()[1]}", service, identity, app.state.connections)
    finally:
        server.should_exit = True
        thread.join(15)
        for listener in listeners:
            listener.close()
        assert not thread.is_alive()
