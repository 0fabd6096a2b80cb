"""After signing in, a browser goes to a page of this server and nowhere else."""

from __future__ import annotations

import pytest

from roost.api.sign_in.paths import local_path, sign_in_path

ELSEWHERE = [
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "\t//evil.example",
    "https:evil.example",
    "https://evil.example/",
    "http:/evil.example",
    "javascript:alert(1)",
    "evil.example",
    "/a\\b",
    "/a\nSet-Cookie: x=1",
    "/ü",
    "/sign-in?next=/",
    "/sign-out",
    "/oidc/start",
    "/enter?code=x",
    "/" + "x" * 3_000,
    "",
    None,
]


@pytest.mark.parametrize("asked", ELSEWHERE)
def test_anything_but_a_page_of_this_server_leads_home(asked: str | None) -> None:
    assert local_path(asked) == "/"


@pytest.mark.parametrize("asked", ["/", "/?talk=talk_1", "/docs/guides/agents#mail", "/account", "/a/../b?x=//y"])
def test_a_page_of_this_server_is_kept(asked: str) -> None:
    assert local_path(asked) == asked


def test_the_sign_in_page_leads_back() -> None:
    assert sign_in_path("/", "") == "/sign-in"
    assert sign_in_path("/", "talk=a&x=1") == "/sign-in?next=%2F%3Ftalk%3Da%26x%3D1"
    assert sign_in_path("//evil.example", "") == "/sign-in"
