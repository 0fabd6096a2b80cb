"""Hooks on every store: found by the digest of their token, and each request accepted once."""

from __future__ import annotations

import pytest

from roost.core.envelopes.effects import Publish
from roost.core.talks.messages import at
from roost.core.values.priority import Priority
from roost.core.webhooks.hook import Hook, digest
from roost.errors import Invalid, LimitReached, NotFound
from roost.stores.sql import events, hooks, retention
from roost.stores.sql.accounts import deletion
from roost.stores.sql.webhooks import deliveries
from tests.contracts.conftest import Driven
from tests.contracts.sql.accounts.test_accounts import act
from tests.contracts.sql.test_events import create


def with_task(store: Driven, number: int, agent: str) -> Hook:
    """A hook of Ann that gives tasks to an agent."""
    hook = Hook(f"hook_{number}", "ann", f"n{number}", None, agent, "Do {body}", (), False, at(100.0))
    found: Hook = store.write(hooks.create, hook, digest(f"t{number}"), None, 10)
    return found


def created(store: Driven, number: int, user: str = "ann", secret: str | None = "s", most: int = 10) -> Hook:
    hook = Hook(f"hook_{number}", user, f"n{number}", "e", None, None, ("a", "b"), secret is not None, at(100.0))
    found: Hook = store.write(hooks.create, hook, digest(f"t{number}"), secret, most)
    return found


def event(number: int) -> Publish:
    return Publish(f"event_{number}", "ann", "e", {"n": number}, Priority.NORMAL, "user:ann", 100.0, optional=True)


def test_a_hook_is_found_by_its_token_and_listed_for_its_user_alone(store: Driven) -> None:
    one, two, other = created(store, 1), created(store, 2, secret=None), created(store, 3, user="bob")
    found = store.read(hooks.find, digest("t1"))
    assert (found.hook, found.secret) == (one, "s")
    assert store.read(hooks.find, digest("t2")).secret is None
    assert store.read(hooks.find, digest("nothing")) is None
    assert store.read(hooks.listed, "ann", 10, "") == [one, two]
    assert store.read(hooks.listed, "ann", 1, one.hook_id) == [two]
    assert store.read(hooks.get, "bob", other.hook_id) == other
    for op, write in ((hooks.get, store.read), (hooks.delete, store.write)):
        with pytest.raises(NotFound):
            write(op, "bob", one.hook_id)
    store.write(hooks.delete, "ann", one.hook_id)
    assert store.read(hooks.find, digest("t1")) is None


def test_a_hook_gives_tasks_to_agents_that_its_user_may_reach(store: Driven) -> None:
    create(store, "own")
    create(store, "private", user="bob")
    create(store, "open", user="bob", shared=True)
    made = [with_task(store, 1, "agent:ann/own"), with_task(store, 2, "agent:bob/open")]
    for name in ("agent:ann/nobody", "agent:bob/private", "agent:bob/own"):
        with pytest.raises(NotFound, match="create the agent first, or name another"):
            with_task(store, 3, name)
    assert store.read(hooks.listed, "ann", 10, "") == made


def test_hooks_of_a_disabled_user_are_not_found(store: Driven) -> None:
    created(store, 1)
    sql = "INSERT INTO accounts (user_id, role, epoch, created, disabled) VALUES ('ann', 'user', 0, 1, 2)"
    store.write(lambda tx: tx.write(sql))
    assert store.read(hooks.find, digest("t1")) is None


def test_hooks_of_a_user_who_is_being_deleted_are_not_found(store: Driven) -> None:
    created(store, 1)
    store.write(deletion.begin, "ann", "deleted-1", act())
    assert store.read(hooks.find, digest("t1")) is None


def test_a_webhook_of_the_same_store_cannot_post_to_a_hook(store: Driven) -> None:
    one = created(store, 1)
    store.write(lambda tx: deliveries.add(tx, "msg_1", "webhook_1", "ann", "EventPublished", "{}", 100.0))
    with pytest.raises(Invalid, match="same Roost"):
        store.write(hooks.accept, one, "msg_1", event(1), 101.0)
    assert store.read(events.listed, "ann", None, None, None, 10, "~") == []


def test_a_request_is_accepted_once(store: Driven) -> None:
    one, two = created(store, 1), created(store, 2)
    assert store.write(hooks.accept, one, "m1", event(1), 100.0) == ("event_1", ())
    assert store.write(hooks.accept, one, "m1", event(2), 101.0) == ("event_1", None)
    assert store.write(hooks.accept, two, "m1", event(3), 102.0) == ("event_3", ())
    for number in (4, 5):
        assert store.write(hooks.accept, one, None, event(number), 103.0)[1] == ()
    listed = store.read(events.listed, "ann", None, None, None, 10, "~")
    assert [one.event_id for one in listed] == ["event_5", "event_4", "event_3", "event_1"]


def test_accepted_requests_are_forgotten_after_a_while(store: Driven) -> None:
    one = created(store, 1)
    store.write(hooks.accept, one, "m1", event(1), 100.0)
    assert store.write(retention.remove, "hook_requests", 200.0, [("hook_1", "m1")]) == 1
    assert store.write(hooks.accept, one, "m1", event(2), 300.0) == ("event_2", ())


def test_the_number_of_hooks_of_a_user_is_limited(store: Driven) -> None:
    for number in range(3):
        created(store, number, most=3)
    with pytest.raises(LimitReached, match="delete some first"):
        created(store, 9, most=3)
