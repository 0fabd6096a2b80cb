"""A real server on a free port of this machine, in a thread of the test."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import fastapi.dependencies.models
import httpx
import pytest
import uvicorn
from pydantic.alias_generators import to_camel

import roost
from roost.api.app import create_app
from roost.api.auth import Identity
from roost.api.limits.connections import ConnectionRegistry
from roost.api.server import config
from roost.api.tls import Certificate
from roost.cli.commands.server.ports import bind
from roost.hosts.pending import drive
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
        """Return a client that sends what a browser of this user sends: the cookie, and its origin."""
        cookies = {self.identity.cookie_name: self.cookie(user)} if user else {}
        return httpx.Client(base_url=self.url, cookies=cookies, headers={"Origin": self.url, **headers}, **_NEARBY)

    def cookie(self, user: str) -> str:
        """The cookie of a user who has signed in, or of a visitor if there is no such account."""
        state = drive(self.service.asynchronous.users.session(user))
        return self.identity.cookie(user) if state is None else self.identity.session_cookie(user, state.epoch)

    def command_line(self, **headers: str) -> httpx.Client:
        token = {"Authorization": f"Bearer {self.identity.token}"}
        return httpx.Client(base_url=self.url, headers=token | headers, **_NEARBY)


def limited(**limits: int) -> pytest.MarkDecorator:
    """Give the server of a test other limits."""
    return pytest.mark.parametrize("served", [limits], indirect=True)


METHODS = {one.full_name: one for name, kind in HANDLERS.items() for one in methods(name, kind)}


def ask(client: httpx.Client, method: str, /, **arguments: Any) -> httpx.Response:
    """Send the request of a method, such as `agents.create`; the arguments are those on the wire."""
    return send(client, METHODS[method], arguments)


def send(client: httpx.Client, method: Method, arguments: Mapping[str, Any], **headers: str) -> httpx.Response:
    given = {name: value for name, value in arguments.items() if value is not None}
    path = re.sub(r"{\w+}", lambda _: quote(str(given.pop(to_camel(method.route.argument))), safe=""), method.path)
    query, body = ({}, given) if method.route.has_body else (given, None)
    return client.request(method.route.verb, f"/api/v1/{path}", params=query, json=body, headers=headers)


class _Server(uvicorn.Server):
    """Ends as soon as it is asked to. uvicorn looks at `should_exit` ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        ticks = asyncio.create_task(super().main_loop(), name="ticks of uvicorn")
        ticks.add_done_callback(lambda _: self._ending.set())
        await self._ending.wait()
        ticks.cancel()
        await asyncio.wait([ticks])

    def end(self) -> None:
        """Ask it to end, from another thread."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ending.set)


@contextmanager
def serving(service: roost.AgentService, **options: Any) -> Iterator[Served]:
    identity = Identity(SECRET, "local")
    settings = Settings(**options)
    app = create_app(service, settings, identity, pages=False)
    listeners = bind("127.0.0.1", 0)
    certificate = Certificate(*settings.tls_files) if settings.tls_files else None
    server = _Server(config(app, settings, certificate))
    thread = threading.Thread(target=server.run, kwargs={"sockets": listeners})
    thread.start()
    try:
        eventually(lambda: server.started)
        url = f"{'https' if certificate else 'http'}://localhost:{listeners[0].getsockname()[1]}"
        yield Served(url, service, identity, app.state.connections)
    finally:
        server.end()
        thread.join(15)
        for listener in listeners:
            listener.close()
        assert not thread.is_alive()
        _forget_routes()


def _forget_routes() -> None:
    """Clear the caches in which FastAPI keeps some thirty applications: every garbage collection would visit them."""
    for value in vars(fastapi.dependencies.models).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()
