"""A5 and A7 on every store: what is due at one instant is posted, each tick once."""

from __future__ import annotations

from itertools import count

import pytest

from roost.core.schedules import rules as schedules
from roost.core.schedules.cron import Cron
from roost.core.schedules.rules import Every, Once
from roost.core.values import ids
from roost.errors import LimitReached
from roost.ports import Tx
from roost.stores.sql import retention
from roost.stores.sql.schedules import clock_changes
from roost.stores.sql.schedules import schedules as timers
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import create, take

ALIKE = ("schedule_01a1e2ec1e5136271dbd07be6", "schedule_01a1e2ec1e518fc361e319ad6")
"""Their checksums are the same."""


def nothing(address: str, task_id: str) -> bool:
    """Say that no work that was handed over has begun."""
    return False


def test_every_schedule_that_is_due_posts_whatever_its_id(store: Driven) -> None:
    rule, numbers = schedules.to_json(Once(50.0)), count()
    for agent, schedule_id in zip("de", ALIKE, strict=True):
        create(store, agent)
        store.write(
            timers.create,
            schedule_id,
            "ann",
            f"ann/{agent}",
            "round",
            "go",
            "normal",
            rule,
            "skip",
            "once",
            60.0,
            1.0,
            10,
        )

    def new_id() -> str:
        return f"task_{next(numbers)}"

    fired = store.write(timers.fire, 100.0, new_id, nothing)
    assert sorted((e.address, e.sender) for e in fired.posted) == [
        ("ann/d", f"schedule:{ALIKE[0]}"),
        ("ann/e", f"schedule:{ALIKE[1]}"),
    ]
    assert store.write(timers.fire, 100.0, new_id, nothing).posted == ()

    def posted(tx: Tx) -> list[str]:
        return [row[0] for row in tx.read("SELECT schedule_id FROM tasks ORDER BY schedule_id")]

    assert store.read(posted) == [*ALIKE]


@pytest.mark.parametrize(
    ("overlap", "begun", "posted"),
    [
        ("queue_one", [], [1, 0, 0, 0]),
        ("queue_one", ["task_0"], [1, 1, 0, 0]),
        ("queue_one", ["task_0", "task_1"], [1, 1, 0, 0]),  # of one schedule one runs at a time: the others wait
        ("skip", ["task_0"], [1, 0, 0, 0]),
        ("replace", ["task_0"], [1, 1, 1, 1]),
    ],
)
def test_only_what_has_begun_counts_as_running_and_no_more_than_one(
    store: Driven, overlap: str, begun: list[str], posted: list[int]
) -> None:
    key, numbers = create(store, "d", max_concurrent_tasks=2), count()
    rule = schedules.to_json(Every(10.0, 0.0))
    store.write(timers.create, "s", "ann", key, "round", "go", "normal", rule, overlap, "once", 60.0, 1.0, 10)
    found = []
    for tick in range(10, 50, 10):
        fired = store.write(
            timers.fire, float(tick), lambda: f"task_{next(numbers)}", lambda address, task_id: task_id in begun
        )
        found.append(len(fired.posted))
        take(store, key)
    assert found == posted


def test_a_time_that_has_passed_is_due_at_once_also_if_it_is_set_later(store: Driven) -> None:
    key, numbers = create(store, "d"), count()
    rule = schedules.to_json(Every(1_000.0, 0.0))
    store.write(timers.create, "s", "ann", key, "round", "go", "normal", rule, "skip", "once", 60.0, 1.0, 10)
    changed = store.write(timers.change, "ann", "s", {"rule": schedules.to_json(Once(20.0))}, 50.0)
    assert changed.next is not None
    assert changed.next.timestamp() == 20.0
    for posted in (1, 0):
        fired = store.write(timers.fire, 100.0, lambda: f"task_{next(numbers)}", nothing)
        assert len(fired.posted) == posted


def finished(store: Driven, schedule_id: str, at: float, most: int = 10) -> None:
    """A schedule that came once, and does not come again."""
    rule, numbers = schedules.to_json(Once(at)), count()
    store.write(
        timers.create,
        schedule_id,
        "ann",
        "ann/d",
        schedule_id,
        "go",
        "normal",
        rule,
        "queue_all",
        "once",
        60.0,
        at,
        most,
    )
    fired = store.write(timers.fire, at, lambda: f"task_of_{schedule_id}_{next(numbers)}", nothing)
    assert len(fired.posted) == 1


