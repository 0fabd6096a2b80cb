"""B3: what an agent waits for, outside of any talk, is counted in the sidebar and decided on the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from roost.client import connect
from tests.browser.conftest import Server, Visit
from tests.browser.steps import say, shot

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
        expect(dialog.locator("pre")).to_have_text('"euros": 5')
        shot(page, "waiting")
        dialog.get_by_role("button", name="Approve").click()
        expect(dialog).to_have_count(0)
        expect(count).to_have_count(0)
        assert service.tasks.wait(user, task, 15).result == "5 paid"


def test_a_long_argument_is_folded_where_one_decides_and_unfolds_to_its_end(visit: Visit, server: Server) -> None:
    page = visit()
    say(page, "order 5000")
    asked = page.locator(".st-key-asking")
    expect(asked.get_by_role("alert")).to_have_text("May this be done? pay")
    expect(asked.locator(".roost-arguments > pre")).to_have_text('"euros": 5')
    folded = asked.locator("details")
    expect(folded.locator("summary")).to_contain_text("(5,010 characters, click to show all)")
    expect(folded.locator("pre")).to_be_hidden()
    folded.locator("summary").click()
    expect(folded.locator("pre")).to_be_visible()
    assert str(folded.locator("pre").text_content()).endswith('x the end"')
    shot(page, "folded")
    page.get_by_role("button", name="Deny").click()
    expect(asked).to_have_count(0)
