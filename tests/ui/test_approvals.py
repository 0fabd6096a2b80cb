"""B3: an approval is a card on the answer that waits for it, and is decided there."""

from __future__ import annotations

from typing import Any

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


def cards(tab: Tab) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tab.listed["approvals"]
    return found


@pytest.mark.parametrize(
    ("action", "said", "verdict"),
    [
        ("approve", "Answer to pay: 5 paid", "Approved by you"),
        ("decline", "Answer to pay: a person has declined pay: too dear", "Declined by you"),
        ("always", "Answer to pay: 5 paid", "Always allowed by you"),
    ],
)
def test_a_person_decides_on_the_page_and_the_card_stays(tab: Tab, action: str, said: str, verdict: str) -> None:
    one = waits(tab)
    eventually(lambda: len(tab.look().shown) == 2)
    [card] = cards(tab)
    assert '<th scope="row">euros</th><td>5</td>' in card["html"]
    assert (card["id"], card["seq"]) == (one.approval_id, 2)
    assert card["actions"] == {"approve": "Approve", "decline": "Decline", "always": "Always allow"}
    assert tab.listed["asking"]
    reason = "too dear" if action == "decline" else ""
    tab.act("action", {"name": action, "seq": 0, "text": f"{one.approval_id} {reason}"})
    tab.settle()
    assert tab.look().shown[-1] == ("agent", said)
    assert tab.talk_id is not None
    for seen in (tab, Tab(service=tab.service).open(tab.talk_id)):
        [card] = cards(seen)
        assert (card["seq"], card["actions"], card["verdict"], card["note"]) == (2, {}, verdict, reason)
    for permission in tab.service.approvals.permissions(USER):
        tab.service.approvals.revoke(USER, permission.tool, profile=permission.profile)


def test_approvals_of_other_talks_are_hidden_and_decisions_made_elsewhere_are_shown(tab: Tab) -> None:
    one = waits(tab)
    other = Tab(service=tab.service).look().say("hello")
    other.settle()
    assert (other.look().notices, cards(other)) == ([], [])
    assert cards(tab.look())[0]["actions"]
    tab.service.approvals.decline(USER, one.approval_id)
    tab.act("action", {"name": "approve", "seq": 0, "text": f"{one.approval_id} "})
    assert tab.notices[0].startswith("This approval was declined already")
    tab.settle()
