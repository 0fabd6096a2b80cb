"""A session or token that ends on one node: others refuse it, and end its open connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from tests.api.account_pages.people import joined
from tests.api.conftest import parrot
from tests.api.serving import Served, serving
from tests.api.test_ended_sessions import ENDS, connected, signed_in
from tests.conftest import eventually
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres

SOON = 5.0
"""Seconds; it takes one, and the machine of the tests may be busy."""
WAYS: dict[str, tuple[str, Callable[[Served], object]]] = {how: (kind, end) for how, (kind, end, _) in ENDS.items()}


@pytest.fixture
def servers(nodes: Nodes) -> Iterator[list[Served]]:
    """A server before each of two nodes, with the same secret."""
    first, second = nodes.start({"parrot": parrot}, 2)
    with serving(first) as one, serving(second) as other:
        yield [one, other]


@pytest.mark.parametrize("how", WAYS)
def test_open_connections_on_other_nodes_end(servers: list[Served], how: str) -> None:
    here, there = servers
    joined(here, "ann")
    kind, end = WAYS[how]
    with (
        signed_in(there, kind) as client,
        connected(client) as socket,
        client.stream("GET", "/api/v1/monitor/stream") as stream,
    ):
        assert client.get("/api/v1/agents").status_code == 200
        end(here)
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=SOON)
        assert socket.close_code == 1008
        with pytest.raises(httpx.RemoteProtocolError):  # it is cut off
            list(stream.iter_bytes())
        assert client.get("/api/v1/agents").status_code == 401


def test_signing_out_on_one_node_ends_the_session_on_all(servers: list[Served]) -> None:
    here, there = servers
    joined(here, "ann")
    with there.browser("ann") as client, connected(client) as socket:
        cookie = {there.identity.cookie_name: client.cookies[there.identity.cookie_name]}
        with httpx.Client(base_url=here.url, cookies=cookie, headers={"Origin": here.url}, trust_env=False) as same:
            assert same.get("/api/v1/me").status_code == 200
            same.post("/sign-out")
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=SOON)
        assert client.get("/api/v1/agents").status_code == 401


def test_everyone_signs_in_on_all_nodes_as_soon_as_there_is_an_account(servers: list[Served]) -> None:
    here, there = servers
    with there.browser("visitor") as client, connected(client) as socket:
        assert client.get("/api/v1/agents").status_code == 200
        joined(here, "ann")
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=SOON)
        eventually(lambda: client.get("/api/v1/agents").status_code == 401)
