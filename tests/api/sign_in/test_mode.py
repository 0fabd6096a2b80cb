"""Visitors have to sign in as soon as somebody can, and never stop having to."""

from __future__ import annotations

import asyncio

import pytest

from roost.api.sign_in import mode
from roost.api.sign_in.mode import SignInMode
from roost.oidc_settings import OidcSettings
from roost.settings import Settings

PROVIDER = OidcSettings(issuer="https://id.example", client_id="x", allowed_domains=("*",))


def test_deleting_the_last_account_does_not_open_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mode, "REMEMBERED", 0)
    answers = iter([False, True, False])

    async def has_accounts() -> bool:
        return next(answers)

    async def looks() -> list[bool]:
        looking = SignInMode(Settings(), has_accounts)
        return [await looking.look() for _ in range(4)]

    assert asyncio.run(looks()) == [False, True, True, True]


@pytest.mark.parametrize(
    ("settings", "is_on"),
    [
        (Settings(), False),
        (Settings(trusted_proxies=("10.0.0.1",), hosts=("roost.example",)), False),
        (Settings(host="0.0.0.0"), True),
        (Settings(behind_proxy=True), True),
        (Settings(oidc=PROVIDER), True),
        (Settings(proxy_user_header="X-User", trusted_proxies=("10.0.0.1",)), True),
    ],
)
def test_settings_that_let_others_in_or_sign_them_in_need_no_account(settings: Settings, is_on: bool) -> None:
    assert SignInMode(settings).is_on is is_on
