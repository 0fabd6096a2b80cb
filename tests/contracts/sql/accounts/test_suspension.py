"""Disabled users on every store: no work is handed over, no schedule ticks, and no webhook sends."""

from __future__ import annotations

from roost.core.schedules import rules
from roost.core.schedules.rules import Every
from roost.stores.sql.accounts import accounts, suspension
from roost.stores.sql.inbox import recovery
from roost.stores.sql.schedules import schedules
from roost.stores.sql.talks import talks
from roost.stores.sql.webhooks import deliveries
from tests.contracts.conftest import Driven
from tests.contracts.sql.accounts.test_accounts import act, added
from tests.contracts.sql.inbox.test_agent_work import given
from tests.contracts.sql.test_events import create, take
from tests.contracts.sql.webhooks.test_webhooks import created


def disabled(store: Driven) -> None:
    added(store, "ann")
    store.write(accounts.disable, "ann", act())


def enabled(store: Driven) -> None:
    store.write(accounts.enable, "ann", act())


def test_work_of_a_disabled_user_waits(store: Driven) -> None:
    mine, other = create(store, "d"), create(store, "d", user="bob")
    for number, address in enumerate((mine, other)):
        given(store, address, f"task_{number}")
    disabled(store)
    assert not take(store, mine).ready
    assert [one.envelope_id for one in take(store, other).envelopes] == ["task_1"]
    store.write(recovery.recover, 100.0, "one")
    assert store.write(recovery.recover, 100.0, "two") == 1, "what did not run is not suspect"
    enabled(store)
    assert [one.envelope_id for one in take(store, mine).envelopes] == ["task_0"]


def test_ticks_of_a_disabled_user_are_skipped(store: Driven) -> None:
    create(store, "d")
    rule = rules.to_json(Every(10.0, 0.0))
    row = ("s", "ann", "ann/d", "round", "go", "normal", rule, "queue_all", "all", 900.0, 1.0, 10)
    store.write(schedules.create, *row)
    disabled(store)
    assert store.write(schedules.fire, 100.0, lambda: "task_1", lambda *_: False).posted == ()
    enabled(store)
    fired = store.write(schedules.fire, 115.0, lambda: "task_2", lambda *_: False)
    assert [one.envelope_id for one in fired.posted] == ["task_2"]


def test_deliveries_of_a_disabled_user_are_kept(store: Driven) -> None:
    created(store, 1)
    store.write(deliveries.add, "msg_1", "webhook_1", "ann", "TaskDone", "body", 100.0)
    disabled(store)
    assert store.read(deliveries.due, "webhook_1", 100.0, 10) == ([], None)
    assert store.read(deliveries.first_due) == {}
    enabled(store)
    assert [one.delivery_id for one in store.read(deliveries.due, "webhook_1", 100.0, 10)[0]] == ["msg_1"]


def make_talk(store: Driven, user: str, talk_id: str, waiting: int, answering: int) -> None:
    store.write(talks.create, talk_id, user, "echo", "queue", "", "{}", 10)
    values = {"talk": talk_id, "waiting": waiting, "answering": answering}
    sql = "UPDATE talks SET waiting = :waiting, answer_seq = :answering WHERE talk_id = :talk"
    store.write(lambda tx: tx.write(sql, values))


def test_talks_in_which_nothing_happens_are_not_busy(store: Driven) -> None:
    assert store.read(suspension.busy_talks, "ann", 10) == []
    for name, waiting, answering in (("t1", 1, 0), ("t2", 0, 2), ("t3", 0, 0)):
        make_talk(store, "ann", name, waiting, answering)
    make_talk(store, "bob", "t4", 1, 0)
    assert sorted(store.read(suspension.busy_talks, "ann", 10)) == ["t1", "t2"]
    assert len(store.read(suspension.busy_talks, "ann", 1)) == 1


def test_disabled_users_are_found_among_others(store: Driven) -> None:
    added(store, "bob")
    disabled(store)
    assert store.read(suspension.disabled, {"ann", "bob", "nobody"}) == ["ann"]
    enabled(store)
    assert store.read(suspension.disabled, {"ann", "bob"}) == []
