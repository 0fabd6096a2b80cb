"""Removal of expired rows, on every store: in few statements, and nothing that is not over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from roost.core.values.ids import encode
from roost.ports import Row, Tx
from roost.stores.sql import retention
from tests.contracts.conftest import Driven
from tests.contracts.plans import Plan

KEYS = {
    "runs": ("runs", ["run_a"], ["run_b"]),
    "tasks": ("tasks", ["task_a"], ["task_b"]),
    "events": ("events", ["event_a"], ["event_b"]),
    "steps": ("steps", ["env_a", "1"], ["env_b", "2"]),
    "changes": ("agent_changes", ["ann/d", "change_a"], ["ann/e", "change_b"]),
    "diary": ("diary", ["ann/d", "l", "run_a"], ["ann/d", "l", "run_b"]),
    "meetings": ("meetings", ["agent:ann/d", "meeting_a"], ["agent:ann/e", "meeting_b"]),
    "deliveries": ("webhook_deliveries", ["msg_a"], ["msg_b"]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_rows_are_deleted_by_their_keys_in_two_statements(plan: Plan, kind: str) -> None:
    table, *keys = KEYS[kind]
    steps = [step for step in plan(retention.remove, kind, 5.0, keys) if step.split()[1] == table]
    of_deletion = [step for step in steps if ">" in step]
    assert len(of_deletion) == 2, steps
    assert all(step.startswith("SEARCH") and "<" in step for step in of_deletion)


class Counted:
    """A transaction that counts statements."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.count = 0

    def read(self, sql: str, params: Any = ()) -> Sequence[Row]:
        self.count += 1
        return self._tx.read(sql, params)

    def write(self, sql: str, params: Any = ()) -> Sequence[Row]:
        self.count += 1
        return self._tx.write(sql, params)


def test_a_batch_of_any_size_takes_two_statements_and_leaves_what_is_not_over(store: Driven) -> None:
    names = [f"run_{encode(number, 0)}" for number in range(300)]

    def add(tx: Tx) -> None:
        for number, name in enumerate(names):
            ended = 1.0 if number % 3 else 9.0
            tx.later(
                "runs",
                ("run_id", "talk_id", "outcome", "attempts", "started", "ended"),
                (name, "", "done", 1, 1.0, ended),
            )

    def remove(tx: Tx) -> tuple[int, int]:
        counted = Counted(tx)
        return retention.remove(counted, "runs", 5.0, [(names[1],), (names[-2],)]), counted.count  # type: ignore[arg-type]

    store.write(add)
    assert store.write(remove) == (199, 2)
    assert store.write(remove) == (0, 2)
    left = [row[0] for row in store.read(lambda tx: tx.read("SELECT run_id FROM runs ORDER BY run_id"))]
    assert left == [name for number, name in enumerate(names) if number % 3 == 0 or number == 299]


def test_steps_are_removed_by_number_and_not_by_the_text_of_it(store: Driven) -> None:
    def add(tx: Tx) -> None:
        for number in (2, 9, 10, 11):
            row = ("env_a", number, "step", "s", 1, 1.0)
            tx.later("steps", ("envelope_id", "step", "kind", "name", "done", "created"), row)

    store.write(add)
    page = store.read(retention.old, "steps", 5.0, (), 3)
    assert page.keys == (("env_a", "2"), ("env_a", "9"), ("env_a", "10"))
    assert store.write(retention.remove, "steps", 5.0, page.keys) == 3
    assert [row[0] for row in store.read(lambda tx: tx.read("SELECT step FROM steps"))] == [11]
