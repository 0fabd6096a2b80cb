"""Signing in and out, and invitations."""

from __future__ import annotations

import json
import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from roost.api.auth import Identity
from roost.core.accounts.guesses import FREE
from roost.hosts.pending import drive
from roost.runtime.handlers.accounts import password_threads
from tests.api.account_pages.people import PASSWORD, browser, error_in, joined, sign_in
from tests.api.serving import Served, ask
from tests.api.sign_in.test_paths import ELSEWHERE
from tests.conftest import eventually


def test_without_accounts_visitors_have_a_user_each_and_there_is_no_sign_in_page(served: Served) -> None:
    with browser(served) as visitor:
        assert "set-cookie" in visitor.get("/docs").headers
        assert visitor.get("/sign-in").headers["location"] == "/"
        assert ask(visitor, "agents.list").status_code == 200


def test_as_soon_as_there_is_an_account_everybody_signs_in(served: Served) -> None:
    with browser(served) as visitor, served.command_line() as operator:
        visitor.get("/docs")
        socket = connect(
            served.url.replace("http", "ws") + "/rpc",
            origin=Origin(served.url),
            additional_headers={"Cookie": "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())},
        )
        joined(served, "ann")
        with socket, pytest.raises(ConnectionClosed):
            socket.recv(timeout=30)
        page = visitor.get("/docs/guides/agents?x=1")
        assert (page.status_code, page.headers["location"]) == (303, "/sign-in?next=%2Fdocs%2Fguides%2Fagents%3Fx%3D1")
        assert "set-cookie" not in page.headers
        assert ask(visitor, "agents.list").status_code == 401
        for path in ("/api/v1/profiles", "/v1/models", "/mcp", "/docs", "/account"):
            assert visitor.get(path, headers={"Accept": "*/*"}).status_code == 401
        with pytest.raises(InvalidStatus):
            connect(served.url.replace("http", "ws") + "/rpc", origin=Origin(served.url))
        for path in ("/healthz", "/readyz"):
            assert visitor.get(path).status_code == 200
        assert ask(operator, "agents.list").status_code == 200


def test_a_person_signs_in_and_comes_back_to_the_page(served: Served) -> None:
    joined(served, "ann")
    with browser(served) as ann:
        form = ann.get("/sign-in?next=%2F%3Ftalk%3Dt1")
        assert 'autocomplete="username"' in form.text
        assert 'autocomplete="current-password"' in form.text
        assert 'value="/?talk=t1"' in form.text
        answer = sign_in(ann, " Ann ", path="/?talk=t1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/?talk=t1")
        given = answer.headers["set-cookie"]
        assert "HttpOnly" in given
        assert "SameSite=Lax" in given
        assert "Secure" not in given
        assert ask(ann, "agents.list").status_code == 200
        assert ann.get("/sign-in").headers["location"] == "/"
    entry = served.service.users.audit("local")[0]
    assert (entry.actor, entry.action, entry.detail, entry.address) == ("ann", "sign_in", "password", "127.0.0.1")


def test_a_try_that_a_busy_server_did_not_verify_is_no_wrong_guess(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined(served, "ann")
    with browser(served) as ann:
        with monkeypatch.context() as busy:
            busy.setattr(password_threads, "MOST_WAITING", 0)
            assert {sign_in(ann, "ann").status_code for _ in range(2 * FREE)} == {503}
        assert sign_in(ann, "ann").status_code == 303


def test_without_pages_a_sign_in_leads_to_the_account(served: Served) -> None:
    with browser(served) as visitor:
        assert visitor.get("/").headers["location"] == "/account"
        refused = visitor.get("/", headers={"Accept": "*/*"})
        assert (refused.status_code, refused.json()["detail"][:12]) == (404, "no such page")


def test_a_wrong_password_and_an_unknown_name_are_answered_alike(served: Served) -> None:
    joined(served, "ann")
    joined(served, "gone")
    served.service.users.disable("local", "gone")
    served.service.users.add("local", "new")
    with browser(served) as thief:
        answers = [sign_in(thief, "ann", "wrong"), *(sign_in(thief, name) for name in ("never", "gone", "new"))]
    assert {(answer.status_code, error_in(answer)) for answer in answers} == {(401, "Wrong name or password.")}
    assert all("set-cookie" not in answer.headers and PASSWORD not in answer.text for answer in answers)
    pages = {
        answer.text.replace(name, "") for answer, name in zip(answers, ("ann", "never", "gone", "new"), strict=True)
    }
    assert len(pages) == 1


def test_what_was_typed_as_the_name_is_text(served: Served) -> None:
    joined(served, "ann")
    with browser(served) as thief:
        page = sign_in(thief, '"><script>alert(1)</script>', "x")
    assert "<script" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_signing_in_leads_to_no_other_server(served: Served) -> None:
    joined(served, "ann")
    with browser(served) as ann:
        for path in filter(None, ELSEWHERE):
            assert 'name="next" value="/"' in ann.get("/sign-in", params={"next": path}).text
        for path in ("//evil.example", "/\\evil.example", "https:evil.example", "https://evil.example/"):
            with browser(served) as other:
                assert sign_in(other, "ann", path=path).headers["location"] == "/"


def test_guessing_is_slowed_and_a_plain_sentence_says_so(served: Served) -> None:
    joined(served, "ann")
    joined(served, "bob")
    with browser(served) as thief:
        assert [sign_in(thief, "ann", f"guess {number}").status_code for number in range(5)] == [401] * 5
        slowed = sign_in(thief, "ann")
        assert (slowed.status_code, int(slowed.headers["retry-after"]) <= 5) == (429, True)
        assert error_in(slowed).startswith("Too many attempts. Wait ")
        assert sign_in(thief, "bob").status_code == 429  # the same address


def test_forms_of_other_sites_are_refused(served: Served) -> None:
    joined(served, "ann")
    code = served.service.users.add("local", "new").code
    forms = {
        "/sign-in": {"name": "ann", "password": PASSWORD},
        "/invite": {"code": code, "password": PASSWORD, "again": PASSWORD},
    }
    with browser(served) as victim, browser(served) as ann:
        sign_in(ann, "ann")
        for client in (victim, ann):
            client.headers.pop("Origin")
        for origin in ("http://evil.example", "null", "https://localhost.evil.example", None):
            more = {"Origin": origin} if origin else {}
            for path, data in forms.items():
                answer = victim.post(path, data=data, headers=more)
                assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
            for path in ("/sign-out", "/account/password", "/account/tokens", "/account/sign-out"):
                assert ann.post(path, data={"name": "x"}, headers=more).status_code == 403
        assert ask(ann, "agents.list").status_code == 200


def test_a_session_of_before_is_replaced_by_signing_in(served: Served) -> None:
    joined(served, "ann")
    joined(served, "thief")
    with browser(served) as browser_of_victim:
        sign_in(browser_of_victim, "thief")
        planted = browser_of_victim.cookies[served.identity.cookie_name]
        assert sign_in(browser_of_victim, "ann").status_code == 303
        assert browser_of_victim.cookies[served.identity.cookie_name] != planted
        talk = browser_of_victim.post("/api/v1/talks", json={}).json()
    assert [one.talk_session_id for one in served.service.list_sessions("ann")] == [talk["talkSessionId"]]
    assert served.service.list_sessions("thief") == []


def test_a_cookie_that_is_not_of_a_session_signs_nobody_in(served: Served) -> None:
    account = joined(served, "ann")
    identity, epoch = served.identity, account.session_epoch
    stranger = Identity(b"another secret, long enough too", "local")
    late = Identity(b"a secret of the tests, long enough", "local", now=lambda: time.time() - 31 * 86_400)
    good = identity.session_cookie("ann", epoch)
    cookies = {
        "forged": good[:-2] + ("AA" if good[-2:] != "AA" else "BB"),
        "another server": stranger.session_cookie("ann", epoch),
        "old epoch": identity.session_cookie("ann", epoch - 1),
        "visitor": identity.cookie(identity.new_user()),
        "no epoch": identity.cookie("ann"),
        "of nobody": identity.session_cookie("never", epoch),
        "expired": late.session_cookie("ann", epoch),
    }
    for kind, cookie in cookies.items():
        with browser(served) as thief:
            thief.cookies.set(identity.cookie_name, cookie)
            assert ask(thief, "agents.list").status_code == 401, kind
            assert thief.get("/docs").headers["location"].startswith("/sign-in")
        with pytest.raises(InvalidStatus):
            connect(
                served.url.replace("http", "ws") + "/rpc",
                origin=Origin(served.url),
                additional_headers={"Cookie": f"{identity.cookie_name}={cookie}"},
            )


def test_signing_out_ends_this_session_and_no_other(served: Served) -> None:
    joined(served, "ann")
    with browser(served) as one, browser(served) as other, browser(served) as thief:
        sign_in(one, "ann")
        sign_in(other, "ann")
        stolen = one.cookies[served.identity.cookie_name]
        answer = one.post("/sign-out")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert answer.headers["clear-site-data"] == '"storage"'
        thief.cookies.set(served.identity.cookie_name, stolen)
        assert ask(thief, "agents.list").status_code == 401
        assert ask(one, "agents.list").status_code == 401
        assert ask(other, "agents.list").status_code == 200
        assert thief.post("/sign-out").status_code == 303  # nothing to end


@pytest.mark.alone
@pytest.mark.parametrize("how", ["disable", "delete", "sign out", "sign out everywhere"])
def test_open_connections_end_with_the_session_within_a_second(served: Served, how: str) -> None:
    joined(served, "ann")
    with browser(served) as ann, browser(served) as other:
        sign_in(ann, "ann")
        sign_in(other, "ann")
        cookie = f"{served.identity.cookie_name}={ann.cookies[served.identity.cookie_name]}"
        address = served.url.replace("http", "ws")
        headers = {"Cookie": cookie}
        with (
            connect(f"{address}/rpc", origin=Origin(served.url), additional_headers=headers) as rpc,
            connect(f"{address}/api/v1/live", origin=Origin(served.url), additional_headers=headers) as live,
            ann.stream("GET", "/api/v1/monitor/stream") as stream,
        ):
            rpc.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "agent.list", "params": {}}))
            assert json.loads(rpc.recv(timeout=30))["result"] == []
            live.recv(timeout=30)
            began = time.monotonic()
            if how == "sign out":
                httpx.post(f"{served.url}/sign-out", headers={**headers, "Origin": served.url}, trust_env=False)
            elif how == "sign out everywhere":
                other.post("/account/sign-out")
            else:
                getattr(served.service.users, how)("local", "ann")
            for socket in (rpc, live):
                with pytest.raises(ConnectionClosed):
                    while True:
                        socket.recv(timeout=30)
                assert socket.close_code == 1008
            with pytest.raises(httpx.RemoteProtocolError):
                list(stream.iter_bytes())
            assert time.monotonic() - began < 2.0
        assert ask(ann, "agents.list").status_code == 401
        assert ask(other, "agents.list").status_code == (200 if how == "sign out" else 401)


