"""A9 in a browser: mail is written to an agent, its answers appear in the open thread, and boxes are kept in order."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

import roost
from tests.browser import steps
from tests.browser.conftest import Server, Visit
from tests.browser.steps import expect_drawn, logged_errors, shot
from tests.browser.test_looks import LOOKS, PHONE, faults, sticking_out, unfold

pytestmark = pytest.mark.browser

NASTY = '<img src=x onerror="window.hacked = 1"> **bold** :material/home:'


@pytest.fixture
def service(server: Server) -> Iterator[roost.RemoteService]:
    """The service of the local user, who has an agent `gardener` and no mail."""
    user = server.identity.local_user
    with roost.connect(server.url, server.token) as service:
        for mail in service.mail.inbox(user, limit=1000):
            service.mail.archive(user, mail.mail_id)
        service.agents.create(user, "gardener", profile="steered")
        yield service
        service.agents.delete(user, "gardener")


def choose(page: Page, label: str, option: str) -> None:
    field = page.get_by_test_id("stSelectbox").filter(has_text=label).get_by_role("combobox")
    steps.choose(page, field, option, exact=True)


def test_a_mail_is_answered_live_in_its_thread_and_archived(
    service: roost.RemoteService, server: Server, visit: Visit
) -> None:
    user = server.identity.local_user
    page = visit("/mail", user=user)
    errors, letters = logged_errors(page), page.locator(".roost-letter")
    page.get_by_role("link", name="Write").click()
    choose(page, "To", "Agent gardener")
    page.get_by_label("Subject").fill(NASTY)
    page.get_by_label("Text").fill("<b>wet?</b> ![x](http://pictures.example/mail.png)")
    expect_drawn(page)
    shot(page, "mail-new")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text('onerror="window.hacked = 1"> **bold** :')
    expect(letters).to_have_count(2)
    expect(letters.first).to_contain_text("processed")
    expect(letters.last).to_contain_text("<b>wet?</b> ![x](http://pictures.example/mail.png)")
    reply = page.get_by_label("Reply to agent gardener")
    reply.fill("and the herbs?")
    thread = re.search(r"thread=(\w+)", page.url)
    assert thread is not None
    newest = service.mail.thread(user, thread[1])[-1]
    service.mail.reply(user, newest.mail_id, "one moment", sender="agent:gardener")
    expect(letters).to_have_count(3)
    expect(reply).to_have_value("and the herbs?")
    page.get_by_role("radio", name="high").click()
    page.get_by_role("button", name="Send").click()
    expect(letters).to_have_count(5)
    expect(letters.nth(3)).to_contain_text("high priority")
    expect(letters.last).to_contain_text("and the herbs?")
    expect(reply).to_have_value("")
    expect_drawn(page)
    shot(page, "mail-thread")
    assert faults(page) == []
    page.reload()
    expect(letters).to_have_count(5)
    page.get_by_role("link", name="Back to Your mail").click()
    expect(page.get_by_role("row", name=NASTY)).to_have_count(3)
    page.get_by_label("Choose all").check()
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_text("No mail. Agents write to you here")).to_be_visible()
    choose(page, "Mailbox", "Agent gardener")
    expect(page).to_have_url(re.compile("box=agent%3Agardener"))
    expect(page.get_by_role("row", name="replied")).to_have_count(2)
    page.go_back()
    expect(page.get_by_text("No mail. Agents write to you here")).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert errors == []


def test_every_state_of_the_page_is_tidy_in_every_look(
    service: roost.RemoteService, server: Server, visit: Visit
) -> None:
    user = server.identity.local_user
    for number, priority in enumerate(["low", "normal", "high", "urgent"] * 3):
        subject = f"Report number {number} " + "with a subject that is longer than its place " * (number % 5 == 1)
        mail_id = service.mail.send(
            user, f"user:{user}", subject, "All is well. " * 30, sender="agent:gardener", priority=priority
        )
        if number % 3 == 0:
            service.mail.read(user, mail_id)
    page, report = visit("/mail", user=user), "Report number 11"
    page.goto(server.url + "/mail?box=agent:never")
    expect(page.get_by_role("alert")).to_contain_text("There is no mailbox")
    shot(page, "mail-failing")
    page.goto(server.url + "/mail?show=unread&box=agent:gardener")
    expect(page.get_by_text("No unread mail.")).to_be_visible()
    shot(page, "mail-empty")
    for look, options in LOOKS.items():
        page = visit("/mail?order=urgent", user=user, **options)
        errors = logged_errors(page)
        expect(page.get_by_role("row", name=report)).to_be_visible()
        tidy(page, f"mail-{look}-busy")
        page.get_by_role("link", name=report).click()
        expect(page.locator(".roost-letter")).to_be_visible()
        tidy(page, f"mail-{look}-thread")
        assert errors == []
    unfold(page)  # on the phone
    page.get_by_role("link", name="Approvals").click()
    expect(page.get_by_text("Nothing waits for your approval.")).to_be_in_viewport(ratio=1)
    expect(page.locator(".st-key-brand")).not_to_be_in_viewport()


def tidy(page: Page, name: str) -> None:
    expect_drawn(page)
    shot(page, name)
    assert sticking_out(page) == [], name
    assert page.viewport_size == PHONE["viewport"] or faults(page) == [], name


def test_two_users_side_by_side_see_their_own_mail_only(visit: Visit) -> None:
    ann, bob = visit("/mail?write=1", user="mail-ann"), visit("/mail", user="mail-bob")
    choose(ann, "To", "Yourself")
    ann.get_by_label("Subject").fill("a secret")
    ann.get_by_label("Text").fill("of ann's")
    ann.get_by_role("button", name="Send").click()
    expect(ann.locator(".roost-letter")).to_contain_text("of ann's")
    bob.goto(ann.url)
    expect(bob.get_by_role("alert")).to_contain_text("There is no thread")
    expect(bob.get_by_text("of ann's")).to_have_count(0)
    bob.get_by_role("link", name="Back to Your mail").click()
    expect(bob.get_by_text("No mail. Agents write to you here")).to_be_visible()
