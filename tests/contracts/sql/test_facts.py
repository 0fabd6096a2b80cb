"""Facts of a cluster on every store: written with their transaction, read in one order."""

from __future__ import annotations

import pytest

from roost.core.monitoring.facts import FactRow, Name
from roost.ports import Tx
from roost.stores.postgres_connection import PostgresConnection
from roost.stores.sql import facts
from roost.stores.sql.facts import START, Position
from tests.contracts.conftest import Driven


def row(number: int) -> FactRow:
    return Name.AGENT_CREATED, float(number), None, f"ann/d{number}", {"by": number}, "root"


def read(store: Driven, after: Position = START) -> list[str | None]:
    return [fact[3] for _, fact in store.read(facts.after, after, 100).facts]


def test_facts_are_read_as_they_were_written(store: Driven) -> None:
    store.write(facts.add, [row(1), row(2)])
    store.write(facts.add, [(Name.WORKER_RESTARTED, 3.0, "", None, {}, "")])
    found = store.read(facts.after, START, 100)
    assert [fact for _, fact in found.facts] == [
        (Name.AGENT_CREATED, 1.0, "ann", "ann/d1", {"by": 1}, "root"),
        (Name.AGENT_CREATED, 2.0, "ann", "ann/d2", {"by": 2}, "root"),
        (Name.WORKER_RESTARTED, 3.0, "", None, {}, ""),
    ]
    assert found.end == found.facts[-1][0]
    assert not store.read(facts.after, found.end, 100).facts


def test_a_page_continues_where_the_last_one_ended(store: Driven) -> None:
    store.write(facts.add, [row(number) for number in range(5)])
    first = store.read(facts.after, START, 2)
    assert first.more
    assert read(store, first.end) == ["ann/d2", "ann/d3", "ann/d4"]


def test_old_facts_are_deleted_and_the_rest_is_complete(store: Driven) -> None:
    store.write(facts.add, [row(number) for number in range(5)])
    last_removed = store.read(facts.after, START, 2).end
    assert store.write(facts.trim, 3, -1.0) == 2
    assert store.write(facts.trim, 3, -1.0) == 0
    kept = store.read(facts.newest, 10)
    assert kept.floor == last_removed
    assert [fact[3] for _, fact in kept.facts] == ["ann/d2", "ann/d3", "ann/d4"]
    fewer = store.read(facts.newest, 2)
    assert (fewer.floor, len(fewer.facts)) == (kept.facts[0][0], 2)


def test_facts_before_a_time_are_deleted(store: Driven) -> None:
    store.write(facts.add, [row(number) for number in range(5)])
    assert store.write(facts.trim, 100, 2.0) == 2
    assert read(store) == ["ann/d2", "ann/d3", "ann/d4"]


def test_a_fact_of_an_unknown_name_is_left_out(store: Driven) -> None:
    def add(tx: Tx) -> None:
        tx.write(
            "INSERT INTO facts (name, at, user_id, about, data, root) VALUES ('Newer', 0.0, 'ann', NULL, '{}', '')"
        )

    store.write(add)
    store.write(facts.add, [row(1)])
    assert read(store) == ["ann/d1"]
    assert len(store.read(facts.newest, 10).facts) == 1


@pytest.mark.postgres
def test_a_fact_waits_for_older_transactions(url: str, store: Driven) -> None:
    if not url.startswith("postgres"):
        assert read(store) == []
        return
    slow = PostgresConnection(url, read_only=False)
    try:
        slow.begin()
        facts.add(slow, [row(1)])
        slow.catch_up()
        store.write(facts.add, [row(2)])
        assert read(store) == []
        assert not store.read(facts.newest, 10).facts
        slow.commit()
        assert read(store) == ["ann/d1", "ann/d2"]
    finally:
        slow.close()
