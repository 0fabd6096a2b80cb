"""Webhooks on every store: of one user each, with their choices."""

from __future__ import annotations

import pytest

from roost.core.webhooks.webhook import ChosenFacts, Webhook
from roost.errors import LimitReached, NotFound
from roost.stores.sql.webhooks import deliveries, webhooks
from tests.contracts.conftest import Driven


def created(store: Driven, number: int, user: str = "ann", events: str = "Task* LetterDied", most: int = 10) -> Webhook:
    args = (f"webhook_{number}", user, f"name {number}", "https://example.com/x", events, f"s{number}", 100.0, most)
    found: Webhook = store.write(webhooks.create, *args)
    return found


def test_a_webhook_is_listed_and_changed_for_its_user_alone(store: Driven) -> None:
    one, two, other = created(store, 1), created(store, 2), created(store, 3, user="bob")
    assert (one.events, one.paused, one.missed) == (("Task*", "LetterDied"), False, 0)
    assert store.read(webhooks.listed, "ann", 10, "") == [one, two]
    assert store.read(webhooks.listed, "ann", 1, one.webhook_id) == [two]
    changed = store.write(webhooks.change, "ann", one.webhook_id, None, "https://example.com/y", None)
    assert (changed.url, changed.name, changed.events) == ("https://example.com/y", "name 1", one.events)
    for op, args in (
        (webhooks.change, (None, None, None)),
        (webhooks.pause, ("why",)),
        (webhooks.rotate, ("new", 5.0)),
        (webhooks.delete, ()),
    ):
        with pytest.raises(NotFound):
            store.write(op, "bob", one.webhook_id, *args)
    assert store.read(webhooks.get, "bob", other.webhook_id) == other
    with pytest.raises(NotFound):
        store.read(webhooks.get, "ann", other.webhook_id)


def test_a_paused_webhook_has_a_reason_until_it_is_resumed(store: Driven) -> None:
    one = created(store, 1)
    paused = store.write(webhooks.pause, "ann", one.webhook_id, "410")
    assert (paused.paused, paused.reason) == (True, "410")
    assert store.write(webhooks.pause, "ann", one.webhook_id, None) == one


def test_choices_of_all_users_and_of_one(store: Driven) -> None:
    created(store, 1, events="*")
    created(store, 2)
    created(store, 3, user="bob", events="AgentWoke")
    own = {"ann": (ChosenFacts("webhook_1", ("*",)), ChosenFacts("webhook_2", ("Task*", "LetterDied")))}
    bobs = {"bob": (ChosenFacts("webhook_3", ("AgentWoke",)),)}
    assert store.read(webhooks.choices) == own | bobs
    assert store.read(webhooks.choices, "ann") == own
    store.write(webhooks.delete, "bob", "webhook_3")
    assert store.read(webhooks.choices, "bob") == {"bob": ()}


def test_a_rotated_secret_signs_beside_the_new_one_for_a_while(store: Driven) -> None:
    created(store, 1)
    store.write(deliveries.add, "msg_1", "webhook_1", "ann", "TaskDone", "{}", 100.0)
    store.write(webhooks.rotate, "ann", "webhook_1", "new", 200.0)
    [early], _ = store.read(deliveries.due, "webhook_1", 199.0, 10)
    [late], _ = store.read(deliveries.due, "webhook_1", 201.0, 10)
    assert (early.secrets, late.secrets) == (("new", "s1"), ("new",))


def test_the_number_of_webhooks_of_a_user_is_limited(store: Driven) -> None:
    for number in range(3):
        created(store, number, most=3)
    with pytest.raises(LimitReached, match="delete some first"):
        created(store, 9, most=3)
    assert created(store, 4, user="bob", most=3).user_id == "bob"
