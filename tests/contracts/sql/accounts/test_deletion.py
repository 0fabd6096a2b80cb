"""Deletion of a user on every store: what belongs to the user is found and removed in portions, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.values.priority import Priority
from roost.errors import NotFound
from roost.stores.sql import hooks, tasks, tokens
from roost.stores.sql.accounts import accounts, audit, deletion
from roost.stores.sql.accounts.deletion import DeletionOrder
from roost.stores.sql.brain_data import artifacts
from roost.stores.sql.sending import effects
from roost.stores.sql.tables import attachments
from roost.stores.sql.talks import talks
from tests.contracts.conftest import Driven
from tests.contracts.sql import test_hooks, test_tokens
from tests.contracts.sql.accounts.test_accounts import act, added
from tests.contracts.sql.tables.test_attachments import DATA, post, rows, upload
from tests.contracts.sql.test_events import create
from tests.contracts.sql.webhooks import test_webhooks

PSEUDONYM = "deleted-1"


def add_talk(store: Driven, name: str, user: str) -> str:
    store.write(talks.create, name, user, "echo", "queue", "", "{}", 10)
    return name


def add_agent(store: Driven, name: str, user: str) -> str:
    create(store, name, user=user)
    return name


def add_webhook(store: Driven, name: str, user: str) -> str:
    return test_webhooks.created(store, int(name[-1]), user=user).webhook_id


def send(store: Driven, name: str, address: str, sender: str) -> None:
    task = Envelope(name, address, Kind.TASK, name, Priority.NORMAL, sender, "do", 1.0, 1.0, recorded=True)
    store.write(effects.post, SendTask(task))


def begun(store: Driven, user: str = "ann", actor: str = "root") -> DeletionOrder:
    order: DeletionOrder = store.write(deletion.begin, user, PSEUDONYM, act(actor))
    return order


@pytest.mark.parametrize(
    ("find", "add"),
    [(deletion.talk_ids, add_talk), (deletion.agent_ids, add_agent), (deletion.webhook_ids, add_webhook)],
)
def test_ids_are_those_of_the_user_and_at_most_the_limit(
    store: Driven, find: Callable[..., list[str]], add: Callable[[Driven, str, str], str]
) -> None:
    own = {add(store, f"one-{number}", "ann") for number in range(3)}
    other = add(store, "one-7", "bob")
    some = store.read(find, "ann", 2)
    assert (len(some), set(some) < own) == (2, True)
    assert set(store.read(find, "ann", 10)) == own
    assert store.read(find, "bob", 10) == [other]
    assert store.read(find, "an_", 10) == []


def test_open_tasks_are_those_that_the_user_sent_to_agents_of_others(store: Driven) -> None:
    own, other = create(store, "d"), create(store, "d", user="bob", shared=True)
    for number in range(3):
        send(store, f"task_{number}", other, "user:ann")
    send(store, "task_own", own, "user:ann")
    send(store, "task_bob", other, "user:bob")
    send(store, "task_agent", other, "agent:ann/d")
    assert len(store.read(deletion.open_tasks, "ann", 2)) == 2
    assert set(store.read(deletion.open_tasks, "ann", 10)) == {"task_0", "task_1", "task_2"}
    assert store.read(deletion.open_tasks, "bob", 10) == []
    store.write(tasks.cancel, "ann", "task_1", 2.0)
    assert set(store.read(deletion.open_tasks, "ann", 10)) == {"task_0", "task_2"}


def test_files_are_removed_with_their_pieces_a_few_at_a_time(store: Driven) -> None:
    talk = add_talk(store, "talk_1", "ann")
    for name in "abc":
        upload(store, name)
    upload(store, "his", user="bob")
    post(store, talk, "a")
    assert rows(store) == [4, 4, 1]
    assert [store.write(deletion.remove_files, "ann", 2) for _ in range(3)] == [2, 1, 0]
    assert rows(store) == [1, 1, 0]
    assert store.read(attachments.read, "attachment_his") == DATA


def test_rows_are_removed_up_to_the_limit_of_each_table_and_only_those_of_the_user(store: Driven) -> None:
    for number in range(3):
        test_tokens.created(store, number)
        test_hooks.created(store, number)
    token, hook = test_tokens.created(store, 7, user="bob"), test_hooks.created(store, 7, user="bob")
    assert store.write(deletion.remove_rows, "ann", 2) == 4
    assert len(store.read(tokens.listed, "ann", 10, "")) == len(store.read(hooks.listed, "ann", 10, "")) == 1
    assert [store.write(deletion.remove_rows, "ann", 2) for _ in range(2)] == [2, 0]
    assert store.read(tokens.listed, "bob", 10, "") == [token]
    assert store.read(hooks.listed, "bob", 10, "") == [hook]


def test_files_that_brains_keep_for_a_user_are_removed_and_those_of_similar_names_stay(store: Driven) -> None:
    for number, lane in enumerate(("app/a_n", "app/ann", "app/x/a_n", "app/a_n/x")):
        store.write(artifacts.save, f"artifact_{number}", "user", lane, "f", "content", "{}", 1.0)
    assert store.write(deletion.remove_rows, "a_n", 10) == 1
    left = store.read(lambda tx: tx.read("SELECT artifact_id FROM artifacts ORDER BY 1"))
    assert [row[0] for row in left] == ["artifact_1", "artifact_2", "artifact_3"]


@pytest.mark.parametrize("add", [add_talk, add_agent, add_webhook])
def test_a_deletion_is_not_finished_while_something_is_left(
    store: Driven, add: Callable[[Driven, str, str], Any]
) -> None:
    added(store, "ann")
    order = begun(store)
    store.write(deletion.remove_rows, "ann", 10)
    add(store, "one-1", "ann")
    assert not store.write(deletion.finish, order, act())
    assert store.read(deletion.find, "ann") == order
    assert store.read(accounts.get, "ann").disabled is not None


def test_a_finished_deletion_is_in_the_audit_list_under_the_pseudonym(store: Driven) -> None:
    added(store, "ann")
    added(store, "bob")
    store.write(audit.add, act("ann", action="sign_in"), "ann", "by ann")
    order = begun(store, actor="ann")
    assert not store.write(deletion.finish, order, act(action="users.delete")), "the invitation is left"
    store.write(deletion.remove_rows, "ann", 10)
    assert store.write(deletion.finish, order, act(action="users.delete"))
    assert store.read(deletion.unfinished) == []
    with pytest.raises(NotFound):
        store.read(accounts.get, "ann")
    found = [(one.actor, one.action, one.target, one.address, one.detail) for one in store.read(audit.listed, 10, "")]
    assert found == [
        (PSEUDONYM, "users.delete", PSEUDONYM, "10.0.0.1", ""),
        (PSEUDONYM, "sign_in", PSEUDONYM, "", ""),
        ("root", "test", "bob", "10.0.0.1", "role user"),
        ("root", "test", PSEUDONYM, "10.0.0.1", ""),
    ]


def test_a_finished_deletion_that_is_repeated_leaves_a_new_account_of_this_name(store: Driven) -> None:
    added(store, "ann")
    order = begun(store)
    store.write(deletion.remove_rows, "ann", 10)
    assert store.write(deletion.finish, order, act())
    again, entries = added(store, "ann"), store.read(audit.listed, 10, "")
    assert store.write(deletion.finish, order, act())
    assert store.read(accounts.get, "ann") == again
    assert store.read(audit.listed, 10, "") == entries
