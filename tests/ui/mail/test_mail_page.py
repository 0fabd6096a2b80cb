"""A9 on the page of mail: mailboxes, threads from either end, replies, new mail, and archiving."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates

import roost
from roost.ui.mail import mail_list, opened_thread
from roost.ui.shell.navigation import Route
from tests.conftest import eventually
from tests.ui.conftest import USER, Screen, Tab

NASTY = "<img src=x onerror=alert(1)> **bold** :smile:"
ME, D = f"user:{USER}", "agent:mailed"


@pytest.fixture
def screen(service: roost.AgentService) -> Iterator[Screen]:
    """A page of ann, who has no other mail, and the agent `mailed`, which does not look at its mail."""
    for mail in service.mail.inbox(USER, limit=1000):
        service.mail.archive(USER, mail.mail_id)
    service.agents.create(USER, "mailed", profile="brain", start=False)
    yield Screen().look()
    service.agents.delete(USER, "mailed")


def links(screen: Screen) -> dict[str, str]:
    return {link.proto.label: link.proto.query_string for link in screen.app.get("page_link")}


def texts(screen: Screen) -> str:
    return "\n".join(html.proto.body for html in screen.app.get("html"))


def subjects(screen: Screen) -> list[str]:
    """Return the subjects that are listed."""
    found = [one for one in screen.app.get("bidi_component") if "table" in one.proto.component_name]
    return [row["cells"][0]["text"] for row in screen.given("table")["rows"]] if found else []


def query(screen: Screen) -> dict[str, str]:
    return {name: found if isinstance(found, str) else found[0] for name, found in screen.app.query_params.items()}


def test_unread_mail_is_counted_and_marked_by_a_sign_and_a_word(service: roost.AgentService, screen: Screen) -> None:
    service.mail.send(USER, ME, "old", "words")
    service.mail.read(USER, service.mail.inbox(USER)[0].mail_id)
    service.mail.send(USER, ME, "new", "of\nthe day", sender=D, priority="high")
    screen.go(Route.MAIL)
    assert "Mail · 1" in links(screen)
    new, old = screen.given("table")["rows"]
    assert (new["cells"][0]["text"], old["cells"][0]["text"]) == ("● new", "old")
    assert ("light" in new["cells"][0], old["cells"][0]["light"]) == (False, True)
    shown = [[cell if isinstance(cell, str) else cell["text"] for cell in row["cells"]] for row in (new, old)]
    assert [row[1:4] + row[5:] for row in shown] == [
        ["agent mailed", "high", "unread", "of the day"],
        ["you", "normal", "read", "words"],
    ]


def test_an_opened_thread_is_read_and_answered_and_archived(service: roost.AgentService, screen: Screen) -> None:
    mail_id = service.mail.send(USER, ME, NASTY, "*text* <script>", sender=D, priority="low")
    screen.go(Route.MAIL, thread=mail_id)
    assert service.mail.unread_count(USER) == 0
    assert "Mail" in links(screen), "it is not counted any more"
    assert "*text* &lt;script&gt;" in texts(screen)
    assert "<script>" not in texts(screen).replace("<script>/*", "")
    assert screen.app.title[0].value.startswith("\\<img src\\=x")
    screen.app.text_area(key=f"reply_{mail_id}_text_0").set_value("thanks")
    screen.app.button_group(key=f"reply_{mail_id}_priority").set_value("urgent")
    screen.click(f"reply_{mail_id}_send")
    first, answer = service.mail.thread(USER, mail_id)
    assert (first.status, answer.body, answer.priority) == ("replied", "thanks", "urgent")
    assert (answer.sender, answer.recipient) == (ME, f"agent:{USER}/mailed")
    assert screen.app.text_area(key=f"reply_{mail_id}_text_1").value == ""
    screen.click("archive_thread")
    assert "thread" not in query(screen)
    assert service.mail.inbox(USER) == []
    assert subjects(screen.go(Route.MAIL, show="archived"))[0] == NASTY


def test_a_reply_that_is_refused_stays_in_its_field(service: roost.AgentService, screen: Screen) -> None:
    mail_id = service.mail.send(USER, ME, "news", "words", sender=D)
    screen.go(Route.MAIL, thread=mail_id)
    screen.app.text_area(key=f"reply_{mail_id}_text_0").set_value("a\0b")
    screen.click(f"reply_{mail_id}_send")
    assert screen.notices
    assert screen.app.text_area(key=f"reply_{mail_id}_text_0").value == "a\0b"
    assert len(service.mail.thread(USER, mail_id)) == 1


def test_a_thread_is_whole_from_either_end_and_what_agents_read_is_not_marked(
    service: roost.AgentService, screen: Screen
) -> None:
    first = service.mail.send(USER, D, "plants", "wet?")
    answer = service.mail.reply(USER, first, "dry", sender=D)
    for box in ({}, {"box": D}):
        found = texts(screen.go(Route.MAIL, thread=first, **box))
        assert ("wet?" in found, "dry" in found) == (True, True)
        assert "<h2>you</h2><span>to agent mailed" in found
        assert "delivered" in found
    assert screen.app.text_area[0].label == "Reply to you as agent mailed"
    second = service.mail.send(USER, D, "herbs", "and those?")
    assert "wet?" not in texts(screen.go(Route.MAIL, thread=second, box=D))
    assert service.mail.get(USER, second).status == "unread", "only the agent reads its mail"
    assert service.mail.get(USER, answer).status == "read"


def test_a_mail_without_an_answer_is_followed_by_another(service: roost.AgentService, screen: Screen) -> None:
    first = service.mail.send(USER, D, "plants", "wet?")
    screen.go(Route.MAIL, thread=first)
    assert screen.app.text_area[0].label == "Write again to agent mailed"
    screen.app.text_area(key=f"reply_{first}_text_0").set_value("and the herbs?")
    screen.click(f"reply_{first}_send")
    assert [mail.recipient for mail in service.mail.thread(USER, first)] == [f"agent:{USER}/mailed"] * 2


def test_an_answer_of_an_agent_is_in_the_open_thread(service: roost.AgentService, screen: Screen) -> None:
    service.agents.start(USER, "mailed")
    first = service.mail.send(USER, D, "plants", "wet?")
    screen.go(Route.MAIL, thread=first)
    eventually(lambda: len(service.mail.thread(USER, first)) == 2)
    eventually(lambda: service.mail.get(USER, first).processed)
    found = texts(screen.look())
    assert "Answer to " in found
    assert all(word in found for word in ("delivered", "read", "processed"))
    assert service.mail.unread_count(USER) == 0


def test_a_mailbox_of_an_agent_is_chosen_and_is_in_the_url(service: roost.AgentService, screen: Screen) -> None:
    service.mail.send(USER, D, "for it", "words")
    screen.go(Route.MAIL)
    assert subjects(screen) == []
    screen.app.selectbox(key="box_").set_value(D).run()
    assert query(screen) == {"box": D}
    assert subjects(screen) == ["● for it"]
    screen.go(Route.MAIL, box="agent:bob/other")
    assert screen.notices == ["There is no mailbox 'agent:bob/other': it was deleted, or it never existed."]


def test_mail_is_filtered_and_ordered_by_the_url(service: roost.AgentService, screen: Screen) -> None:
    for subject, priority in (("first", "normal"), ("second", "urgent"), ("third", "normal")):
        service.mail.send(USER, ME, subject, "words", sender=D, priority=priority)
    one = service.mail.inbox(USER, newest=True)[0]
    service.mail.read(USER, one.mail_id)
    assert subjects(screen.go(Route.MAIL)) == ["third", "● second", "● first"]
    assert subjects(screen.go(Route.MAIL, order="urgent")) == ["● second", "● first", "third"]
    assert subjects(screen.go(Route.MAIL, show="unread")) == ["● second", "● first"]
    service.mail.archive(USER, one.mail_id)
    assert subjects(screen.go(Route.MAIL)) == ["● second", "● first"]
    assert subjects(screen.go(Route.MAIL, show="archived"))[0] == "third"
    assert subjects(screen.go(Route.MAIL, show="all"))[0] == "third"


def test_chosen_mails_are_archived_together(service: roost.AgentService, screen: Screen) -> None:
    ids = [service.mail.send(USER, ME, f"number {number}", "x", sender=D) for number in range(3)]
    screen.go(Route.MAIL)
    screen.act_on("mails_None_inbox", "Archive", *ids[:2])
    assert [mail.mail_id for mail in service.mail.inbox(USER)] == ids[2:]


def test_a_mail_that_cannot_be_archived_does_not_stop_the_others(service: roost.AgentService, screen: Screen) -> None:
    first, second = (service.mail.send(USER, ME, name, "words") for name in ("one", "two"))
    screen.go(Route.MAIL).act_on("mails_None_inbox", "Archive", "mail_gone", first, second)
    assert screen.notices[0].startswith("Archived 2 mails. 1 refused: ")
    assert subjects(screen.look()) == []


def test_older_mail_is_on_the_next_page(
    service: roost.AgentService, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail_list, "SHOWN", 5)
    ids = [service.mail.send(USER, ME, f"number {number}", "x", sender=D) for number in range(8)]
    assert subjects(screen.go(Route.MAIL)) == [f"● number {number}" for number in (7, 6, 5, 4, 3)]
    assert links(screen)["Next page"] == f"before={ids[3]}"
    assert subjects(screen.go(Route.MAIL, before=ids[3])) == [f"● number {number}" for number in (2, 1, 0)]
    assert "Next page" not in links(screen)
    assert links(screen)["First page"] == ""
    service.mail.delete(USER, ids[3])
    assert subjects(screen.go(Route.MAIL, before=ids[3])) == [f"● number {number}" for number in (2, 1, 0)]
    first = subjects(screen.go(Route.MAIL, order="urgent"))
    assert first == [f"● number {number}" for number in (0, 1, 2, 4, 5)]
    assert subjects(screen.go(Route.MAIL, order="urgent", before=ids[3])) == first, "its place is unknown"


def test_a_new_mail_to_an_agent_is_sent_and_opened(service: roost.AgentService, screen: Screen) -> None:
    screen.go(Route.MAIL, write="1")
    assert "Agent mailed" in screen.app.selectbox(key="new_mail__to").options
    screen.app.text_input(key="new_mail__subject").set_value(NASTY)
    screen.app.text_area(key="new_mail__text").set_value("wet?")
    screen.click("new_mail__send")
    assert screen.notices == ["Choose a recipient."]
    assert screen.app.text_input(key="new_mail__subject").value == NASTY
    screen.app.selectbox(key="new_mail__to").set_value(D)
    screen.click("new_mail__send")
    [mail] = service.mail.inbox(USER, D)
    assert (mail.subject, mail.body, mail.sender) == (NASTY, "wet?", ME)
    assert query(screen) == {"thread": mail.thread_id}
    assert screen.notices == []
    assert subjects(screen.go(Route.MAIL, show="sent"))[0] == NASTY


def test_a_double_click_sends_a_new_mail_once(service: roost.AgentService, screen: Screen) -> None:
    screen.go(Route.MAIL, write="1")
    screen.app.text_input(key="new_mail__subject").set_value("once")
    screen.app.text_area(key="new_mail__text").set_value("it rains")
    screen.app.selectbox(key="new_mail__to").set_value(D)
    screen.double_click("new_mail__send")
    assert [mail.subject for mail in service.mail.inbox(USER, D)] == ["once"]
    assert screen.notices == []


def test_a_mail_is_forwarded_with_a_note(service: roost.AgentService, screen: Screen) -> None:
    first = service.mail.send(USER, ME, "news", "words", sender=D)
    screen.go(Route.MAIL, thread=first)
    assert links(screen)["Forward"] == f"write=1&forward={first}"
    screen.go(Route.MAIL, write="1", forward=first, to="mailed")
    screen.app.text_area(key=f"new_mail_{first}_text").set_value("look")
    screen.click(f"new_mail_{first}_send")
    [mail] = service.mail.inbox(USER, D)
    assert (mail.subject, mail.sender) == ("Fwd: news", ME)
    assert mail.body.startswith("look\n\n")


def test_mail_of_others_does_not_exist(service: roost.AgentService, screen: Screen) -> None:
    theirs = service.mail.send("bob", "user:bob", "secret", "words of bob")
    assert subjects(screen.go(Route.MAIL, show="all")).count("● secret") == 0
    screen.go(Route.MAIL, thread=theirs)
    assert screen.notices == [f"There is no thread '{theirs}': it was deleted, or it never existed."]
    screen.go(Route.MAIL, write="1", forward=theirs)
    assert screen.notices == [f"There is no mail '{theirs}': it was deleted, or it never existed."]
    assert "words of bob" not in texts(screen)
    assert service.mail.get("bob", theirs).status == "unread"


def test_a_long_text_and_a_long_thread_are_cut_and_shown_on_demand(service: roost.AgentService, screen: Screen) -> None:
    first = service.mail.send(USER, ME, "long", "x" * 30_000 + "the end", sender=D)
    assert "the end" not in texts(screen.go(Route.MAIL, thread=first))
    assert links(screen)["Show all 30,007 characters"] == f"thread={first}&whole={first}"
    assert "the end" in texts(screen.go(Route.MAIL, thread=first, whole=first))
    for number in range(55):
        service.mail.reply(USER, first, f"answer {number}.", sender=ME)
    assert "answer 0." not in texts(screen.go(Route.MAIL, thread=first))
    assert links(screen)["Show earlier mails"] == f"thread={first}&earlier=100"
    assert "answer 0." in texts(screen.go(Route.MAIL, thread=first, earlier="100"))
    assert "Show earlier mails" not in links(screen)


def test_a_long_thread_is_read_as_far_as_it_is_shown_and_archived_whole(
    service: roost.AgentService, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_thread, "SHOWN", 2)
    monkeypatch.setattr(opened_thread, "MOST", 2)
    first = service.mail.send(USER, ME, "long", "answer 0.", sender=D)
    for number in range(1, 6):
        service.mail.send(USER, ME, "other", "words", sender=D)
        service.mail.reply(USER, first, f"answer {number}.", sender=D)
    unread = service.mail.unread_count(USER)
    screen.go(Route.MAIL, thread=first)
    assert [f"answer {number}." in texts(screen) for number in range(6)] == [False] * 4 + [True] * 2
    assert service.mail.unread_count(USER) == unread - 2
    screen.click("archive_thread")
    assert {mail.status for mail in service.mail.thread(USER, first)} == {"archived"}
    assert len(service.mail.inbox(USER)) == 5


def test_the_talk_page_counts_mail_with_the_same_link(tab: Tab) -> None:
    for mail in tab.service.mail.inbox(USER, limit=1000):
        tab.service.mail.archive(USER, mail.mail_id)
    tab.service.mail.send(USER, ME, "hello", "words")
    assert "Mail · 1" in {link.proto.label for link in tab.look().app.get("page_link")}


def test_a_redraw_that_arrives_after_its_page_was_left_changes_nothing(screen: Screen) -> None:
    asked = f"$$STREAMLIT_INTERNAL_KEY_{screen.go(Route.MAIL)._element('refresh').proto.id}__events"
    screen.go(Route.MAIL, write="1")
    news = WidgetState(id=asked, json_trigger_value=json.dumps([{"event": "refresh", "value": "news"}]))
    screen.app._run(WidgetStates(widgets=[news]))
    assert not screen.app.exception
    assert screen.app.title[0].value == "New mail"
