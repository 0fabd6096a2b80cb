"""Cookies over TLS: locked to this host, and never sent without TLS."""

from __future__ import annotations

from pathlib import Path

import httpx

from roost.api.sign_in.cookies import LOCKED
from tests.api.account_pages.people import PASSWORD, browser, joined, sign_in
from tests.api.serving import Served, ask, serving
from tests.certificates import authority
from tests.conftest import Open


def given(served: Served, client: httpx.Client) -> str:
    return sign_in(client, "ann").headers["set-cookie"]


def test_over_tls_the_cookie_is_locked_and_secure(service: Open, tmp_path: Path) -> None:
    _, certificate, key = authority(tmp_path)
    with serving(service(), tls_cert=certificate, tls_key=key) as served:
        joined(served, "ann")
        with browser(served) as ann:
            cookie = given(served, ann)
            assert cookie.startswith(f"{LOCKED}{served.identity.cookie_name}=")
            assert "; Secure" in cookie
            assert "; Path=/;" in cookie
            assert "Domain" not in cookie
            assert ask(ann, "agents.list").status_code == 200
            assert f"{LOCKED}{served.identity.cookie_name}=;" in ann.post("/sign-out").headers["set-cookie"]
        with browser(served) as planted:  # by another host of the domain, under the plain name
            planted.cookies.set(served.identity.cookie_name, served.cookie("ann"))
            assert ask(planted, "agents.list").status_code == 401
        with browser(served, Origin=served.url.replace("https", "http")) as plain:
            assert sign_in(plain, "ann").status_code == 403


def test_a_trusted_proxy_or_the_url_tells_that_browsers_use_tls(service: Open) -> None:
    options = {"behind_proxy": True, "url": "https://roost.example"}
    with serving(service(), **options) as served:
        joined(served, "ann")
        forwarded = {"X-Forwarded-Proto": "https", "Origin": served.url.replace("http", "https")}
        with browser(served, **forwarded) as ann:
            assert "; Secure" in given(served, ann)
        with browser(served, Host="roost.example", Origin="https://roost.example") as ann:
            assert "; Secure" in given(served, ann)
        with browser(served) as own:  # on the machine itself
            assert "; Secure" not in given(served, own)


def test_the_forwarded_scheme_of_others_is_ignored(service: Open) -> None:
    with serving(service(), trusted_proxies=("10.0.0.1",)) as served:
        joined(served, "ann")
        with browser(served, **{"X-Forwarded-Proto": "https"}) as ann:
            assert "; Secure" not in given(served, ann)


def test_a_visitor_keeps_their_user_when_tls_is_added(service: Open, tmp_path: Path) -> None:
    _, certificate, key = authority(tmp_path)
    with serving(service(), tls_cert=certificate, tls_key=key) as served, browser(served) as visitor:
        visitor.cookies.set(served.identity.cookie_name, served.identity.cookie("user_before"))
        talk = visitor.post("/api/v1/talks", json={}).json()["talkSessionId"]
        assert [one.talk_session_id for one in served.service.list_sessions("user_before")] == [talk]


def test_behind_a_proxy_metrics_are_for_the_operator_alone(service: Open) -> None:
    with serving(service(), behind_proxy=True) as served, served.command_line() as operator:
        assert httpx.get(f"{served.url}/metrics", trust_env=False).status_code == 403
        assert operator.get("/metrics").status_code == 200


def test_guesses_through_a_proxy_that_tells_no_address_delay_nobody_else(service: Open) -> None:
    with serving(service(), behind_proxy=True) as served:
        joined(served, "ann")
        joined(served, "bob")
        with browser(served) as thief, browser(served) as bob:
            assert [sign_in(thief, "ann", "wrong").status_code for _ in range(6)] == [401] * 5 + [429]
            assert sign_in(bob, "bob", PASSWORD).status_code == 303
