"""B3: what agents wait for is counted on each page, decided on the page of approvals, and listed there afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import roost
from roost.ui.shell import frame
from roost.ui.shell.navigation import Route
from tests.conftest import eventually
from tests.ui.conftest import USER, Screen, Tab

NASTY = "<img src=x onerror=alert(1)> **bold** :material/home:"


@pytest.fixture
def screen(service: roost.AgentService) -> Iterator[Screen]:
    """The page of a user who was asked for nothing else; what was asked before is decided."""
    for one in service.approvals.list(USER):
        service.approvals.decline(USER, one.approval_id)
    yield Screen().look()
    for given in service.approvals.permissions(USER):
        service.approvals.revoke(USER, given.tool, agent_id=given.agent_id, profile=given.profile)


@pytest.fixture
def task(service: roost.AgentService, screen: Screen) -> Iterator[str]:
    """A task whose agent waits for ann's decision."""
    service.agents.create(USER, "payer", profile="brain")
    task_id = service.tasks.send(USER, "payer", "pay")
    eventually(lambda: service.approvals.list(USER))
    yield task_id
    service.agents.delete(USER, "payer")
    for mail in service.mail.inbox(USER):
        service.mail.archive(USER, mail.mail_id)


def links(screen: Screen) -> dict[str, str]:
    return {link.proto.label: link.proto.query_string for link in screen.app.get("page_link")}


def count(screen: Screen) -> str:
    return next(label for label in links(screen) if label.startswith("Approvals"))


def captions(screen: Screen) -> str:
    return "\n".join(one.value for one in screen.app.caption)


def test_nothing_is_counted_where_nothing_waits(screen: Screen) -> None:
    assert count(screen) == "Approvals"
    assert "Nothing waits for your approval." in captions(screen.go(Route.APPROVALS))
    assert "No decisions yet." not in captions(screen.go(Route.APPROVALS))


def test_what_an_agent_waits_for_is_counted_and_allowed_on_the_page(
    service: roost.AgentService, screen: Screen, task: str
) -> None:
    assert count(screen.look()) == "Approvals · 1"
    [one] = service.approvals.list(USER)
    screen.go(Route.APPROVALS)
    assert "<span>asked by agent payer, since" in "".join(body.proto.body for body in screen.app.get("html"))
    assert links(screen)["Agent payer"] == "agent=payer"
    assert any('<th scope="row">euros</th><td>5</td>' in body.proto.body for body in screen.app.get("html"))
    screen.click(f"approve_{one.approval_id}")
    assert service.tasks.wait(USER, task, 20).result == "Answer to pay: 5 paid"
    assert count(screen.look()) == "Approvals"


def test_a_declined_call_has_its_reason_there_and_in_the_history(
    service: roost.AgentService, screen: Screen, task: str
) -> None:
    [one] = service.approvals.list(USER)
    screen.go(Route.APPROVALS).app.text_input(key=f"reason_{one.approval_id}").set_value(NASTY)
    screen.click(f"decline_{one.approval_id}")
    assert NASTY in (service.tasks.wait(USER, task, 20).result or "")
    tool, arguments, decision, note, decided, asker, _ = screen.go(Route.APPROVALS, show="decided").table("decided")[0]
    assert (tool, arguments, decision, note, asker) == ("pay", "euros: 5", "Declined by you", NASTY, "payer")
    assert decided
    href = f"/runs?run={one.run_id}"
    assert screen.given("table")["rows"][0]["cells"][0] == {"text": "pay", "href": href, "title": "Open the run"}


def test_a_decision_made_elsewhere_is_shown_on_the_page(service: roost.AgentService, screen: Screen, task: str) -> None:
    [one] = service.approvals.list(USER)
    screen.go(Route.APPROVALS)
    service.approvals.decline(USER, one.approval_id)
    service.tasks.wait(USER, task, 20)
    screen.click(f"approve_{one.approval_id}")
    assert screen.notices[0].startswith("This approval was declined already")
    assert not screen.has(f"approve_{one.approval_id}")


def test_what_waits_is_not_yet_in_the_history(service: roost.AgentService, screen: Screen, task: str) -> None:
    waiting = {one.approval_id for one in service.approvals.list(USER)}
    screen.go(Route.APPROVALS, show="decided")
    shown = {row["id"] for row in screen.given("table")["rows"]} if screen.table("decided") else set()
    assert not shown & waiting


def test_what_others_are_asked_is_not_there(service: roost.AgentService, screen: Screen) -> None:
    service.agents.create("bob", "payer", profile="brain")
    service.tasks.send("bob", "payer", "pay")
    eventually(lambda: service.approvals.list("bob"))
    [one] = service.approvals.list("bob")
    assert count(screen.look()) == "Approvals"
    assert not screen.go(Route.APPROVALS).has(f"approve_{one.approval_id}")
    service.approvals.decline("bob", one.approval_id)
    assert str(one.run_id) not in str(screen.go(Route.APPROVALS, show="decided").app.get("bidi_component"))
    service.agents.delete("bob", "payer")