def test_the_link_of_the_local_user_and_the_local_token_always_work(served: Served) -> None:
    with browser(served) as before, browser(served) as after, browser(served) as own:
        before.get("/enter", params={"code": served.identity.invite()})
        joined(served, "ann")
        assert ask(before, "agents.list").status_code == 200
        after.get("/enter", params={"code": served.identity.invite()})
        assert ask(after, "agents.list").status_code == 200
        joined(served, "local")  # with an account, a link begins a session of it
        own.get("/enter", params={"code": served.identity.invite()})
        assert ask(own, "agents.list").status_code == 200
        drive(served.service.asynchronous.users.sign_out("local"))
        with served.command_line() as operator:
            assert ask(operator, "agents.list").status_code == 200
        eventually(lambda: ask(own, "agents.list").status_code == 401)
        assert own.get("/enter", params={"code": "never"}).status_code == 403


# --- invitations ------------------------------------------------------------------------------------------


def test_an_invited_person_sets_a_password_and_is_signed_in(served: Served) -> None:
    code = served.service.users.add("local", "ann").code
    with browser(served) as ann, browser(served) as late:
        assert ann.get("/invite", params={"code": code}).status_code == 200
        form = ann.get("/invite", params={"code": code})  # looking does not use it up
        assert 'autocomplete="new-password"' in form.text
        assert 'autocomplete="username" value="ann"' in form.text
        assert form.headers["referrer-policy"] == "same-origin"
        assert form.headers["cache-control"] == "no-store"
        answer = ann.post("/invite", data={"code": code, "password": PASSWORD, "again": PASSWORD})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert ask(ann, "agents.list").status_code == 200
        again = {"code": code, "password": "another one entirely", "again": "another one entirely"}
        assert late.post("/invite", data=again).status_code == 404
        assert late.get("/invite", params={"code": code}).status_code == 404
        assert sign_in(late, "ann").status_code == 303


