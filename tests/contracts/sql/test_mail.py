"""A9, at the store itself: mailboxes belong to their owners, counts are right, and what waits becomes due in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from roost.core.agents.agent import AgentConfig, State, Subscription
from roost.core.envelopes.effects import SendMail
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.mail import Mail, MailStatus
from roost.core.envelopes.outcomes import StateChange
from roost.core.talks.messages import at
from roost.core.values.priority import Priority, rank
from roost.errors import Conflict, Forbidden, NotFound, StaleCursor
from roost.ports import ClaimEnvironment, ClaimRequest, Tx
from roost.stores.sql import mail
from roost.stores.sql.agents import agents, lifecycle
from roost.stores.sql.inbox import claims
from tests.contracts.conftest import Driven
from tests.contracts.plans import Plan

NOW = 1_000_000.0
LATER = NOW + 30.0
ANN = "user:ann"
D = "agent:ann/d"


@pytest.fixture
def box(store: Driven) -> Driven:
    """With two agents of ann's and one of bob's."""
    hears = AgentConfig(subscriptions=(Subscription("urgent_mail"),))
    for owner, agent_id, config in (("ann", "d", AgentConfig()), ("ann", "e", hears), ("bob", "d", AgentConfig())):
        change = StateChange(f"change_{agent_id}", NOW, None, State.IDLE, "created", f"user:{owner}")
        store.write(agents.create, owner, (agent_id,), config, change, 10)
    return store


def written(number: int, to: str = ANN, sender: str = D, priority: str = "normal", **changes: Any) -> SendMail:
    level, created = Priority(priority), NOW + number
    thread = changes.get("thread_id")
    envelope = None
    if to.startswith("agent:"):
        mail_id = f"mail_{number:04}"
        envelope = Envelope(
            mail_id,
            to.removeprefix("agent:"),
            Kind.MAIL,
            f"mail:{thread or mail_id}",
            level,
            sender,
            mail_id,
            created,
            rank(created, level),
            due=changes.pop("due", created),
        )
    made = SendMail(
        f"mail_{number:04}", None, sender, to, f"subject {number}", "words", level, created, None, None, None, envelope
    )
    return replace(made, **changes)


def ids(store: Driven, user_id: str = "ann", box: str = ANN, **options: Any) -> list[str]:
    named = {"status": None, "archived": False, "newest": False, "limit": 100, "before": None, "now": NOW, **options}
    return [one.mail_id[-1] for one in store.read(mail.listed, user_id, box, *named.values())]


def rows(store: Driven, sql: str) -> list[tuple[Any, ...]]:
    def look(tx: Tx) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in tx.read(sql)]

    found: list[tuple[Any, ...]] = store.read(look)
    return found


def test_mail_is_listed_by_its_priority_or_with_the_newest_first(box: Driven) -> None:
    for number, priority in ((1, "normal"), (2, "normal"), (3, "urgent"), (4, "low")):
        box.write(mail.send, written(number, priority=priority))
    assert ids(box) == ["3", "1", "2", "4"]
    assert ids(box, newest=True) == ["4", "3", "2", "1"]
    assert ids(box, newest=True, limit=2, before="mail_0003") == ["2", "1"]


def test_the_page_after_a_deleted_mail_is_found_by_its_id(box: Driven) -> None:
    for number in (1, 2, 3):
        box.write(mail.send, written(number))
    box.write(mail.delete, "ann", "mail_0002")
    assert ids(box, newest=True, before="mail_0002") == ["1"]
    with pytest.raises(NotFound, match="no mail 'mail_0002'"):
        ids(box, before="mail_0002")


def test_sent_mail_is_that_of_a_person_newest_first(box: Driven) -> None:
    for number, sender in ((1, ANN), (2, D), (3, "user:bob"), (4, ANN), (5, ANN)):
        box.write(mail.send, written(number, to=D, sender=sender))
    box.write(mail.archive, "ann", "mail_0001")

    def sent(person: str, limit: int = 9, before: str = "z") -> list[str]:
        return [one.mail_id for one in box.read(mail.sent, person, limit, before)]

    assert sent(ANN) == ["mail_0005", "mail_0004", "mail_0001"]
    assert sent(ANN, 1, "mail_0005") == ["mail_0004"]
    assert sent("user:bob") == ["mail_0003"]


def test_imported_mail_is_added_once_and_leaves_mail_of_other_mailboxes_as_it_is(box: Driven) -> None:
    box.write(mail.send, written(1, to="user:bob", sender="user:bob"))
    times: dict[str, Any] = {"created": at(NOW - 9), "expires": at(LATER), "read_at": at(NOW - 1)}
    given = Mail("mail_0001", "t", "imported:user:bob", ANN, "s", "b", Priority.HIGH, MailStatus.REPLIED, **times)
    assert [box.write(mail.add_imported, given, "mail_0002") for _ in range(2)] == [True, False]
    assert ids(box) == ["2"]
    (kept,) = box.read(mail.thread, "ann", "t", 9, "z")
    assert kept == replace(given, mail_id="mail_0002")
    assert box.read(mail.get, "bob", "mail_0001").subject == "subject 1"
    assert box.write(mail.add_imported, replace(given, mail_id="mail_0003"), "mail_0004") is True
    assert ids(box) == ["2", "3"]
    assert rows(box, "SELECT DISTINCT arrival FROM mail WHERE subject = 's'") == [(None,)]
    assert rows(box, "SELECT envelope_id FROM inbox") == []


def test_a_mail_is_unread_then_read_and_counted_so(box: Driven) -> None:
    box.write(mail.send, written(1))
    assert box.read(mail.unread, "ann", ANN, NOW) == 1
    read = box.write(mail.read, "ann", "mail_0001", LATER)
    assert (read.status, read.read_at.timestamp()) == ("read", LATER)
    assert box.read(mail.unread, "ann", ANN, NOW) == 0
    assert box.write(mail.read, "ann", "mail_0001", LATER + 1) == read


def test_mail_is_read_when_its_agent_begins_with_it_and_only_then(box: Driven) -> None:
    for number in (1, 2):
        box.write(mail.send, written(number, to=D, sender=ANN))
    box.write(mail.archive, "ann", "mail_0002")
    assert box.write(mail.begin, "mail_0001", "ann/d", 1, LATER).status == "unread"  # someone else has taken it over
    assert [box.write(mail.begin, name, "ann/d", 0, LATER).status for name in ("mail_0001", "mail_0002")] == [
        "read",
        "archived",
    ]
    again = box.write(mail.begin, "mail_0001", "ann/d", 0, LATER + 1)
    assert (again.status, again.read_at.timestamp(), again.processed) == ("read", LATER, None)
    assert box.read(mail.unread, "ann", D, NOW) == 0
    assert box.write(mail.begin, "mail_0003", "ann/d", 0, LATER) is None


def test_a_reply_marks_what_it_answers_and_stays_in_its_thread(box: Driven) -> None:
    box.write(mail.send, written(1))
    box.write(mail.send, written(2, to=D, sender=ANN, thread_id="mail_0001", reply_to="mail_0001"))
    thread = box.read(mail.thread, "ann", "mail_0001", 9, "z")
    assert [(one.mail_id, one.status, one.reply_to) for one in thread] == [
        ("mail_0001", "replied", None),
        ("mail_0002", "unread", "mail_0001"),
    ]
    assert box.read(mail.unread, "ann", ANN, NOW) == 0
    assert box.read(mail.unread, "ann", D, NOW) == 1


def test_a_thread_is_read_from_its_end_by_page(box: Driven) -> None:
    box.write(mail.send, written(1))
    for number in range(2, 6):
        box.write(mail.send, written(number, thread_id="mail_0001", reply_to="mail_0001"))

    def page(limit: int, before: str = "z") -> list[str]:
        return [one.mail_id[-1] for one in box.read(mail.thread, "ann", "mail_0001", limit, before)]

    assert (page(2), page(2, "mail_0004"), page(9, "mail_0002"), page(9, "mail_0001")) == (
        ["4", "5"],
        ["2", "3"],
        ["1"],
        [],
    )
    with pytest.raises(NotFound, match="no thread"):
        box.read(mail.thread, "bob", "mail_0001", 9, "mail_0001")


def test_a_reply_of_another_user_marks_nothing(box: Driven) -> None:
    box.write(mail.send, written(1))
    box.write(mail.send, written(2, sender=D, thread_id="mail_0001", reply_to="mail_0001"))
    assert box.read(mail.get, "ann", "mail_0001").status == "unread"


def test_archived_ones_are_hidden_and_not_counted_unless_asked_for(box: Driven) -> None:
    for number in (1, 2):
        box.write(mail.send, written(number))
    assert box.write(mail.archive, "ann", "mail_0001").status == "archived"
    assert ids(box) == ["2"]
    assert ids(box, archived=True) == ["1", "2"]
    assert ids(box, status=MailStatus.ARCHIVED) == ["1"]
    assert box.read(mail.unread, "ann", ANN, NOW) == 1
    assert box.write(mail.read, "ann", "mail_0001", NOW).status == "archived"


def test_urgent_ones_come_first_and_pages_follow_each_other(box: Driven) -> None:
    for number, priority in enumerate(["low", "normal", "urgent", "high", "normal", "low"]):
        box.write(mail.send, written(number, priority=priority))
    assert ids(box) == ["2", "3", "1", "4", "0", "5"]
    paged: list[str] = []
    while page := ids(box, limit=2, before=f"mail_000{paged[-1]}" if paged else None):
        paged += page
    assert paged == ids(box)


@pytest.mark.parametrize("newest", [True, False])
@pytest.mark.parametrize("before", [None, "mail_1"])
def test_a_page_of_a_mailbox_is_read_in_the_order_of_an_index(plan: Plan, newest: bool, before: str | None) -> None:
    """Mail has long bodies: a sort reads all of them."""
    given = (
        "INSERT INTO mail (mail_id, thread_id, sender, recipient, subject, body, priority, rank, status, created)"
        " VALUES ('mail_1', '', '', 'user:ann', '', '', 'low', 1, 'unread', 1);"
    )
    for status in (None, MailStatus.UNREAD):
        steps = plan(mail.listed, "ann", ANN, status, False, newest, 10, before, NOW, before=given)
        assert [step for step in steps if "TEMP B-TREE" in step or step.startswith("SCAN")] == []
        index = "mail_by_age" if newest else "mail_by_urgency"
        assert any(index in step for step in steps)
        given = ""


def test_unread_mail_is_counted_in_an_index(plan: Plan) -> None:
    found = [step for step in plan(mail.unread, "ann", ANN, NOW) if " mail " in step]
    assert len(found) == 2
    assert all("COVERING INDEX" in step for step in found)


def test_a_new_urgent_mail_is_on_the_first_page_however_old_the_others_are(box: Driven) -> None:
    for number in (1, 2, 3):
        box.write(mail.send, written(number, priority="low"))
        box.write(mail.read, "ann", f"mail_000{number}", NOW)
    box.write(mail.send, replace(written(4, priority="urgent"), created=NOW + 5 * 3_600))
    assert ids(box, limit=3) == ["4", "1", "2"]


def test_pages_have_each_mail_once_while_new_ones_come_in(box: Driven) -> None:
    for number, priority in ((1, "low"), (2, "urgent"), (3, "normal"), (4, "low")):
        box.write(mail.send, written(number, priority=priority))
    paged: list[str] = []
    for number, priority in ((5, "urgent"), (6, "low"), (7, "normal"), (8, "high")):
        paged += ids(box, limit=2, before=f"mail_000{paged[-1]}" if paged else None)
        box.write(mail.send, written(number, priority=priority))
    assert paged == ["2", "3", "1", "4", "6"]
    assert ids(box) == ["2", "5", "8", "3", "7", "1", "4", "6"]


def test_what_has_expired_is_neither_listed_nor_counted_and_still_in_its_thread(box: Driven) -> None:
    box.write(mail.send, written(1, expires=NOW + 10))
    assert ids(box) == ["1"]
    assert ids(box, now=NOW + 10) == []
    assert box.read(mail.unread, "ann", ANN, NOW + 10) == 0
    assert len(box.read(mail.thread, "ann", "mail_0001", 9, "z")) == 1


def test_a_deleted_mail_is_gone_and_only_from_the_users_own_mailbox(box: Driven) -> None:
    box.write(mail.send, written(1))
    box.write(mail.send, written(2, to=D, sender=ANN))
    box.write(mail.delete, "ann", "mail_0001")
    assert rows(box, "SELECT mail_id FROM mail") == [("mail_0002",)]
    assert box.read(mail.unread, "ann", ANN, NOW) == 0
    with pytest.raises(NotFound, match="it was deleted, or it never existed"):
        box.write(mail.delete, "ann", "mail_0001")
    with pytest.raises(Forbidden, match=f"mailbox of '{D}': archive it instead"):
        box.write(mail.delete, "ann", "mail_0002")


@pytest.mark.parametrize("name", ["bob", "eve", "a%", "user:ann"])
def test_a_user_who_is_neither_sender_nor_recipient_finds_nothing(box: Driven, name: str) -> None:
    box.write(mail.send, written(1))
    for op, args in (
        (mail.get, ()),
        (mail.thread, (9, "z")),
        (mail.read, (NOW,)),
        (mail.archive, ()),
        (mail.delete, ()),
    ):
        with pytest.raises(NotFound, match="it was deleted, or it never existed"):
            box.write(op, name, "mail_0001", *args)
    for address in (ANN, D, "agent:ann/nobody"):
        with pytest.raises(NotFound, match=f"no mailbox '{address}': it was deleted, or it never existed"):
            box.read(mail.unread, name, address, NOW)
        with pytest.raises(NotFound, match=f"no mailbox '{address}': it was deleted, or it never existed"):
            ids(box, name, address)
    assert box.read(mail.get, "ann", "mail_0001").status == "unread"


def test_a_person_whose_name_ends_like_an_agents_address_owns_no_mail_of_it(box: Driven) -> None:
    box.write(mail.send, written(1, to="user:xann/d", sender="user:yann/d"))
    with pytest.raises(NotFound):
        box.read(mail.get, "ann", "mail_0001")


def test_the_sender_sees_it_but_cannot_read_or_archive_it_for_the_recipient(box: Driven) -> None:
    box.write(mail.send, written(1, to="agent:bob/d", sender=D))
    assert box.write(mail.read, "ann", "mail_0001", NOW).status == "unread"
    with pytest.raises(Forbidden, match="mailbox of 'agent:bob/d'"):
        box.write(mail.archive, "ann", "mail_0001")
    assert box.write(mail.read, "bob", "mail_0001", NOW).status == "read"


def test_the_same_key_is_the_same_mail_and_another_content_a_conflict(box: Driven) -> None:
    first, posted = box.write(mail.send, written(1, to=D, sender=ANN, key="k"))
    again, nothing = box.write(mail.send, written(2, to=D, sender=ANN, key="k", subject="subject 1"))
    assert (first, again, len(posted), nothing) == ("mail_0001", "mail_0001", 1, ())
    with pytest.raises(Conflict, match="another mail"):
        box.write(mail.send, written(3, to=D, sender=ANN, key="k", subject="subject 1", body="other"))
    same = (ANN, "k", D, "subject 1", "words")
    assert box.read(mail.by_key, *same) == first
    assert box.read(mail.by_key, ANN, "l", *same[2:]) is None
    with pytest.raises(Conflict, match="used for another mail"):
        box.read(mail.by_key, *same[:-1], "other")
    box.write(mail.send, written(4, to=D, sender="agent:ann/e", key="k"))
    assert rows(box, "SELECT mail_id FROM mail ORDER BY 1") == [("mail_0001",), ("mail_0004",)]
    assert rows(box, "SELECT envelope_id FROM inbox ORDER BY 1") == [("mail_0001",), ("mail_0004",)]


def test_mail_to_an_agent_that_is_gone_is_refused_and_nothing_is_stored(box: Driven) -> None:
    with pytest.raises(NotFound, match="no agent 'x'"):
        box.write(mail.send, written(1, to="agent:ann/x", sender=ANN, priority="urgent"))
    for table in ("mail", "inbox", "events", "timers"):
        assert rows(box, f"SELECT * FROM {table}") == []


def test_all_that_waits_for_the_check_is_due_then_and_a_retry_is_not(box: Driven) -> None:
    for number in (1, 2):
        box.write(mail.send, written(number, to=D, sender=ANN, due=LATER + number))
    box.write(mail.send, written(3, to="agent:ann/e", sender=ANN, due=LATER))
    box.write(_tried, "mail_0002")
    box.write(mail.check, ["ann/d"], NOW + 5)
    assert rows(box, "SELECT envelope_id, due FROM inbox ORDER BY 1") == [
        ("mail_0001", NOW + 5),
        ("mail_0002", LATER + 2),
        ("mail_0003", LATER),
    ]


def test_the_timer_of_the_check_is_that_of_the_oldest_that_waits(box: Driven) -> None:
    for number in (1, 2):
        due = LATER + number
        box.write(mail.send, written(number, to=D, sender=ANN, due=due, check_by=due))
    assert rows(box, "SELECT address, key, due FROM timers") == [("ann/d", "mail", LATER + 1)]


def test_older_mail_of_a_thread_is_due_with_the_urgent_one_that_follows(box: Driven) -> None:
    box.write(mail.send, written(1, to=D, sender=ANN, priority="low", due=LATER))
    box.write(mail.send, written(2, to=D, sender=ANN, priority="low", due=LATER))
    _, posted = box.write(mail.send, written(3, to=D, sender=ANN, priority="high", thread_id="mail_0001"))
    assert [(one.envelope_id, one.due) for one in posted] == [("mail_0001", NOW + 3), ("mail_0003", NOW + 3)]
    [taken] = box.write(claims.claim, (ClaimRequest("ann/d", True),), ClaimEnvironment(NOW + 4, lambda: "change_1"))
    assert [one.envelope_id for one in taken.envelopes] == ["mail_0001", "mail_0003"]


def test_a_mail_that_is_not_more_urgent_hurries_none(box: Driven) -> None:
    box.write(mail.send, written(1, to=D, sender=ANN, priority="low", due=LATER))
    _, posted = box.write(mail.send, written(2, to=D, sender=ANN, priority="low", due=LATER + 1, thread_id="mail_0001"))
    assert [one.envelope_id for one in posted] == ["mail_0002"]
    assert rows(box, "SELECT due FROM inbox ORDER BY 1") == [(LATER,), (LATER + 1,)]


@pytest.mark.parametrize("to", [ANN, D])
def test_urgent_mail_is_an_event_for_subscribed_agents_of_its_owner(box: Driven, to: str) -> None:
    _, posted = box.write(mail.send, written(1, to=to, sender="agent:bob/d", priority="urgent", hops=7, root="task_1"))
    told = posted[-1]
    assert told.root == "task_1"
    assert (told.address, told.kind, told.priority, told.hops) == ("ann/e", "event", "urgent", 7)
    assert rows(box, "SELECT user_id, name, publisher, takers FROM events") == [
        ("ann", "urgent_mail", "agent:bob/d", 1)
    ]
    assert rows(box, "SELECT * FROM dead_letters") == []


def test_urgent_mail_without_subscribers_is_no_dead_letter(box: Driven) -> None:
    _, posted = box.write(mail.send, written(1, to="agent:bob/d", priority="urgent"))
    assert [one.kind for one in posted] == ["mail"]
    assert rows(box, "SELECT user_id, takers FROM events") == [("bob", 0)]
    assert rows(box, "SELECT * FROM dead_letters") == []


def test_mail_below_urgent_is_no_event(box: Driven) -> None:
    box.write(mail.send, written(1, to=D, sender=ANN, priority="high"))
    assert rows(box, "SELECT * FROM events") == []


def _tried(tx: Tx, envelope_id: str) -> None:
    tx.write("UPDATE inbox SET attempts = 1 WHERE envelope_id = :id", {"id": envelope_id})


def test_the_mail_of_a_deleted_agent_is_gone_and_what_it_sent_stays(box: Driven) -> None:
    box.write(mail.send, written(1, to=D, sender=ANN))
    box.write(mail.send, written(2, to=ANN, sender=D))
    box.write(lifecycle.delete, "ann", "d")
    with pytest.raises(NotFound):
        box.read(mail.get, "ann", "mail_0001")
    assert ids(box) == ["2"]


def arrived(store: Driven, after: int = 0, newest: bool = False, limit: int = 100, box: str = ANN) -> list[str]:
    """The last characters of the ids, after all committed mail has its number."""
    store.write(mail.number_arrivals, box)
    found, is_unnumbered = store.read(mail.arrivals, box, after, newest, limit)
    assert not is_unnumbered
    assert [number for number, _ in found] == sorted(number for number, _ in found)
    return [f"{number}: {one.mail_id[-1]}" for number, one in found]


def test_arrivals_are_numbered_in_each_mailbox_when_they_are_committed(box: Driven) -> None:
    for number, to in ((5, ANN), (2, "user:bob"), (3, D)):
        box.write(mail.send, written(number, to))
    assert box.read(mail.arrivals, ANN, 0, False, 100) == ([], True)
    assert arrived(box) == ["1: 5"]
    for number in (1, 4):
        box.write(mail.send, written(number))
    assert arrived(box) == ["1: 5", "2: 1", "3: 4"]
    assert (arrived(box, box="user:bob"), arrived(box, box=D)) == (["1: 2"], [])


def test_arrivals_are_read_after_a_number_or_from_the_newest(box: Driven) -> None:
    assert arrived(box) == arrived(box, newest=True) == []
    for number in range(1, 6):
        box.write(mail.send, written(number))
    assert arrived(box, 0, limit=2) == ["1: 1", "2: 2"]
    assert (arrived(box, 2), arrived(box, 5)) == (["3: 3", "4: 4", "5: 5"], [])
    assert arrived(box, newest=True, limit=2) == ["4: 4", "5: 5"]
    with pytest.raises(StaleCursor, match="newer than all mail"):
        arrived(box, 6)


def test_arrivals_keep_their_numbers(box: Driven) -> None:
    for number in (1, 2):
        box.write(mail.send, written(number))
    assert arrived(box) == ["1: 1", "2: 2"]
    box.write(mail.archive, "ann", "mail_0001")
    box.write(mail.read, "ann", "mail_0002", NOW)
    assert arrived(box) == ["1: 1", "2: 2"]


def test_a_mail_that_is_sent_again_with_its_key_does_not_arrive_again(box: Driven) -> None:
    for number in (1, 2):
        box.write(mail.send, replace(written(number), key="k", subject="same"))
    assert arrived(box) == ["1: 1"]