def test_the_count_is_shown_as_far_as_it_is_known() -> None:
    assert [frame.count(number, 200) for number in (0, 1, 199, 200)] == ["", "1", "199", "200+"]


def test_a_tool_that_is_always_allowed_is_listed_and_revoked(
    service: roost.AgentService, screen: Screen, task: str
) -> None:
    [one] = service.approvals.list(USER)
    screen.go(Route.APPROVALS).click(f"always_{one.approval_id}")
    assert service.tasks.wait(USER, task, 20).result == "Answer to pay: 5 paid"
    screen.go(Route.APPROVALS, show="always")
    assert any("**pay** :gray[· agent payer, since" in text.value for text in screen.app.markdown)
    [revoke] = [button.key for button in screen.app.button if str(button.key).startswith("revoke_")]
    screen.click(str(revoke))
    assert service.approvals.permissions(USER) == []
    assert "None. Choose *Always allow*" in captions(screen)


def test_a_talk_that_asks_is_named_and_linked(service: roost.AgentService, screen: Screen) -> None:
    tab = Tab(service=service).look().say("pay")
    eventually(lambda: service.approvals.list(USER))
    service.rename(USER, str(tab.talk_id), NASTY)
    found = links(screen.go(Route.APPROVALS))
    [label] = [label for label, query in found.items() if query == f"talk={tab.talk_id}"]
    assert label.startswith("Talk: \\<img src\\=x")
    assert count(tab.look()) == "Approvals · 1", "the same on the page of the talk"
    service.approvals.decline(USER, service.approvals.list(USER)[0].approval_id)
    tab.settle()


def test_what_a_shared_agent_asked_in_the_talk_of_another_links_to_the_agent_only(
    service: roost.AgentService, screen: Screen
) -> None:
    service.agents.create(USER, "shared", profile="brain", shared=True)
    talk = service.create_talk_session("bob", agent=f"agent:{USER}/shared")
    service.add_message("bob", talk, "pay")
    eventually(lambda: service.approvals.list(USER))
    assert [query for query in links(screen.go(Route.APPROVALS)).values() if talk in query] == []
    [one] = service.approvals.list(USER)
    service.approvals.decline(USER, one.approval_id)
    for _ in service.stream_messages("bob", talk):
        pass
    row = screen.go(Route.APPROVALS, show="decided").given("table")["rows"][0]
    assert [cell["href"] for cell in row["cells"] if isinstance(cell, dict) and "href" in cell] == [
        "/agents?agent=shared"
    ]
    service.agents.delete(USER, "shared")


def test_one_approval_has_a_url_before_and_after_its_decision(
    service: roost.AgentService, screen: Screen, task: str
) -> None:
    [one] = service.approvals.list(USER)
    screen.go(Route.APPROVALS, approval=one.approval_id).click(f"approve_{one.approval_id}")
    service.tasks.wait(USER, task, 20)
    assert [row[2] for row in screen.look().table("decided")] == ["Approved by you"]
    screen.go(Route.APPROVALS, approval="never")
    assert screen.notices[0].startswith("There is no approval 'never'")


@pytest.fixture
def interrupted(task: str, service: roost.AgentService, store_file: Path) -> roost.Approval:
    """Approval of a call in the middle of which the program ended."""
    [one] = service.approvals.list(USER)
    with closing(sqlite3.connect(store_file)) as store, store:
        store.execute("UPDATE approvals SET kind = 'unknown' WHERE approval_id = ?", (one.approval_id,))
    return one


def test_the_result_of_an_interrupted_call_is_recorded_on_the_page(
    service: roost.AgentService, screen: Screen, task: str, interrupted: roost.Approval
) -> None:
    key = interrupted.approval_id
    screen.go(Route.APPROVALS)
    assert any("not known whether it was done" in text.value for text in screen.app.text)
    labels = {str(button.key): button.label for button in screen.app.button if str(button.key).endswith(key)}
    assert labels == {f"approve_{key}": "Run again", f"decline_{key}": "Give up", f"answer_{key}": "Record result"}
    screen.app.text_area(key=f"result_{key}").set_value("5 paid by hand")
    screen.click(f"answer_{key}")
    assert service.tasks.wait(USER, task, 20).result == "Answer to pay: 5 paid by hand"
    row = screen.go(Route.APPROVALS, show="decided").table("decided")[0]
    assert row[2:4] == ["Result given by you", "5 paid by hand"]