def test_schedules_that_never_come_again_do_not_count_against_the_limit(store: Driven) -> None:
    key, rule = create(store, "d"), schedules.to_json(Every(1_000.0, 0.0))
    for number in range(3):
        finished(store, f"s{number}", 10.0 + number, most=2)
    for name in ("paused", "coming"):
        store.write(timers.create, name, "ann", key, name, "go", "normal", rule, "skip", "once", 60.0, 20.0, 2)
        if name == "paused":
            store.write(timers.change, "ann", name, {"paused": 1}, 20.0)
    with pytest.raises(LimitReached, match="2 schedules"):
        store.write(timers.create, "more", "ann", key, "more", "go", "normal", rule, "skip", "once", 60.0, 20.0, 2)


def test_schedules_that_have_long_ended_are_removed_and_no_others(store: Driven) -> None:
    key, rule = create(store, "d"), schedules.to_json(Every(1_000.0, 0.0))
    names = [f"schedule_{ids.encode(number, 0)}" for number in range(4)]
    finished(store, names[0], 10.0)
    finished(store, names[1], 60.0)
    for name in names[2:]:
        store.write(timers.create, name, "ann", key, name, "go", "normal", rule, "skip", "once", 60.0, 10.0, 10)
    store.write(timers.change, "ann", names[2], {"paused": 1}, 20.0)
    page = store.read(retention.old, "schedules", 50.0, (), 10)
    assert page.keys == ((names[0],),)
    assert store.write(retention.remove, "schedules", 50.0, [(name,) for name in names]) == 1
    assert [one.schedule_id for one in store.read(timers.listed, "ann", None, 10, "")] == names[1:]


def test_what_was_computed_by_a_clock_that_was_ahead_is_computed_again(store: Driven) -> None:
    now, wrong = 1_000_000.0, 200_000_000.0
    key = create(store, "d")
    rules: dict[str, schedules.Rule] = {
        "every": Every(60.0, wrong),
        "cron": Cron("* * * * *"),
        "right": Every(60.0, 0.0),
        "once": Once(now + 60.0),
    }
    for name, rule in rules.items():
        at = now if name == "right" else wrong
        text = schedules.to_json(rule)
        store.write(timers.create, name, "ann", key, name, "go", "normal", text, "skip", "once", 60.0, at, 10)
    store.write(timers.fire, wrong, lambda: "task_1", nothing)  # the single time has been
    assert store.read(clock_changes.was_ahead, now)
    assert set(store.write(clock_changes.realign, now).schedules) == {"every", "cron", "right"}
    following = {one.name: one.next and one.next.timestamp() for one in store.read(timers.listed, "ann", None, 10, "")}
    assert following == {"every": now + 60.0, "cron": 1_000_020.0, "right": 1_000_020.0, "once": None}
    assert not store.read(clock_changes.was_ahead, now)
    assert not store.write(clock_changes.realign, now)


def every_minute(store: Driven) -> None:
    create(store, "d")
    rule = schedules.to_json(Every(60.0, 0.0))
    args = ("schedule_1", "ann", "ann/d", "round", "go", "normal", rule, "queue_all", "all", 600.0, 1.0, 10)
    store.write(timers.create, *args)


def posted_by_a_second_process(store: Driven, now: float, task_id: str) -> tuple[str, ...]:
    """Fire as a process that has not seen that the timer was fired."""

    def forget(tx: Tx) -> None:
        tx.write("UPDATE schedules SET last = 1.0")
        tx.write("UPDATE timers SET due = 60.0")

    store.write(forget)
    numbers = count()
    fired = store.write(timers.fire, now, lambda: f"{task_id}_{next(numbers)}", nothing)
    return tuple(e.envelope_id for e in fired.posted)


def test_a_tick_that_several_fire_is_queued_once(store: Driven) -> None:
    every_minute(store)
    assert posted_by_a_second_process(store, 121.0, "first") == ("first_0", "first_1")
    assert posted_by_a_second_process(store, 181.0, "second") == ("second_2",), "the others are known"
    waiting = store.read(lambda tx: tx.read("SELECT envelope_id FROM inbox ORDER BY 1"))
    assert [row[0] for row in waiting] == ["first_0", "first_1", "second_2"]


def test_a_time_that_is_set_again_is_posted_again(store: Driven) -> None:
    create(store, "d")
    once = schedules.to_json(Once(50.0))
    args = ("schedule_1", "ann", "ann/d", "round", "go", "normal", once, "queue_all", "once", 600.0, 1.0, 10)
    store.write(timers.create, *args)
    assert len(store.write(timers.fire, 60.0, lambda: "task_1", nothing).posted) == 1
    store.write(timers.change, "ann", "schedule_1", {"rule": once}, 70.0)
    assert len(store.write(timers.fire, 80.0, lambda: "task_2", nothing).posted) == 1
