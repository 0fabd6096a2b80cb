"""B3: what agents wait for outside of the open talk is counted on the page, and decided there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import roost
from roost.ui.sidebar.approval_list import summary
from tests.conftest import eventually
from tests.ui.conftest import USER, Tab


@pytest.fixture
def task(service: roost.AgentService) -> Iterator[str]:
    """A task whose agent waits for ann's word; what was asked before is decided."""
    for one in service.approvals.list(USER):
        service.approvals.refuse(USER, one.approval_id)
    service.agents.create(USER, "payer", profile="brain")
    task_id = service.tasks.send(USER, "payer", "pay")
    eventually(lambda: service.approvals.list(USER))
    yield task_id
    service.agents.delete(USER, "payer")
    for mail in service.mail.inbox(USER):
        service.mail.archive(USER, mail.mail_id)


def label(tab: Tab) -> str | None:
    return next((one.label for one in tab.app.button if one.key == "show_waiting"), None)


def test_nothing_is_shown_where_nothing_waits(tab: Tab) -> None:
    for one in tab.service.approvals.list(USER):
        tab.service.approvals.refuse(USER, one.approval_id)
    assert label(tab.look()) is None


def test_what_an_agent_waits_for_is_counted_and_allowed_on_the_page(tab: Tab, task: str) -> None:
    assert label(tab.look()) == "1 waiting for your approval"
    [one] = tab.service.approvals.list(USER)
    tab.click("show_waiting")
    assert any("asked by payer, since" in said.value for said in tab.app.markdown)
    tab.click(f"approve_{one.approval_id}")
    assert tab.service.tasks.wait(USER, task, 20).result == "Answer to pay: 5 paid"
    assert label(tab.look()) is None
    assert not tab.app.get("dialog")


def test_a_refusal_has_its_reason(tab: Tab, task: str) -> None:
    [one] = tab.look().service.approvals.list(USER)
    tab.click("show_waiting")
    tab.app.text_input(key=f"reason_{one.approval_id}").set_value("too dear")
    tab.click(f"decline_{one.approval_id}")
    assert "too dear" in (tab.service.tasks.wait(USER, task, 20).result or "")


def test_a_decision_made_elsewhere_is_shown_in_the_list(tab: Tab, task: str) -> None:
    [one] = tab.look().service.approvals.list(USER)
    tab.click("show_waiting")
    tab.service.approvals.refuse(USER, one.approval_id)
    tab.service.tasks.wait(USER, task, 20)
    tab.click(f"approve_{one.approval_id}")
    assert tab.notices[0].startswith("This approval was refused already")


def test_what_others_are_asked_is_not_there(tab: Tab, service: roost.AgentService) -> None:
    service.agents.create("bob", "payer", profile="brain")
    service.tasks.send("bob", "payer", "pay")
    eventually(lambda: service.approvals.list("bob"))
    assert label(tab.look()) is None
    service.agents.delete("bob", "payer")


def test_the_count_is_shown_as_far_as_it_is_known() -> None:
    assert [summary(1), summary(2), summary(200)] == [
        f"{many} waiting for your approval" for many in ("1", "2", "200 or more")
    ]
