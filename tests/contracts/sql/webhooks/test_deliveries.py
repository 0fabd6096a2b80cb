"""Deliveries on every store: due until they arrive or are given up, and then dead letters that can be retried."""

from __future__ import annotations

import pytest

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.webhooks.webhook import Delivery, DueDelivery
from roost.errors import Conflict, NotFound
from roost.stores.sql import dead_letters, retention
from roost.stores.sql.dead_letters import LetterFilter
from roost.stores.sql.webhooks import deliveries, webhooks
from roost.stores.sql.webhooks.deliveries import DeliveryAttempt
from tests.contracts.conftest import Driven
from tests.contracts.sql.webhooks.test_webhooks import created

LAST = "~"


def add(store: Driven, *numbers: int, webhook: int = 1, due: float = 100.0) -> None:
    for number in numbers:
        store.write(deliveries.add, f"msg_{number}", f"webhook_{webhook}", "ann", "TaskDone", f"body {number}", due)


def due(store: Driven, now: float = 100.0, most: int = 10, webhook: int = 1) -> list[DueDelivery]:
    found: list[DueDelivery] = store.read(deliveries.due, f"webhook_{webhook}", now, most)[0]
    return found


def attempt(one: DueDelivery, status: int | None, retry_at: float | None, now: float = 110.0) -> DeliveryAttempt:
    good = status is not None and status < 300
    return DeliveryAttempt(one, now, 0.5, status, None if good else "an error", "" if good else "reply", good, retry_at)


def shown(store: Driven) -> list[Delivery]:
    found: list[Delivery] = store.read(deliveries.listed, "ann", "webhook_1", 10, LAST)
    return found


def test_deliveries_are_due_in_order_and_gone_when_they_have_arrived(store: Driven) -> None:
    created(store, 1)
    add(store, 1, 2, 3)
    assert [one.body for one in due(store, most=2)] == ["body 1", "body 2"]
    assert due(store, now=99.0) == []
    assert store.read(deliveries.first_due) == {"webhook_1": 100.0}
    assert store.write(deliveries.settle, [attempt(one, 204, None) for one in due(store)]) == ()
    assert store.read(deliveries.due, "webhook_1", 200.0, 10) == ([], None)
    assert [(one.state, one.status, one.attempts) for one in shown(store)] == [("delivered", 204, 1)] * 3
    success = store.read(webhooks.get, "ann", "webhook_1").last_success
    assert success is not None
    assert success.timestamp() == 110.0


def test_one_that_fails_is_due_later_and_while_it_fails_one_at_a_time_is_sent(store: Driven) -> None:
    created(store, 1)
    add(store, 1, 2, 3)
    [first, *_] = due(store)
    store.write(deliveries.settle, [attempt(first, 500, 150.0)])
    assert [one.delivery_id for one in due(store, now=149.0)] == ["msg_2"], "one probe, and not the one that failed"
    assert shown(store)[-1].next_attempt is not None
    [probe] = due(store, now=149.0)
    store.write(deliveries.settle, [attempt(probe, 200, None)])
    assert [one.delivery_id for one in due(store, now=151.0)] == ["msg_3", "msg_1"]
    assert due(store, now=151.0)[1].attempts == 1


def test_the_last_failure_is_a_dead_letter_which_is_retried_with_the_same_id(store: Driven) -> None:
    created(store, 1)
    add(store, 1, 2)
    first, second = due(store)
    store.write(deliveries.settle, [attempt(second, 200, None)])
    assert store.write(deliveries.settle, [attempt(first, None, None)]) == (), "others arrive: it is not paused"
    [letter] = store.read(dead_letters.listed, "ann", LetterFilter(kind="webhook"), 10, LAST)
    assert (letter.attempts, letter.envelope["envelope_id"], letter.origin) == (1, "msg_1", "msg_1")
    assert "name 1" in letter.reason
    assert store.write(dead_letters.retry, "ann", letter.letter_id, 300.0) == ()
    assert store.read(dead_letters.listed, "ann", LetterFilter(), 10, LAST) == []
    [again] = due(store, now=300.0)
    assert (again.delivery_id, again.body, again.attempts) == ("msg_1", "body 1", 0)


