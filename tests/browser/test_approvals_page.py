"""B3: what agents wait for is counted in the sidebar of each page, and decided on the page of approvals."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from roost.client import connect
from tests.browser.conftest import Server, Visit
from tests.browser.steps import expect_drawn, expect_messages, logged_errors, messages, say, shot, unfold_settings
from tests.browser.test_looks import faults, sticking_out

pytestmark = pytest.mark.browser


def test_an_approval_of_a_task_is_counted_and_approved_and_the_task_continues(visit: Visit, server: Server) -> None:
    user = server.identity.local_user
    page, other = visit(user=user), visit("/approvals")
    errors = logged_errors(page)
    count = page.get_by_role("link", name="Approvals · 1")
    expect(count).to_have_count(0)
    with connect(server.url, server.token) as service:
        service.agents.create(user, "payer", profile="steered")
        task = service.tasks.send(user, "payer", "pay 5")
        count.click()
        main = page.get_by_test_id("stMain")
        expect(main).to_contain_text("asked by agent payer, since")
        expect(page).to_have_url(re.compile("/approvals$"))
        expect(page.get_by_role("row", name="euros 5")).to_be_visible()
        talks = page.get_by_role("link", name="Talks")
        talks.hover()
        page.mouse.down()
        expect(talks).to_have_attribute("href", f"{server.url}/")  # so that a new tab opens the right page
        page.get_by_role("heading", level=1).hover()
        page.mouse.up()
        expect(page.get_by_role("link", name="Agent payer")).to_have_attribute("href", re.compile("agent=payer"))
        expect_drawn(page)
        shot(page, "approvals-waiting")
        assert faults(page) == []
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 390, "height": 844})
        expect(page.locator(".st-key-brand")).not_to_be_in_viewport()
        shot(page, "approvals-phone-dark")
        assert sticking_out(page) == faults(page) == []
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1280, "height": 800})
        page.get_by_label("Reason, if you decline").fill("too <b>dear</b>")
        page.keyboard.press("Enter")
        service.agents.create(user, "news", profile="other")  # the page is drawn again, and keeps what is typed
        expect_drawn(page)
        expect(page.get_by_label("Reason, if you decline")).to_have_value("too <b>dear</b>")
        page.get_by_role("button", name="Approve").click()
        expect(main).to_contain_text("Nothing waits for your approval.")
        expect(count).to_have_count(0)
        assert service.tasks.wait(user, task, 15).result == "5 paid"
        declined = service.tasks.send(user, "payer", "order 2000")
        page.get_by_label("Reason, if you decline").fill("too <b>dear</b>")
        page.get_by_role("button", name="Decline").click()
        expect(main).to_contain_text("Nothing waits for your approval.")
        service.tasks.cancel(user, declined)
        page.get_by_text("Decided", exact=True).click()
        expect(page).to_have_url(re.compile("show=decided"))
        expect(page.get_by_role("row", name="Declined by you").filter(has_text="too <b>dear</b>")).to_be_visible()
        expect_drawn(page)
        shot(page, "approvals-decided")
        assert faults(page) == []
        page.reload()
        expect(page.get_by_role("row", name=re.compile("Approved by you"))).to_be_visible()
        page.go_back()
        expect(main).to_contain_text("Nothing waits for your approval.")
        for name in ("payer", "news"):
            service.agents.delete(user, name)
    expect(other.get_by_test_id("stMain")).to_contain_text("Nothing waits for your approval.")
    other.goto(f"{server.url}/approvals?show=decided")
    expect(other.get_by_test_id("stMain")).to_contain_text("No decisions yet.")
    assert errors == []


def test_an_approval_is_a_card_that_stays_with_its_decision_and_a_tool_can_be_allowed_always(visit: Visit) -> None:
    page = visit()
    say(page, "order 5000")
    cards = page.locator(".roost-approval")
    expect(cards.locator("th")).to_have_text(["euros", "memo"])
    folded = cards.locator("details")
    expect(folded.locator("summary")).to_contain_text("(5,010 characters, click to show all)")
    expect(folded.locator("pre")).to_be_hidden()
    folded.locator("summary").click()
    expect(folded.locator("pre")).to_be_visible()
    assert str(folded.locator("pre").text_content()).endswith('x the end"')
    shot(page, "approval")
    cards.get_by_label("Reason").fill("too <b>dear</b>")
    page.get_by_role("button", name="Decline").click()
    expect(cards).to_contain_text("Declined by you")
    expect(cards).to_contain_text(": too <b>dear</b>")
    say(page, "pay 5")
    page.get_by_role("button", name="Approve").click()
    expect_messages(page, "order 5000", "has failed", "pay 5", "5 paid")
    answer = messages(page).nth(3).locator(".roost-approval")
    expect(answer).to_contain_text("Approved by you, ")
    page.reload()
    expect(answer).to_contain_text("Approved by you, ")
    expect(cards).to_have_count(2)
    say(page, "pay 6")
    page.get_by_role("button", name="Always allow").click()
    expect(cards.nth(2)).to_contain_text("Always allowed by you, ")
    say(page, "pay 7")
    expect(messages(page).nth(7)).to_contain_text("7 paid")
    expect(messages(page).nth(7).locator(".roost-approval")).to_contain_text("Always allowed by you, ")
    unfold_settings(page)
    talk = page.url
    page.get_by_role("link", name="Tools always allowed").click()
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("pay · profile steered, since")
    expect_drawn(page)
    shot(page, "approvals-always")
    page.get_by_role("button", name="Revoke").click()
    expect(main).to_contain_text("None. Choose Always allow")
    page.go_back()
    expect(page).to_have_url(talk)
    expect(cards).to_have_count(4)
    say(page, "pay 8")
    expect(cards.last.get_by_role("button")).to_have_text(["Approve", "Decline", "Always allow"])
    expect(cards).to_have_count(5)
    page.get_by_role("button", name="Decline").click()
    expect(cards.last).to_contain_text("Declined by you, ")
