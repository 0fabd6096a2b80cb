"""Checks before every request: names, origins, sizes, cookies, codes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

import roost
from roost.api.auth import COOKIE, COOKIE_LIFE, Identity, kept_secret, local_user
from roost.api.credentials import Credential, CredentialKind, CredentialVerifier, Grant
from roost.api.security import SecurityMiddleware
from roost.api.sign_in.authentication import VisitorAuthentication
from roost.settings import Settings
from tests.api.serving import SECRET, Served, serving
from tests.conftest import Open

PAGE = {"Accept": "text/html,application/xhtml+xml"}


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "[::1", "0.0.0.0"]
)
def test_a_request_by_another_name_is_turned_away(served: Served, host: str) -> None:
    with served.browser("ann", Host=host) as ann:
        assert ann.get("/api/v1/talks").status_code in (400, 421)


def test_a_configured_name_is_welcome(service: Open) -> None:
    with serving(service(), hosts=("roost.example",)) as served, served.browser("ann", Host="roost.example") as ann:
        assert ann.get("/api/v1/talks").status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://localhost:1", "null", "https://localhost.evil.example"]
)
def test_what_another_site_asks_for_with_our_cookie_is_refused(served: Served, origin: str) -> None:
    with served.browser("ann", Origin=origin) as ann:
        refused = ann.post("/api/v1/talks", json={})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert served.service.list_sessions("ann") == []


def test_a_cookie_without_an_origin_changes_nothing(served: Served) -> None:
    with served.browser("ann") as ann:
        del ann.headers["Origin"]
        assert ann.post("/api/v1/talks", json={}).status_code == 403
        assert ann.get("/api/v1/talks").status_code == 200


def test_every_answer_has_security_headers(served: Served) -> None:
    with served.browser("ann") as ann:
        for answer in (ann.get("/api/v1/talks"), ann.get("/nowhere"), ann.get("/api/v1/talks", headers={"Host": "x"})):
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "img-src 'self' data: blob:" in answer.headers["content-security-policy"]
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert "access-control-allow-origin" not in answer.headers


def test_a_body_that_is_too_large_is_refused_whole_or_in_pieces(service: Open) -> None:
    with serving(service(), limits=roost.Limits(message_bytes=1_000)) as served, served.browser("ann") as ann:
        talk = served.service.create_talk_session("ann", profile="echo")
        path, large = f"/api/v1/talks/{talk}/messages", b'{"content": "' + b"x" * 200_000 + b'"}'

        def pieces() -> Iterator[bytes]:
            for start in range(0, len(large), 10_000):
                yield large[start : start + 10_000]

        kind = {"Content-Type": "application/json"}
        for content in (large, pieces()):
            refused = ann.post(path, content=content, headers=kind)
            assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
        assert served.service.get_messages("ann", talk).messages == ()


def test_a_message_of_the_largest_size_is_taken_even_if_all_of_it_is_escaped(service: Open) -> None:
    limits = roost.Limits(message_bytes=100_000)
    with serving(service(), limits=limits) as served, served.browser("ann") as ann:
        talk = served.service.create_talk_session("ann", profile="echo")
        taken = ann.post(f"/api/v1/talks/{talk}/messages", json={"content": "\x01" * 100_000})
    assert taken.status_code == 201


# --- cookies -------------------------------------------------------------------------------------------


def test_a_visitor_gets_a_user_of_their_own_and_keeps_it(served: Served) -> None:
    with served.browser(None, **PAGE) as one, served.browser(None, **PAGE) as other:
        given = one.get("/docs").headers["set-cookie"]
        other.get("/docs")
        assert "HttpOnly" in given
        assert "SameSite=Lax" in given
        users = [served.identity.user_of_cookie(b.cookies[served.identity.cookie_name]) for b in (one, other)]
        assert users[0] != users[1]
        assert all(user and user.startswith("user_") for user in users)
        assert "set-cookie" not in one.get("/docs").headers


def test_a_forged_or_changed_cookie_signs_nobody_in() -> None:
    ours, theirs = Identity(SECRET, "local"), Identity(b"another secret, long enough too", "local")
    good = ours.cookie("ann")
    payload, _, signature = good.partition(".")
    forged = base64.urlsafe_b64encode(json.dumps(["bob", 2_000_000_000]).encode()).rstrip(b"=").decode()
    for bad in (
        theirs.cookie("ann"),
        f"{forged}.{signature}",
        f"{payload}.",
        payload,
        "",
        ".",
        "ü.ü",
        good + "x",
        None,
    ):
        assert ours.user_of_cookie(bad) is None
    assert ours.user_of_cookie(good) == "ann"


def test_a_forged_cookie_opens_nothing_and_is_replaced(served: Served) -> None:
    stranger = Identity(b"another secret, long enough too", "local")
    with served.browser(None) as thief:
        thief.cookies.set(served.identity.cookie_name, stranger.cookie("ann"))
        assert thief.get("/api/v1/talks").status_code == 401
        thief.get("/docs", headers=PAGE)
        assert thief.get("/api/v1/talks").status_code == 200


def test_a_cookie_ends_after_its_time_and_is_renewed_before() -> None:
    now = 1_800_000_000.0
    identity = Identity(SECRET, "local", now=lambda: now)
    cookie = identity.cookie("ann")
    read = identity.read_cookie(cookie)
    assert read is not None
    assert not identity.wants_renewal(read)
    now += timedelta(days=2).total_seconds()
    assert identity.wants_renewal(read)
    assert identity.user_of_cookie(cookie) == "ann"
    now += COOKIE_LIFE
    assert identity.user_of_cookie(cookie) is None


def test_a_token_brings_no_cookie_along_to_the_pages() -> None:
    """Pages trust the cookie that they are shown: one of a session that has ended must not reach them."""
    identity, seen = Identity(SECRET, "local"), list[str]()

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(Headers(scope=scope).get("cookie", ""))

    async def verify(credential: Credential) -> Grant | None:
        return Grant("bob", ("talks:read",)) if credential.kind is CredentialKind.TOKEN else None

    async def nothing(*_: object) -> Any:
        return None

    middleware = SecurityMiddleware(page, identity=identity, settings=Settings(), verifier=CredentialVerifier(verify))
    cookie = f"other=1; {COOKIE}={identity.session_cookie('ann', 1)}"
    headers = {"host": "localhost", "authorization": "Bearer roost_x", "cookie": cookie}
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "websocket", "path": "/_stcore/stream", "headers": sent, "client": ("127.0.0.1", 1)}
    asyncio.run(middleware(scope, nothing, nothing))
    assert seen == ["other=1"]


def test_two_roosts_on_one_machine_do_not_overwrite_each_others_cookies() -> None:
    assert Identity(SECRET, "local").cookie_name != Identity(b"another secret, long enough too", "local").cookie_name


def test_the_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    secret = kept_secret(tmp_path)
    assert kept_secret(tmp_path) == secret
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]
    (tmp_path / "secret").write_text("short")
    with pytest.raises(roost.Unavailable, match="too short"):
        kept_secret(tmp_path)


# --- the command line's user ------------------------------------------------------------------------------


def test_a_one_time_code_signs_in_as_the_local_user_once(served: Served) -> None:
    code = served.identity.invite()
    with served.browser(None, **PAGE) as one, served.browser(None, **PAGE) as other:
        entered = one.get("/enter", params={"code": code})
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        assert served.identity.user_of_cookie(one.cookies[served.identity.cookie_name]) == "local"
        refused = other.get("/enter", params={"code": code})
        assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
        assert one.get("/enter", params={"code": code}).status_code == 303  # signed in already


def test_an_expired_link_leads_to_a_page_that_says_how_to_continue(served: Served) -> None:
    with served.browser(None, **PAGE) as late:
        page = late.get("/enter", params={"code": "expired"})
    assert (page.status_code, page.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert '<meta name="viewport"' in page.text
    assert '<a href="/">' in page.text
    assert "<code>roost link</code>" in page.text


def test_a_code_is_worth_nothing_after_ten_minutes_and_a_wrong_one_never_is() -> None:
    now = 1_800_000_000.0
    identity = Identity(SECRET, "local", now=lambda: now)
    code = identity.invite()
    assert identity.read_code(code) is not None
    until, _, rest = code.partition(".")
    wrong = ("", "..", code[:-1], f"{code}x", f"{int(until) + 600}.{rest}", "\udcff.é")
    assert [one for one in wrong if identity.read_code(one)] == []
    assert Identity(b"another secret, long enough too", "local", now=lambda: now).read_code(code) is None
    now += 600
    assert identity.read_code(code) is None


def test_a_code_is_valid_once_without_a_service_too() -> None:
    """As in `roost ui`."""
    identity = Identity(SECRET, "local")
    authentication, codes = VisitorAuthentication(identity), [identity.invite() for _ in range(2)]
    redeemed = [asyncio.run(authentication.redeem(code)) for code in (*codes, *codes, "")]
    assert redeemed == [True, True, False, False, False]


def test_the_token_signs_in_the_local_user_and_another_token_nobody(served: Served) -> None:
    served.service.create_talk_session("local", profile="echo")
    with served.command_line() as own, served.command_line(Authorization="Bearer wrong") as wrong:
        assert len(own.get("/api/v1/talks").json()["items"]) == 1
        assert own.post("/api/v1/links").json()["path"].startswith("/enter?code=")
        assert wrong.get("/api/v1/talks").status_code == 401
    with served.browser("local") as browser:
        assert browser.post("/api/v1/links").status_code == 403


def test_the_header_that_names_a_user_counts_only_with_the_token(served: Served) -> None:
    served.service.create_talk_session("ann", profile="echo")
    named = {"Roost-User": "ann"}
    with (
        served.browser("bob", **named) as bob,
        served.command_line(**named) as own,
        served.browser(None, **named) as no,
    ):
        assert bob.get("/api/v1/talks").json() == {"items": [], "next": None}
        assert len(own.get("/api/v1/talks").json()["items"]) == 1
        assert no.get("/api/v1/talks").status_code == 401


def test_the_local_user_is_as_set_or_the_account() -> None:
    assert local_user("ann") == "ann"
    assert local_user()


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, "send an API token as `Authorization: Bearer TOKEN`"),
        ({"Authorization": "roost_token"}, "the header must be `Authorization: Bearer TOKEN`"),
        ({"Authorization": "Basic YTpi"}, "the header must be `Authorization: Bearer TOKEN`"),
        ({"Authorization": "Bearer"}, "the header must be `Authorization: Bearer TOKEN`"),
        ({"Authorization": "Bearer roost_token"}, "the token is not valid"),
    ],
)
def test_the_error_for_a_request_without_a_user_names_the_header_to_send(
    served: Served, headers: dict[str, str], told: str
) -> None:
    with served.browser(None, **headers) as client:
        refused = client.get("/api/v1/talks")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert told in refused.json()["detail"]
