"""A real server on a free port of this machine, in a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

import roost
from roost.api.app import create_app
from roost.api.auth import Identity
from roost.api.limits.connections import ConnectionRegistry
from roost.api.server import config
from roost.cli.commands.server.ports import bind
from roost.settings import Settings
from tests.conftest import eventually

_NEARBY: dict[str, Any] = {"trust_env": False, "verify": False}
"""There is nothing on the way, and nothing to verify: all certificates there are would be read for each client."""
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
