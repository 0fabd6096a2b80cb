"""B3: what an agent waits for, outside of any talk, is counted in the sidebar and decided on the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from roost.client import connect
from tests.browser.conftest import Server, Visit
from tests.browser.steps import expect_messages, messages, say, shot, unfold_settings

pytestmark = pytest.mark.browser


def test_an_approval_of_a_task_is_counted_and_granted_and_the_task_continues(visit: Visit, server: Server) -> None:
    user = server.identity.local_user
    page = visit(user=user)
    count = page.get_by_role("button", name="1 waiting for your approval")
    expect(count).to_have_count(0)
    with connect(server.url, server.token) as service:
        service.agents.create(user, "payer", profile="steered")
        task = service.tasks.send(user, "payer", "pay 5")
        count.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("asked by payer, since")
        expect(dialog.get_by_role("row", name="euros 5")).to_be_visible()
        shot(page, "waiting")
        dialog.get_by_role("button", name="Approve").click()
        expect(dialog).to_have_count(0)
        expect(count).to_have_count(0)
        assert service.tasks.wait(user, task, 15).result == "5 paid"


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
    page.get_by_role("button", name="Tools always allowed").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("pay · profile steered, since")
    dialog.get_by_role("button", name="Revoke").click()
    expect(dialog).to_contain_text("None. Choose Always allow")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    say(page, "pay 8")
    expect(cards.last.get_by_role("button")).to_have_text(["Approve", "Decline", "Always allow"])
    expect(cards).to_have_count(5)
    page.get_by_role("button", name="Decline").click()
    expect(cards.last).to_contain_text("Declined by you, ")
