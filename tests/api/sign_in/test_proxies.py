"""Users of a trusted proxy: named in a header that nobody else can send."""

from __future__ import annotations

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.api.account_pages.people import HTML
from tests.api.serving import Served, ask, serving
from tests.conftest import Open, eventually

HERE = ("127.0.0.0/8", "::1")
HEADER = "X-Forwarded-User"


def from_proxy(served: Served, *names: str, **headers: str) -> httpx.Client:
    given = [("Origin", served.url), *((HEADER, name) for name in names), *headers.items()]
    return httpx.Client(base_url=served.url, headers=given, trust_env=False, timeout=30)


def test_a_trusted_proxy_names_the_user(service: Open) -> None:
    with serving(service(), proxy_user_header=HEADER, trusted_proxies=HERE) as served:
        forwarded = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
        with from_proxy(served, "Ann@example.com") as ann, from_proxy(served, "bob", **HTML | forwarded) as bob:
            assert ask(ann, "agents.create", agentId="d", start=False).status_code == 201
            page = bob.get("/docs")
            assert (page.status_code, "set-cookie" in page.headers) == (200, False)
        assert [one.agent_id for one in served.service.agents.list("ann@example.com")] == ["d"]
        assert [one.user_id for one in served.service.users.list("local")] == ["ann@example.com", "bob"]
        with from_proxy(served, **HTML) as nobody:
            assert nobody.get("/docs").headers["location"] == "/sign-in?next=%2Fdocs"
            assert ask(nobody, "agents.list").status_code == 401


def test_a_disabled_user_of_the_proxy_is_refused_and_disconnected(service: Open) -> None:
    with serving(service(), proxy_user_header=HEADER, trusted_proxies=HERE) as served, from_proxy(served, "ann") as ann:
        assert ask(ann, "agents.list").status_code == 200
        address = served.url.replace("http", "ws") + "/rpc"
        with connect(address, origin=Origin(served.url), additional_headers={HEADER: "ann"}) as socket:
            served.service.users.disable("local", "ann")
            eventually(lambda: ask(ann, "agents.list").status_code == 401)
            with pytest.raises(ConnectionClosed):
                socket.recv(timeout=30)
            assert socket.close_code == 1008
        assert ann.get("/account", headers=HTML).status_code == 303


def test_a_user_of_the_proxy_who_was_deleted_does_not_get_the_next_account_of_that_name(service: Open) -> None:
    with serving(service(), proxy_user_header=HEADER, trusted_proxies=HERE) as served, from_proxy(served, "ann") as ann:
        assert ann.get("/api/v1/me").json()["userId"] == "ann"
        served.service.users.delete("local", "ann")
        served.service.users.add("local", "ann")  # another person
        eventually(lambda: ann.get("/api/v1/me").json()["userId"] == "ann-2")


@pytest.mark.parametrize("trusted", [("10.0.0.1",), ("10.0.0.0/8", "192.0.2.1")])
def test_the_header_of_anybody_else_is_ignored_and_logged(
    service: Open, trusted: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    with serving(service(), proxy_user_header=HEADER, trusted_proxies=trusted) as served:
        spoofed = {"X-Forwarded-For": "10.0.0.1", "X-Real-IP": "10.0.0.1", "Forwarded": "for=10.0.0.1"}
        for more in ({}, spoofed):
            with from_proxy(served, "local", **more) as thief:
                assert ask(thief, "agents.list").status_code == 401
        assert served.service.users.list("local") == []
    assert "header X-Forwarded-User ignored: it is not from a trusted proxy" in caplog.text


def test_a_proxy_that_passes_on_the_header_of_clients_is_refused(service: Open) -> None:
    with serving(service(), proxy_user_header=HEADER, trusted_proxies=HERE) as served:
        for names in (("ann", "bob"), ("",), ("a\tb",), ("x" * 300,)):
            with from_proxy(served, *names) as client:
                assert ask(client, "agents.list").status_code == 400
        assert served.service.users.list("local") == []


def test_pages_of_other_sites_cannot_use_the_session_of_the_proxy(service: Open) -> None:
    with serving(service(), proxy_user_header=HEADER, trusted_proxies=HERE) as served:
        for origin in ("https://evil.example", "null"):
            with from_proxy(served, "ann") as victim:
                victim.headers["Origin"] = origin
                assert ask(victim, "agents.create", agentId="d").status_code == 403
        with from_proxy(served, "ann") as victim:
            del victim.headers["Origin"]
            assert ask(victim, "agents.create", agentId="d").status_code == 403
        assert served.service.agents.list("ann") == []


def test_the_header_does_not_count_while_it_is_not_configured(service: Open) -> None:
    with serving(service(), trusted_proxies=HERE) as served, from_proxy(served, "local") as visitor:
        assert ask(visitor, "agents.list").status_code == 401


def test_a_user_of_the_proxy_is_not_offered_to_sign_out_of_roost(service: Open) -> None:
    with serving(service(), proxy_user_header=HEADER, trusted_proxies=HERE) as served:
        with from_proxy(served, "ann", **HTML) as ann:
            by_proxy = ann.get("/account").text
        with served.browser("ann", **HTML) as ann:
            by_session = ann.get("/account").text
    assert ("Your proxy has signed you in: sign out there." in by_proxy, "/sign-out" in by_proxy) == (True, False)
    assert by_session.count(">Sign out</button>") == 1
