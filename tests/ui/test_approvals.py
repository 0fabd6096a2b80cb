"""B3: what an answer waits for is asked on the page, and decided there."""

from __future__ import annotations

import pytest

import roost
from tests.conftest import eventually
from tests.ui.conftest import USER, Tab


def waits(tab: Tab) -> roost.Approval:
    """Say something for which a person is asked; what is asked."""
    tab.say("pay")
    eventually(lambda: tab.service.approvals.list(USER))
    [one] = tab.service.approvals.list(USER)
    return one


@pytest.mark.parametrize(
    ("key", "said"), [("grant", "Answer to pay: 5 paid"), ("refuse", "Answer to pay: a person has refused pay")]
)
def test_a_person_decides_on_the_page(tab: Tab, key: str, said: str) -> None:
    waits(tab)
    eventually(lambda: len(tab.look().shown) == 2)
    assert tab.notices == ['May this be done? pay {"euros": 5}']
    assert tab.given["asking"]
    tab.click(key)
    tab.settle()
    assert tab.look().shown[-1] == ("agent", said)
    assert (tab.notices, tab.has("grant")) == ([], False)


def test_approvals_of_other_talks_are_hidden_and_decisions_made_elsewhere_are_shown(tab: Tab) -> None:
    one = waits(tab)
    other = Tab(tab.service).look().say("hello")
    other.settle()
    assert (other.look().notices, other.has("grant")) == ([], False)
    assert tab.look().has("grant")
    tab.service.approvals.refuse(USER, one.approval_id)
    tab.click("grant")
    assert tab.notices[0].startswith("This approval was refused already")
    tab.settle()
