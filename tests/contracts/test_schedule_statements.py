"""A5 and A7 on every store: what is due at one instant is posted, each tick once."""

from __future__ import annotations

from itertools import count

from roost.core import schedules
from roost.core.schedules import Once
from roost.ports import Tx
from roost.stores.statements import timers
from tests.contracts.conftest import Driven
from tests.contracts.test_event_statements import create

ALIKE = ("schedule_01a1e2ec1e5136271dbd07be6", "schedule_01a1e2ec1e518fc361e319ad6")
"""Their checksums are the same."""


def test_every_schedule_that_is_due_posts_whatever_its_id(store: Driven) -> None:
    rule, numbers = schedules.to_json(Once(50.0)), count()
    for agent, schedule_id in zip("de", ALIKE, strict=True):
        create(store, agent)
        store.write(
            timers.create, schedule_id, "ann", f"ann/{agent}", "round", "go", "normal", rule, "skip", "once", 60.0,
            1.0, 10,
        )  # fmt: skip

    def new_id() -> str:
        return f"task_{next(numbers)}"

    fired = store.write(timers.fire, 100.0, new_id)
    assert sorted((e.address, e.sender) for e in fired.posted) == [
        ("ann/d", f"schedule:{ALIKE[0]}"), ("ann/e", f"schedule:{ALIKE[1]}"),
    ]  # fmt: skip
    assert store.write(timers.fire, 100.0, new_id).posted == ()

    def posted(tx: Tx) -> list[str]:
        return [row[0] for row in tx.read("SELECT schedule_id FROM tasks ORDER BY schedule_id")]

    assert store.read(posted) == [*ALIKE]
