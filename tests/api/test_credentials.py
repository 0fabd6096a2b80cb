"""Credentials are remembered for a moment, in bounded memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from roost.api import credentials
from roost.api.auth import Identity
from roost.api.credentials import Credential, CredentialKind, CredentialVerifier, Grant
from roost.errors import Unavailable
from tests.api.account_pages.people import browser, joined
from tests.api.serving import SECRET, Served, ask
from tests.api.test_tokens import client, created


def test_what_was_presented_is_not_kept_and_the_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "MOST_REMEMBERED", 10)
    asked = []

    async def verify(credential: Credential) -> Grant | None:
        asked.append(credential.kind)
        return Grant("ann") if credential.value == "good" else None

    async def verified() -> list[Grant | None]:
        verifier = CredentialVerifier(verify)
        for number in range(100):
            assert await verifier.verified(Credential(CredentialKind.ACCESS_TOKEN, f"{number}" * 10_000)) is None
        assert len(verifier._known) == 10
        assert all(len(mark) == 32 for mark in verifier._known)
        good = Credential(CredentialKind.TOKEN, "good")
        found = [await verifier.verified(good), await verifier.verified(good)]
        found.append(await verifier.verified(Credential(CredentialKind.PROXY, "good")))
        verifier.forget(good)
        return [*found, await verifier.verified(good)]

    assert asyncio.run(verified()) == [Grant("ann")] * 4
    assert len(asked) == 103


def test_a_credential_that_cannot_be_verified_does_not_keep_others_valid() -> None:
    """Such as an access token while the identity provider is away."""

    async def verify(credential: Credential) -> Grant | None:
        if credential.kind is CredentialKind.ACCESS_TOKEN:
            raise Unavailable("the identity provider does not answer")
        return None

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        ended.append((await receive())["type"])

    async def nothing(*_: object) -> Any:
        await asyncio.Event().wait()

    async def watched() -> None:
        verifier = CredentialVerifier(verify)
        async with verifier.running():
            first, second = (
                asyncio.create_task(verifier.watched(Credential(kind, "x"), serve, {"type": "http"}, nothing, nothing))
                for kind in (CredentialKind.ACCESS_TOKEN, CredentialKind.TOKEN)
            )
            async with asyncio.timeout(30):
                await second
            first.cancel()

    ended: list[str] = []
    asyncio.run(watched())
    assert ended == ["http.disconnect"]


def test_a_token_of_a_former_visitor_ends_and_that_of_others_does_not(served: Served) -> None:
    visitor = Identity(SECRET, "local").new_user()
    secrets = {name: created(served, user=name) for name in (visitor, "user_named", "robot", "local")}
    joined(served, "user_named")
    statuses = {}
    for name, secret in secrets.items():
        with client(served, secret) as program:
            statuses[name] = ask(program, "agents.list").status_code
    assert statuses == {visitor: 401, "user_named": 200, "robot": 200, "local": 200}
    with browser(served) as nobody:
        assert ask(nobody, "agents.list").status_code == 401
