"""Sign-in codes in a cluster: made on one node, valid once on any."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from tests.api.account_pages.people import browser
from tests.api.account_pages.test_oidc import idp
from tests.api.serving import Served, serving
from tests.api.sign_in.provider import CLIENT, Provider
from tests.runtime.cluster.brains import echo
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres
__all__ = ["idp"]


@pytest.fixture
def servers(nodes: Nodes) -> Iterator[list[Served]]:
    """A server before each of two nodes, with the same secret."""
    first, second = nodes.start({"echo": echo}, 2)
    with serving(first) as one, serving(second) as other:
        yield [one, other]


def _path(served: Served) -> str:
    """Return the path of a new link, as `roost link` gets it."""
    with served.command_line() as own:
        return str(own.post("/api/v1/links").json()["path"])


def _enter(served: Served, path: str) -> bool:
    """Follow a link in a new browser; return whether it is signed in then."""
    with served.browser(None) as client:
        answer = client.get(path)
        assert answer.status_code in (303, 403)
        return served.identity.cookie_name in client.cookies


def test_a_code_of_one_node_signs_in_on_another_once(servers: list[Served]) -> None:
    here, there = servers
    path = _path(here)
    with there.browser(None) as client, httpx.Client(base_url=here.url, trust_env=False) as same:
        assert client.get(path).status_code == 303
        same.cookies.set(here.identity.cookie_name, client.cookies[there.identity.cookie_name])
        assert same.get("/api/v1/me").status_code == 200
    assert not any(_enter(served, path) for served in servers * 2)


def test_of_many_browsers_on_two_nodes_a_code_signs_in_one(servers: list[Served]) -> None:
    for _ in range(5):
        path = _path(servers[0])
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(lambda n, path=path: _enter(servers[n % 2], path), range(8))) == 1


def test_a_code_is_valid_for_ten_minutes_by_the_time_of_the_store(servers: list[Served]) -> None:
    here, there = servers
    assert there.identity.now == there.service.roost.context.host.clock.now
    early, late = _path(here), _path(here)
    now = there.identity.now
    there.identity.now = lambda: now() + 590
    assert _enter(there, early)
    there.identity.now = lambda: now() + 600
    assert not _enter(there, late)
    assert _enter(here, late)


def test_the_store_has_no_code(nodes: Nodes, servers: list[Served]) -> None:
    code = _path(servers[0]).partition("code=")[2]
    assert _enter(servers[1], f"/enter?code={code}")
    with psycopg.connect(nodes.url) as connection:
        [(digest,)] = connection.execute("SELECT digest FROM used_codes").fetchall()
    assert len(digest) == 64
    assert all(part not in digest for part in code.split("."))


def test_a_sign_in_at_a_provider_begins_on_one_node_and_ends_once_on_another(nodes: Nodes, idp: Provider) -> None:
    first, second = nodes.start({"echo": echo}, 2)
    oidc = {"issuer": idp.issuer, "client_id": CLIENT, "client_secret": "TEST_OIDC_SECRET"}
    options = {"oidc": oidc | {"allowed_domains": ["example.com"]}, "url": "http://localhost"}
    with (
        serving(first, **options) as one,
        serving(second, **options) as other,
        browser(one) as here,
        browser(other) as there,
    ):
        started = here.get("/oidc/start")
        there.cookies.update(here.cookies)
        back = urlsplit(httpx.get(started.headers["location"], trust_env=False).headers["location"])
        assert there.get(f"{back.path}?{back.query}").status_code == 303
        assert there.get("/api/v1/me").status_code == 200
        again = here.get(f"{back.path}?{back.query}")
        assert (again.status_code, "has expired or was begun in another browser" in again.text) == (403, True)
