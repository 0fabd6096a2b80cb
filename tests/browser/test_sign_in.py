"""Signing in, as people see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import roost
from roost.hosts.pending import drive
from roost.stores.sqlite import owner
from tests.browser.conftest import SETTINGS, free_port, up
from tests.browser.steps import expect_messages, expect_rest, say, shot, talk_titles
from tests.browser.test_looks import faults

PASSWORD = "correct horse battery"
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "color_scheme": "dark"}


@dataclass(frozen=True)
class Home:
    """A running server with accounts, and a code of an invitation."""

    url: str
    code: str
    token: str

    def manage(self, verb: str, path: str) -> None:
        """Do what an admin does."""
        headers = {"Authorization": f"Bearer {self.token}"}
        httpx.request(verb, f"{self.url}/api/v1/{path}", headers=headers, trust_env=False).raise_for_status()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder: Path = tmp_path_factory.mktemp("accounts")
    (folder / "roost.toml").write_text(SETTINGS)
    with roost.open(f"sqlite:///{folder}/roost.db") as service:
        for name in ("ann", "bob", "eve"):
            code = service.users.add("local", name).code
            drive(service.asynchronous.users.redeem(code, PASSWORD, ""))
        code = service.users.add("local", "carl").code
    with up(folder, free_port()) as (url, _):
        yield Home(url, code, owner(folder / "roost.db.lock")["token"])


Open = Callable[..., Page]


@pytest.fixture
def tab(home: Home, browser: Browser) -> Iterator[Open]:
    contexts: list[BrowserContext] = []

    def opened(path: str = "/", **options: Any) -> Page:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.goto(home.url + path)
        return page

    yield opened
    for context in contexts:
        context.close()


def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_a_person_signs_in_talks_and_signs_out(home: Home, tab: Open) -> None:
    page = tab("/?talk=talk_nothing")
    expect(page).to_have_url(re.compile(r"/sign-in\?next="))
    expect(page.get_by_label("Name")).to_be_focused()
    shot(page, "sign-in")
    sign_in(page, "ann", "a wrong one")
    expect(page.get_by_role("alert")).to_have_text("Wrong name or password.")
    expect(page.get_by_label("Name")).to_have_value("ann")
    expect(page.get_by_label("Password")).to_be_focused()
    shot(page, "sign-in-wrong")
    assert faults(page) == []
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.locator(".roost-input")).to_be_editable()
    expect(page.get_by_text("Signed in as ann")).to_be_visible()
    say(page, "hello from ann")
    expect_messages(page, "hello from ann", "You said: hello from ann")
    expect_rest(page)
    shot(page, "signed-in")
    assert faults(page) == []
    page.get_by_role("link", name="Account").click()
    expect(page.get_by_role("heading", name="Your account")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("laptop")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator(".note code")).to_have_text(re.compile(r"^roost_\S{40,}$"))
    shot(page, "account")
    assert faults(page) == []
    page.get_by_role("link", name="Back to Roost").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Roost")).to_be_visible()
    page.goto(home.url)
    expect(page).to_have_url(re.compile("/sign-in$"))


def test_an_invited_person_sets_a_password_on_a_phone_in_the_dark(home: Home, tab: Open) -> None:
    page = tab(f"/invite?code={home.code}", **PHONE)
    expect(page.get_by_text("Choose a password for the account carl")).to_be_visible()
    page.get_by_label("New password").fill("long enough to use")
    page.get_by_label("Repeat the password").fill("another")
    page.get_by_label("Repeat the password").press("Enter")
    if page.get_by_role("alert").count():  # the browser itself asks for ten characters
        expect(page.get_by_role("alert")).to_have_text("The two passwords are not the same.")
    shot(page, "invite-phone-dark")
    assert faults(page) == []
    page.get_by_label("New password").fill("long enough to use")
    page.get_by_label("Repeat the password").fill("long enough to use")
    page.get_by_role("button", name="Set password and sign in").click()
    expect(page.locator(".roost-input")).to_be_editable()
    page.goto(home.url + "/account")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    shot(page, "account-phone-dark")
    assert faults(page) == []


def test_two_people_never_see_each_others_talks(tab: Open) -> None:
    ann, bob = tab(), tab()
    sign_in(ann, "eve")
    sign_in(bob, "bob")
    for page, words in ((ann, "a secret of eve"), (bob, "a secret of bob")):
        expect(page.locator(".roost-input")).to_be_editable()
        say(page, words)
        expect_messages(page, words, f"You said: {words}")
        expect_rest(page)
    expect(talk_titles(ann)).to_have_text(["a secret of eve"])
    expect(talk_titles(bob)).to_have_text(["a secret of bob"])
    bob.goto(ann.url)  # with the id of her talk
    expect(bob.get_by_text("This talk no longer exists.")).to_be_visible()
    expect(bob.get_by_text("a secret of eve")).to_have_count(0)


def test_a_session_that_ends_while_the_page_is_open_leads_to_sign_in(home: Home, tab: Open) -> None:
    page = tab()
    sign_in(page, "bob")
    expect(page.locator(".roost-input")).to_be_editable()
    page.locator(".roost-input").fill("not sent yet")
    home.manage("POST", "users/bob/disable")
    notice = page.locator("#roost-lost")
    expect(notice).to_have_text("You are signed out. Sign in")
    shot(page, "signed-out")
    home.manage("POST", "users/bob/enable")
    notice.get_by_role("link", name="Sign in").click()
    expect(page.get_by_role("heading", name="Sign in to Roost")).to_be_visible()
    sign_in(page, "bob")
    expect(page.locator(".roost-input")).to_be_editable()
    expect(page.get_by_text("Signed in as bob")).to_be_visible()


def test_a_user_of_a_proxy_sees_no_way_to_sign_out_of_roost(tmp_path: Path, browser: Browser) -> None:
    by_proxy = 'proxy_user_header = "X-Forwarded-User"\ntrusted_proxies = ["127.0.0.0/8", "::1"]\n'
    (tmp_path / "roost.toml").write_text(by_proxy + SETTINGS)
    with up(tmp_path, free_port()) as (url, _):
        context = browser.new_context(extra_http_headers={"X-Forwarded-User": "ann"})
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.goto(url)
        expect(page.get_by_text("Signed in as ann")).to_be_visible(timeout=30_000)
        expect(page.get_by_role("link", name="Account")).to_be_visible()
        expect(page.get_by_role("button", name="Sign out")).to_have_count(0)
        context.close()