def test_a_dead_letter_is_retried_after_its_delivery_was_deleted_but_not_after_its_webhook_was(store: Driven) -> None:
    letter = dead(store)
    store.write(deliveries.prune, "webhook_1", 0)
    assert shown(store) == []
    store.write(dead_letters.retry, "ann", letter.letter_id, 300.0)
    assert [one.delivery_id for one in due(store, now=300.0)] == []  # it is paused
    letter = dead(store, 2)
    store.write(webhooks.delete, "ann", "webhook_2")
    with pytest.raises(Conflict, match="drop"):
        store.write(dead_letters.retry, "ann", letter.letter_id, 300.0)
    with pytest.raises(NotFound):
        store.write(dead_letters.drop, "bob", letter.letter_id)
    store.write(dead_letters.drop, "ann", letter.letter_id)


def dead(store: Driven, webhook: int = 1) -> DeadLetter:
    created(store, webhook)
    add(store, webhook, webhook=webhook)
    [paused] = store.write(deliveries.settle, [attempt(due(store, webhook=webhook)[0], 500, None)])
    assert (paused.webhook_id, paused.name) == (f"webhook_{webhook}", f"name {webhook}")
    letter: DeadLetter = store.read(dead_letters.listed, "ann", LetterFilter(), 1, LAST)[0]
    return letter


def test_a_webhook_is_paused_if_nothing_has_arrived_since_the_delivery_that_is_given_up(store: Driven) -> None:
    dead(store)
    add(store, 7)
    found = store.read(webhooks.get, "ann", "webhook_1")
    assert found.paused
    assert "an error" in str(found.reason)
    assert due(store) == [], "facts are kept, and not sent"
    assert (store.read(deliveries.first_due), store.read(deliveries.counts)) == ({}, {"webhook_1": 1})
    store.write(webhooks.pause, "ann", "webhook_1", None)
    assert [one.delivery_id for one in due(store)] == ["msg_7"]


def test_gone_pauses_at_once_and_the_delivery_stays(store: Driven) -> None:
    created(store, 1)
    add(store, 1)
    for retry_at in (400.0, None):
        store.write(webhooks.pause, "ann", "webhook_1", None)
        [paused] = store.write(deliveries.settle, [attempt(due(store, now=500.0)[0], 410, retry_at)])
        assert "410" in paused.reason
    assert store.read(deliveries.counts) == {"webhook_1": 1}
    assert store.read(dead_letters.listed, "ann", LetterFilter(), 1, LAST) == []


def test_a_webhook_that_is_deleted_takes_its_deliveries_with_it(store: Driven) -> None:
    created(store, 1)
    add(store, 1)
    found = due(store)
    store.write(webhooks.delete, "ann", "webhook_1")
    for status, retry_at in ((200, None), (500, 300.0), (500, None), (410, None)):
        assert store.write(deliveries.settle, [attempt(found[0], status, retry_at)]) == ()
    assert store.read(deliveries.counts) == {}
    assert store.read(dead_letters.listed, "ann", LetterFilter(), 1, LAST) == []


def test_finished_deliveries_are_pruned_by_number_and_by_age_and_pending_ones_stay(store: Driven) -> None:
    created(store, 1)
    add(store, *range(1, 8))
    store.write(deliveries.settle, [attempt(one, 200, None) for one in due(store)[:6]])
    store.write(deliveries.prune, "webhook_1", 2)
    assert [one.delivery_id for one in shown(store)] == ["msg_7", "msg_6", "msg_5"]
    keys = [("msg_5",), ("msg_6",), ("msg_7",)]
    assert store.write(retention.remove, "deliveries", 1_000.0, keys) == 2
    assert [one.delivery_id for one in shown(store)] == ["msg_7"]


def test_missed_facts_are_counted(store: Driven) -> None:
    created(store, 1)
    created(store, 2)
    store.write(deliveries.count_missed, [("webhook_2", 3), ("webhook_1", 1), ("gone", 5)])
    store.write(deliveries.count_missed, [("webhook_2", 4)])
    assert [one.missed for one in store.read(webhooks.listed, "ann", 10, "")] == [1, 7]


def test_a_test_request_has_the_address_and_the_newest_secret_and_is_not_stored(store: Driven) -> None:
    created(store, 1)
    store.write(webhooks.rotate, "ann", "webhook_1", "new", 500.0)
    request = store.read(deliveries.request_of, "ann", "webhook_1", "msg_1", "Ping", "{}")
    assert request == DueDelivery("msg_1", "webhook_1", "ann", "Ping", "{}", 0.0, 0, "https://example.com/x", ("new",))
    assert (shown(store), store.read(deliveries.counts)) == ([], {})
    for user, webhook in (("bob", "webhook_1"), ("ann", "webhook_2")):
        with pytest.raises(NotFound):
            store.read(deliveries.request_of, user, webhook, "msg_1", "Ping", "{}")
