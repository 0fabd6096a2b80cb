"""Signing in at an identity provider, and everything that such a provider or a thief may try."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest

from roost.api.sign_in import oidc
from roost.api.sign_in.oidc import OidcProvider
from roost.core.accounts import guesses
from roost.core.accounts.users import Role
from roost.errors import Unavailable
from roost.oidc_settings import OidcSettings
from tests.api.account_pages.people import browser, joined
from tests.api.serving import Served, ask, serving
from tests.api.sign_in.provider import CLIENT, SECRET, SHARED, Provider, provider
from tests.api.test_tokens import client
from tests.conftest import Open


@pytest.fixture
def idp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setenv("TEST_OIDC_SECRET", SECRET)
    monkeypatch.setattr(oidc, "KEYS_PAUSE", 0.0)
    monkeypatch.setattr(oidc, "FAILURE_LIFE", 0.0)
    monkeypatch.setattr(guesses, "FREE", 100)
    with provider() as running:
        yield running


@pytest.fixture
def serve(service: Open, idp: Provider) -> Any:
    @contextmanager
    def start(**options: Any) -> Iterator[Served]:
        settings = {"issuer": idp.issuer, "client_id": CLIENT, "client_secret": "TEST_OIDC_SECRET"}
        with serving(service(), oidc=settings | {"allowed_domains": ["example.com"]} | options) as running:
            yield running

    return start


def go(person: httpx.Client, path: str = "/") -> tuple[httpx.Response, str]:
    """Go to the provider and back; the answer to that, and where the provider has sent the browser."""
    started = person.get("/oidc/start", params={"next": path})
    assert started.status_code == 303, started.text
    back = httpx.get(started.headers["location"], trust_env=False).headers["location"]
    return person.get(back), back


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_a_person_signs_in_at_the_provider(serve: Any, idp: Provider, algorithm: str) -> None:
    idp.rotate(algorithm)
    idp.claims["preferred_username"] = "Ann Smith"
    with serve(label="Example") as served, browser(served) as ann:
        assert ann.get("/docs").headers["location"] == "/sign-in?next=%2Fdocs"
        page = ann.get("/sign-in?next=%2Fdocs").text
        assert '<a class="button" href="/oidc/start?next=%2Fdocs">Sign in with Example</a>' in page
        answer, _ = go(ann, "/docs")
        assert (answer.status_code, answer.headers["location"]) == (303, "/docs")
        assert ask(ann, "agents.list").status_code == 200
        assert "<b>ann-smith</b>" in ann.get("/account").text
        go(ann)
        assert [one.user_id for one in served.service.users.list("local")] == ["ann-smith"]
        assert served.service.users.audit("local")[0].detail == idp.issuer
        assert not [one for one in ann.cookies.jar if one.name.endswith("_oidc")]


def test_the_session_ends_after_a_day_and_when_the_account_is_disabled(serve: Any, idp: Provider) -> None:
    with serve() as served, browser(served) as ann:
        go(ann)
        cookie = served.identity.read_cookie(ann.cookies[served.identity.cookie_name])
        assert cookie is not None
        assert cookie.until == pytest.approx(time.time() + 86_400, abs=60)
        assert served.identity.read_cookie(served.identity.renewed(cookie)).until == cookie.until
        served.service.users.disable("local", "ann")
        answer, _ = go(ann)
        assert (answer.status_code, "disabled" in answer.text) == (403, True)


def test_only_those_with_a_verified_address_of_the_settings_sign_in(serve: Any, idp: Provider) -> None:
    people: list[tuple[dict[str, Any], bool]] = [
        ({"email": "bob@example.com"}, True),
        ({"email": "Bob@EXAMPLE.com"}, True),
        ({"email": "guest@other.example"}, True),
        ({"email": "bob@other.example"}, False),
        ({"email": "bob@example.com.evil.example"}, False),
        ({"email_verified": False}, False),
        ({"email_verified": None}, False),
        ({"email": None}, False),
        ({"email": ["ann@example.com"]}, False),
    ]
    usual = idp.claims
    with serve(allowed_emails=["guest@other.example"]) as served:
        for number, (claims, is_allowed) in enumerate(people):
            idp.claims = usual | {"sub": f"{number}"} | claims
            with browser(served) as person:
                assert go(person)[0].status_code == (303 if is_allowed else 403), claims
                assert ask(person, "agents.list").status_code == (200 if is_allowed else 401)
        assert len(served.service.users.list("local")) == 3


def test_admins_of_the_settings_become_admins(serve: Any, idp: Provider) -> None:
    with serve(admins=["ANN@example.com"]) as served, browser(served) as ann, browser(served) as bob:
        go(ann)
        idp.claims |= {"sub": "2", "email": "bob@example.com"}
        go(bob)
        assert [one.role for one in served.service.users.list("local")] == [Role.ADMIN, Role.USER]
        assert ask(ann, "users.list").status_code == 200
        assert ask(bob, "users.list").status_code == 403


def test_no_account_and_no_data_of_others_is_taken_over_by_a_name(serve: Any, idp: Provider) -> None:
    with serve() as served, browser(served) as thief:
        joined(served, "ann")
        served.service.create_talk_session("bob", profile="echo")
        for number, name in enumerate(("ann", "bob", "local", "ANN")):
            idp.claims |= {"sub": f"x{number}", "preferred_username": name}
            go(thief)
        found = sorted(one.user_id for one in served.service.users.list("local"))
        assert found == ["ann", "ann-2", "ann-3", "bob-2", "local-2"]


LIES: dict[str, dict[str, Any]] = {
    "nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "audience": {"aud": "another-client"},
    "several audiences": {"aud": [CLIENT, "another-client"]},
    "party": {"azp": "another-client"},
    "issuer": {"iss": "https://evil.example"},
    "expired": {"exp": int(time.time()) - 3600},
    "from the future": {"iat": int(time.time()) + 86_400, "nbf": int(time.time()) + 86_400},
    "no expiry": {"exp": None},
    "no subject": {"sub": None},
}


def test_an_id_token_that_is_not_as_it_should_be_signs_nobody_in(serve: Any, idp: Provider) -> None:
    with serve() as served, browser(served) as person:
        for lie, claims in LIES.items():
            idp.lies = claims
            answer, _ = go(person)
            assert (answer.status_code, "is not valid: sign in again" in answer.text) == (403, True), lie
        assert served.service.users.list("local") == []
        assert ask(person, "agents.list").status_code == 401


def test_a_signature_that_the_provider_did_not_make_signs_nobody_in(
    serve: Any, idp: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(time.time())
    public = idp.keys()["keys"][0]

    def forged(algorithm: str, key: Any, kid: str) -> Any:
        def token(**claims: Any) -> str:
            facts = {"iss": idp.issuer, "aud": CLIENT, "iat": now, "exp": now + 300} | idp.claims | claims
            return jwt.encode(facts, key, algorithm, {"kid": kid})

        return token

    other = Provider()
    forgeries = {
        "none": forged("none", None, idp.kid),
        "shared key of the list": forged("HS256", SHARED, "shared"),
        "client secret": forged("HS256", SECRET.encode(), idp.kid),
        "public key as a shared one": forged("HS256", str(public).encode(), idp.kid),
        "another key": forged("ES256", other.key, idp.kid),
        "unknown key": forged("ES256", other.key, "unknown"),
        "no token": lambda **_: "x.y.z",
    }
    with serve() as served, browser(served) as person:
        for kind, made in forgeries.items():
            monkeypatch.setattr(idp, "token", made)
            assert go(person)[0].status_code == 403, kind
        assert served.service.users.list("local") == []


def test_keys_may_rotate(serve: Any, idp: Provider) -> None:
    with serve() as served, browser(served) as ann:
        assert go(ann)[0].status_code == 303
        assert go(ann)[0].status_code == 303
        assert idp.asked.count("/keys") == 1
        assert idp.asked.count("/.well-known/openid-configuration") == 1
        idp.rotate("RS256")
        assert go(ann)[0].status_code == 303
        assert idp.asked.count("/keys") == 2
        assert len(served.service.users.list("local")) == 1


def test_an_answer_counts_once_and_only_in_the_browser_that_has_asked(serve: Any, idp: Provider) -> None:
    with serve() as served, browser(served) as ann, browser(served) as victim:
        answer, back = go(ann)
        assert answer.status_code == 303
        state = {"Cookie": "; ".join(f"{one.name}={one.value}" for one in ann.cookies.jar)}
        assert ann.get(back).status_code == 403
        started = ann.get("/oidc/start")
        kept = "; ".join(f"{one.name}={one.value}" for one in ann.cookies.jar)
        back = httpx.get(started.headers["location"], trust_env=False).headers["location"]
        assert victim.get(back).status_code == 403  # the code of somebody else (CSRF of the sign-in)
        assert ann.get(back).status_code == 303
        assert victim.get(back, headers={"Cookie": kept}).status_code == 403  # replayed with the cookie
        assert victim.get(back, headers=state).status_code == 403
        assert victim.get("/oidc/callback?code=x&state=").status_code == 403
        assert ask(victim, "agents.list").status_code == 401


def test_wrong_answers_are_slowed(serve: Any, idp: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guesses, "FREE", 5)
    with serve() as served, browser(served) as thief:
        codes = [thief.get("/oidc/callback?code=x&state=y").status_code for _ in range(6)]
        assert codes == [403] * 5 + [429]
        assert "/token" not in idp.asked


def test_another_provider_cannot_answer(serve: Any, idp: Provider) -> None:
    idp.metadata["authorization_response_iss_parameter_supported"] = True
    with serve() as served, browser(served) as ann:
        for issuer in ("https://evil.example", None):
            started = ann.get("/oidc/start")
            back = urlsplit(httpx.get(started.headers["location"], trust_env=False).headers["location"])
            asked = {name: values[0] for name, values in parse_qs(back.query).items() if name != "iss"}
            answer = ann.get(back.path, params=asked | ({"iss": issuer} if issuer else {}))
            assert (answer.status_code, "another identity provider" in answer.text) == (403, True)
        assert "/token" not in idp.asked
        refused = ann.get("/oidc/start").headers["location"]
        state = parse_qs(urlsplit(refused).query)["state"][0]
        answer = ann.get("/oidc/callback", params={"error": "<b>denied</b>", "state": state, "iss": idp.issuer})
        assert (answer.status_code, "<b>denied" in answer.text) == (403, False)


def test_a_provider_that_cannot_be_used_is_reported(serve: Any, idp: Provider) -> None:
    broken: dict[str, dict[str, Any]] = {
        "calls itself by another name": {"issuer": "https://evil.example"},
        "is too large": {"padding": "x" * 2_000_000},
        "is not reached over https": {"authorization_endpoint": "http://evil.example/authorize"},
    }
    with serve() as served, browser(served) as ann:
        for told, idp.metadata in broken.items():
            answer = ann.get("/oidc/start")
            assert (answer.status_code, told in answer.text) == (503, True)
        assert ask(ann, "agents.list").status_code == 401


def test_a_provider_that_is_away_or_answers_nonsense_is_reported(serve: Any, idp: Provider) -> None:
    with serve() as served, browser(served) as ann:
        for nonsense in (b"[]", b"{", b"[" * 200_000, b"x" * 2_000_000):
            idp.answer_of_token = nonsense
            assert go(ann)[0].status_code == 503
        idp.answer_of_token = b'{"id_token": 3}'
        assert go(ann)[0].status_code == 403
        assert served.service.users.list("local") == []
    with serve(issuer="http://127.0.0.1:9") as served, browser(served) as ann:
        answer = ann.get("/oidc/start")
        assert (answer.status_code, "does not answer" in answer.text) == (503, True)


# --- access tokens ------------------------------------------------------------------------------------------


def test_an_access_token_for_this_api_acts_for_a_known_user(serve: Any, idp: Provider) -> None:
    with serve(audience="roost-api") as served, browser(served) as ann:
        token = idp.token("roost-api")
        with client(served, token) as program:
            assert ask(program, "agents.list").status_code == 401  # has never signed in at a page
        go(ann)
        with client(served, idp.token("roost-api", jti="2")) as program:
            assert ask(program, "agents.create", agentId="d", start=False).status_code == 201
        assert [one.agent_id for one in served.service.agents.list("ann")] == ["d"]
        refused = {
            "id token": idp.token(CLIENT),
            "another audience": idp.token("another"),
            "another person": idp.token("roost-api", sub="2"),
            "another issuer": idp.token("roost-api", iss="https://evil.example"),
            "expired": idp.token("roost-api", exp=int(time.time()) - 3600),
            "unsigned": jwt.encode({"sub": "1", "aud": "roost-api", "iss": idp.issuer}, "", "none"),
            "nonsense": "a.b.c",
        }
        for kind, secret in refused.items():
            with client(served, secret) as thief:
                assert ask(thief, "agents.list").status_code == 401, kind
        served.service.users.disable("local", "ann")
        with client(served, idp.token("roost-api", jti="3")) as program:
            assert ask(program, "agents.list").status_code == 401


def test_a_provider_that_is_away_is_asked_rarely_and_tokens_stay_valid(
    idp: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each request with a token would otherwise wait until the provider does not answer."""
    asked: list[str] = []

    async def away(url: str) -> dict[str, Any]:
        asked.append(url)
        raise Unavailable("the identity provider does not answer")

    async def subjects() -> list[str | None]:
        known = OidcProvider(
            OidcSettings(issuer=idp.issuer, client_id=CLIENT, audience="roost-api", allowed_domains=("*",))
        )
        found = [await known.subject_of(idp.token("roost-api"))]
        monkeypatch.setattr(oidc, "get_json", away)
        for life in ("KEYS_LIFE", "METADATA_LIFE"):
            monkeypatch.setattr(oidc, life, -1.0)
        for pause in ("KEYS_PAUSE", "FAILURE_LIFE"):
            monkeypatch.setattr(oidc, pause, 60.0)
        monkeypatch.setattr(oidc, "monotonic", lambda: time.monotonic() + 100.0)
        return found + [await known.subject_of(idp.token("roost-api", jti=str(number))) for number in range(5)]

    assert asyncio.run(subjects()) == ["1"] * 6
    assert len(asked) == 2, "the metadata, and the keys"


def test_without_an_audience_no_access_token_is_accepted(serve: Any, idp: Provider) -> None:
    with serve() as served, browser(served) as ann:
        go(ann)
        with client(served, idp.token(CLIENT)) as program:
            assert ask(program, "agents.list").status_code == 401
        assert "/keys" in idp.asked


def test_the_secret_and_the_codes_are_not_logged(serve: Any, idp: Provider, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"), serve() as served, browser(served) as ann:
        _, back = go(ann)
        idp.lies = {"nonce": "another"}
        go(ann)
    code = parse_qs(urlsplit(back).query)["code"][0]
    ours = [record for record in caplog.records if record.name.startswith(("roost", "uvicorn"))]
    assert not [record for record in ours if code in str(vars(record)) or SECRET in str(vars(record))]