def test_a_password_that_cannot_be_used_keeps_the_invitation(served: Served) -> None:
    code = served.service.users.add("local", "ann").code
    refusals = {
        ("short", "short"): "The password must have 10",
        ("ann", "ann"): "The password must have 10",
        (PASSWORD, "another one"): "The two passwords are not the same.",
    }
    with browser(served) as ann:
        for (password, again), told in refusals.items():
            for _ in range(3):  # no guess: the code is right
                refused = ann.post("/invite", data={"code": code, "password": password, "again": again})
                assert (refused.status_code, error_in(refused)[: len(told)]) == (422, told)
        assert ann.post("/invite", data={"code": code, "password": PASSWORD, "again": PASSWORD}).status_code == 303


def test_wrong_codes_are_slowed(served: Served) -> None:
    served.service.users.add("local", "ann")
    with browser(served) as thief:
        data = {"code": "x" * 43, "password": PASSWORD, "again": PASSWORD}
        assert [thief.post("/invite", data=data).status_code for _ in range(6)] == [404] * 5 + [429]


def test_no_code_and_no_password_is_logged(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    code = served.service.users.add("local", "ann").code
    with caplog.at_level("DEBUG"), browser(served) as ann:
        ann.get("/invite", params={"code": code})
        ann.post("/invite", data={"code": code, "password": "too", "again": "too"})
        ann.post("/invite", data={"code": code, "password": PASSWORD, "again": PASSWORD})
        ann.get("/invite", params={"code": code})
        sign_in(ann, "ann", "a wrong password here")
    ours = "\n".join(record.getMessage() + str(record.__dict__) for record in caplog.records if record.name != "httpx")
    for secret in (code, PASSWORD, "a wrong password here"):
        assert secret not in "\n".join(line for line in ours.splitlines() if "httpcore" not in line)


# --- forms ------------------------------------------------------------------------------------------------


def test_a_broken_form_gets_a_clear_answer(served: Served) -> None:
    joined(served, "ann")
    form = "application/x-www-form-urlencoded"
    broken = [
        (b'{"name": "ann"}', "application/json", 415),
        (b"name=ann&" * 200, form, 422),
        (b"name=%ff", form, 422),
        (b"name=" + b"x" * 70_000, form, 413),
        (b"", form, 401),
        (b"name=%00&password=%00", form, 401),
    ]
    with browser(served) as client:
        for body, kind, status in broken:
            assert client.post("/sign-in", content=body, headers={"Content-Type": kind}).status_code == status


def test_pages_are_for_phones_and_the_dark_and_have_no_script(served: Served) -> None:
    joined(served, "ann")
    with browser(served) as ann:
        pages = [ann.get("/sign-in")]
        sign_in(ann, "ann")
        pages += [ann.get("/account"), ann.get("/sign-out")]
    for page in pages:
        assert page.status_code == 200
        assert '<meta name="viewport"' in page.text
        assert "prefers-color-scheme: dark" in page.text
        assert "<script" not in page.text
        assert parse_qs(urlsplit(str(page.url)).query) == {}
