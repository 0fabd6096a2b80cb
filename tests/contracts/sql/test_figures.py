"""Figures of the monitor on every store: what is added, what is moved to wider buckets, what is read."""

from __future__ import annotations

from typing import Any

import pytest

from roost.core.monitoring.figures import DAY, HOUR, EdgeCount, FigureName
from roost.ports import Tx
from roost.stores.sql import figures
from roost.stores.sql.figures import FigureRow
from tests.contracts.conftest import Driven
from tests.contracts.sql.inbox.test_agent_work import given
from tests.contracts.sql.test_events import create

START = 1_800_000_000


def known(store: Driven, *users: str) -> None:
    def add(tx: Tx) -> None:
        for user in users:
            tx.write("INSERT INTO users (user_id) VALUES (:user)", {"user": user})

    store.write(add)


def row(name: str, at: int, count: int, total: float = 0.0, *, label: str = "", number: int = 0) -> FigureRow:
    return FigureRow("ann", name, START + at, label, number, count, total)


def read(store: Driven, width: int = 10, name: str | None = None, until: int = 3_600) -> list[tuple[Any, ...]]:
    found = store.read(figures.read, "ann", START, START + until, width, name)
    return [
        (name, label, int(at) - START, number, int(count), float(total))
        for name, label, at, number, count, total in found
    ]


def test_what_several_processes_count_is_added(store: Driven) -> None:
    known(store, "ann")
    store.write(figures.add, [row("tokens", 0, 2, 10.0, label="input"), row("runs", 0, 1, 0.5, label="task", number=8)])
    store.write(figures.add, [row("tokens", 0, 1, 5.0, label="input"), row("tokens", 10, 1, 1.0, label="input")])
    assert read(store) == [
        ("runs", "task", 0, 8, 1, 0.5),
        ("tokens", "input", 0, 0, 3, 15.0),
        ("tokens", "input", 10, 0, 1, 1.0),
    ]
    assert read(store, name="runs") == [("runs", "task", 0, 8, 1, 0.5)]
    assert read(store, width=60, name="tokens") == [("tokens", "input", 0, 0, 4, 16.0)]


def test_counts_of_a_user_who_was_deleted_are_dropped(store: Driven) -> None:
    known(store, "ann")
    store.write(figures.add, [row("errors", 0, 1), FigureRow("gone", "errors", START, "", 0, 1, 1.0)])
    assert store.read(lambda tx: tx.read("SELECT user_id FROM figures"))[0][0] == "ann"
    assert store.read(figures.read, "gone", START, START + 60, 10, None) == []


def test_a_sample_of_all_nodes_is_the_sum_of_their_shares(store: Driven) -> None:
    known(store, "ann")
    for share in (3.0, 4.0):
        store.write(figures.add_samples, [row("agents", 0, 1, share, label="active")])
        store.write(figures.keep_samples, [row("queue", 0, 1, share)])
    assert read(store) == [("agents", "active", 0, 0, 1, 7.0), ("queue", "", 0, 0, 1, 3.0)]


def test_old_figures_are_moved_to_wider_buckets_and_then_deleted(store: Driven) -> None:
    known(store, "ann")
    store.write(figures.add, [row("tokens", at, 1, 2.0, label="input") for at in range(0, 120, 10)])
    assert store.write(figures.roll_up, 10, 60, START + 60, 4) == 4
    assert read(store, width=60) == [("tokens", "input", 0, 0, 6, 12.0), ("tokens", "input", 60, 0, 6, 12.0)]
    assert store.write(figures.roll_up, 10, 60, START + 60, 100) == 2
    assert [one[2] for one in read(store)] == [0, *range(60, 120, 10)]
    assert store.write(figures.roll_up, 60, 900, START + 60, 100) == 1
    assert read(store, width=900) == [("tokens", "input", 0, 0, 12, 24.0)]
    assert store.write(figures.roll_up, 900, None, START + 900, 100) == 1
    assert read(store, width=900) == [("tokens", "input", 0, 0, 6, 12.0)]


def test_who_talks_to_whom_is_counted_over_all_buckets(store: Driven) -> None:
    known(store, "ann")
    pairs = [("user:ann", "agent:ann/a", 1), ("agent:ann/a", "agent:ann/b", 5)]
    for at in (0, 10):
        store.write(figures.add, [row("sent", at, n, label=f"{one}\n{other}") for one, other, n in pairs])
    store.write(figures.roll_up, 10, 60, START + 60, 1)
    expected = [EdgeCount("agent:ann/a", "agent:ann/b", 10), EdgeCount("user:ann", "agent:ann/a", 2)]
    assert store.read(figures.edges, "ann", START, START + HOUR, 9) == expected
    assert store.read(figures.edges, "ann", START, START + HOUR, 1) == expected[:1]
    assert store.read(figures.edges, "bob", START, START + DAY, 9) == []
    assert read(store) == []


def test_users_are_sampled_as_long_as_there_is_something_to_see(store: Driven) -> None:
    known(store, "ann", "bob", "cid", "dan")
    one = FigureName
    for user, name, label, total, at in (
        ("ann", one.TOKENS, "input", 1.0, 0),
        ("bob", one.QUEUE, "", 2.0, -10),
        ("bob", one.AGENTS, "idle", 2.0, 0),
        ("cid", one.QUEUE, "", 0.0, 0),
        ("cid", one.AGENTS, "sleeping", 5.0, 0),
        ("dan", one.AGENTS, "waiting", 1.0, 0),
    ):
        store.write(figures.add, [FigureRow(user, name, START + at, label, 0, 1, total)])
    assert store.read(figures.busy_users, START - 10, START, "", 9) == ["ann", "bob", "dan"]
    assert store.read(figures.busy_users, START, START + 10, "", 9) == ["ann", "dan"]
    assert store.read(figures.busy_users, START - 10, START, "", 1) == ["ann"]
    assert store.read(figures.busy_users, START - 10, START, "ann", 9) == ["bob", "dan"]


def test_a_sample_has_the_inboxes_and_the_states_of_agents(store: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    address = create(store, "d")
    create(store, "e")
    given(store, address, "task_1")
    expected = [row("queue", 0, 1, 1.0), row("agents", 0, 1, 2.0, label="idle")]
    assert store.read(figures.sample, "ann", START) == expected
    assert store.read(figures.sample, "bob", START)[0].total == 0
    monkeypatch.setattr(figures, "MOST_AGENTS", 1)
    assert store.read(figures.sample, "ann", START) == [], "counting more agents would take too long"
