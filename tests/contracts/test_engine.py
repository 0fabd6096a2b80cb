"""The engine under every store."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from psycopg import errors

from roost.core.envelopes.dead_letters import DeadLetter, LetterKind
from roost.core.monitoring.facts import FactRow, Name
from roost.core.talks.messages import at
from roost.errors import Invalid, Unavailable
from roost.hosts.pending import drive
from roost.hosts.threads import ThreadHost
from roost.ports import Pending, Tx
from roost.stores import heartbeat
from roost.stores.engine import Engine
from roost.stores.sql.tables.dead_letters import add_dead_letter
from roost.stores.sql.tables.timers import arm, arm_all
from roost.stores.sqlite import SqliteConnection
from roost.wiring import database
from tests.conftest import eventually
from tests.contracts.conftest import Driven


def put(tx: Tx, name: str, value: str) -> str:
    tx.write("INSERT INTO meta (name, value) VALUES (:name, :value)", {"name": name, "value": value})
    return value


def a_letter(letter_id: str) -> DeadLetter:
    return DeadLetter(
        letter_id, "ann", None, LetterKind.EVENT, "untaken", "nobody", 0, at(1.0), {"event_id": "event_1"}
    )


def put_and_refuse(tx: Tx, name: str) -> None:
    put(tx, name, "x")
    raise Invalid("refused after writing")


def names(tx: Tx) -> list[str]:
    return [row[0] for row in tx.read("SELECT name FROM meta WHERE name NOT IN ('schema', 'oldest') ORDER BY name")]


def test_what_is_written_can_be_read(store: Driven) -> None:
    assert store.write(put, "a", "1") == "1"
    assert store.read(names) == ["a"]


def test_one_that_fails_in_a_batch_fails_alone(store: Driven) -> None:
    with store.held():
        batch: list[Pending[Any]] = [
            store.engine.write(put, "a", "1"),
            store.engine.write(put_and_refuse, "b"),
            store.engine.write(put, "c", "3"),
        ]

    async def all_of_them() -> None:
        await batch[0]
        await batch[2]
        with pytest.raises(Invalid, match="refused"):
            await batch[1]

    drive(all_of_them())
    assert store.read(names) == ["a", "c"]


def test_statements_of_any_size_are_written_in_one_batch(store: Driven) -> None:
    sizes = (10, 20_000, 8_000_000, 0, 3_000_000, 30_000, 30_000)

    def put_all(tx: Tx) -> None:
        for number, size in enumerate(sizes):
            tx.write(
                "INSERT INTO meta (name, value) VALUES (:name, :value)", {"name": f"x{number}", "value": "é" * size}
            )

    def lengths(tx: Tx) -> list[int]:
        return [row[0] for row in tx.read("SELECT length(value) FROM meta WHERE name LIKE 'x%' ORDER BY name")]

    store.write(put_all)
    assert store.read(lengths) == list(sizes)


def test_a_statement_that_fails_is_undone_whole(store: Driven) -> None:
    def twice(tx: Tx) -> None:
        put(tx, "a", "1")
        put(tx, "a", "2")

    with pytest.raises(Unavailable):
        store.write(twice)
    assert store.read(names) == []


def test_post_commit_callbacks_run_in_order_before_the_caller_is_resumed(store: Driven) -> None:
    told: list[str] = []
    for n in range(50):
        store.engine.write(put, f"{n:02}", str(n), key="same", then=told.append)
    store.write(put, "zz", "last", key="same", then=told.append)
    assert told == [*map(str, range(50)), "last"]


def test_a_listener_that_fails_does_not_undo_what_was_committed(store: Driven) -> None:
    def fail(_: str) -> None:
        raise RuntimeError("listener")

    assert store.write(put, "a", "1", then=fail) == "1"
    assert store.read(names) == ["a"]


def test_dead_letters_are_reported_after_the_commit_before_the_caller_is_resumed(store: Driven) -> None:
    told: list[str] = []
    store.engine.listen(lambda letters: told.extend(letter.letter_id for letter in letters))
    for _ in range(2):  # done again, it has died already
        store.write(add_dead_letter, a_letter("letter_1"), then=lambda _: told.append("then"))
    assert told == ["then", "letter_1", "then"]


def test_a_letter_that_is_not_committed_has_not_died(store: Driven) -> None:
    def bury_and_refuse(tx: Tx) -> None:
        add_dead_letter(tx, a_letter("letter_1"))
        raise Invalid("refused after writing")

    told: list[str] = []
    store.engine.listen(lambda letters: told.extend(letter.letter_id for letter in letters))
    with store.held():
        store.engine.write(add_dead_letter, a_letter("letter_2"))
        refused = store.engine.write(bury_and_refuse)
        store.engine.write(add_dead_letter, a_letter("letter_3"))

    async def hear() -> None:
        with pytest.raises(Invalid, match="refused"):
            await refused

    drive(hear())
    store.write(put, "a", "1")
    assert told == ["letter_2", "letter_3"]


def test_the_first_due_timer_is_reported_after_the_commit(store: Driven) -> None:
    def refuse(tx: Tx) -> None:
        arm(tx, "ann/d", "wake", 1.0)
        raise Invalid("refused after writing")

    told: list[object] = []
    store.engine.listen(bool, told.append)
    with store.held():
        store.engine.write(arm, "ann/d", "wake", 7.0, then=lambda _: told.append("then"))
        store.engine.write(arm_all, [("ann/d", "retry", 9.0), ("ann/e", "wake", 5.0)])
    store.write(put, "a", "1")
    store.write(arm_all, [])
    assert told == ["then", 5.0]
    with pytest.raises(Invalid, match="refused"):
        store.write(refuse)
    store.write(put, "b", "1")
    assert told == ["then", 5.0], "what is not committed is not set"


def test_a_listener_to_deaths_that_fails_does_not_undo_what_was_committed(store: Driven) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("listener")

    store.engine.listen(fail)
    assert store.write(add_dead_letter, a_letter("letter_1")) is None


def a_fact(about: str) -> FactRow:
    return Name.AGENT_CREATED, 1.0, None, about, {}, ""


def test_facts_are_reported_after_the_commit_before_its_callback(store: Driven) -> None:
    told: list[object] = []
    store.engine.listen(bool, reported=told.extend)
    store.write(put, "a", "1", facts=lambda value: [a_fact(f"ann/{value}")], then=told.append)
    assert told == [a_fact("ann/1"), "1"]


def test_what_a_listener_writes_about_facts_is_part_of_their_transaction(store: Driven) -> None:
    def keep(tx: Tx, rows: Sequence[FactRow]) -> None:
        for row in rows:
            put(tx, f"kept {row[3]}", "x")
        if len(tx.died) > 1:
            raise ConnectionError("too many letters")

    store.engine.listen(bool, committing=keep)
    store.write(put, "a", "1", facts=lambda _: [a_fact("ann/d")])
    assert store.read(names) == ["a", "kept ann/d"]

    def bury_two(tx: Tx) -> None:
        add_dead_letter(tx, a_letter("letter_1"))
        add_dead_letter(tx, a_letter("letter_2"))

    with pytest.raises(Unavailable):
        store.write(bury_two, facts=lambda _: [a_fact("ann/e")])
    assert store.read(names) == ["a", "kept ann/d"], "neither the letters nor the fact"


def test_a_refused_write_has_no_facts_and_facts_that_fail_do_not_undo_a_write(store: Driven) -> None:
    def refuse(tx: Tx) -> None:
        raise Invalid("no")

    def fail(_: str) -> list[FactRow]:
        raise RuntimeError("facts")

    told: list[object] = []
    store.engine.listen(bool, committing=lambda tx, rows: told.extend(rows), reported=told.extend)
    with pytest.raises(Invalid):
        store.write(refuse, facts=lambda _: [a_fact("ann/d")])
    assert store.write(put, "a", "1", facts=fail) == "1"
    assert (told, store.read(names)) == ([], ["a"])


def test_closing_does_what_is_queued_first(url: str) -> None:
    host = ThreadHost()
    first = Engine(host, database(url, host.clock.now), queued=10_000)
    for n in range(200):
        first.write(put, f"{n:03}", "x")
    first.close()
    again = Engine(host, database(url, host.clock.now), queued=10)
    try:
        assert len(Driven(again).read(names)) == 200
    finally:
        again.close()


def test_a_closed_store_says_so(store: Driven) -> None:
    store.engine.close()
    with pytest.raises(Unavailable, match="closed"):
        store.write(put, "a", "1")


def test_too_much_in_the_queue_is_refused(url: str) -> None:
    host = ThreadHost()
    small = Engine(host, database(url, host.clock.now), queued=2)
    go = threading.Event()
    small.write(lambda tx: go.wait(10))
    try:
        with pytest.raises(Unavailable, match="cannot keep up"):
            for n in range(10):
                small.write(put, str(n), "x")
    finally:
        go.set()
        small.close()


def test_a_store_that_is_open_cannot_be_opened_again(url: str, store: Driven) -> None:
    with pytest.raises(Unavailable, match="in use by"):
        database(url, ThreadHost().clock.now)


@contextmanager
def one_reader_held(store: Driven) -> Iterator[list[str]]:
    """Hold the only reader: reads meanwhile wait for it; yield what it does then."""
    holds, go, done = threading.Event(), threading.Event(), list[str]()
    for reader in store.engine._readers[1:]:
        reader.pump.close()
        reader.connection.close()
    del store.engine._readers[1:]
    connection = store.engine._readers[0].connection
    begin, rollback = connection.begin, connection.rollback
    connection.begin = lambda: (done.append("begin"), begin())[1]  # type: ignore[method-assign,func-returns-value]
    connection.rollback = lambda: (done.append("end"), rollback())[1]  # type: ignore[method-assign,func-returns-value]

    def hold(tx: Tx) -> None:
        holds.set()
        go.wait(10)

    store.engine.read(hold)
    assert holds.wait(10)
    done.clear()
    try:
        yield done
    finally:
        go.set()


def test_reads_that_wait_share_a_transaction_and_one_that_fails_fails_alone(store: Driven) -> None:
    def refuse(tx: Tx) -> None:
        raise Invalid("no such thing")

    def misspelt(tx: Tx) -> None:
        tx.read("SELECT nothing FROM nowhere")

    store.write(put, "a", "1")
    with one_reader_held(store) as done:
        jobs: list[Pending[Any]] = [store.engine.read(op) for op in (names, names, refuse, names, misspelt, names)]

    async def results() -> list[Any]:
        found = []
        for job in jobs:
            try:
                found.append(await job)
            except (Invalid, Unavailable) as error:
                found.append(type(error))
        return found

    assert drive(results()) == [["a"], ["a"], Invalid, ["a"], Unavailable, ["a"]]
    together = [
        "the first, too late for the held one",
        "the second and the refused one",
        "the refused one by itself",
        "the fourth and the misspelt one",
        "the misspelt one by itself",
        "the last",
    ]
    expected = ["end", *["begin", "end"] * len(together)]
    eventually(lambda: len(done) >= len(expected))  # a result is given before its transaction ends
    assert done == expected


def test_a_quick_read_does_not_wait_for_a_slow_one_behind_it(store: Driven) -> None:
    go = threading.Event()

    async def both() -> None:
        with one_reader_held(store):
            quick, slow = store.engine.read(names), store.engine.read(lambda tx: go.wait(10))
        try:
            assert await asyncio.wait_for(_result(quick), 5) == []
            assert not slow.done
        finally:
            go.set()
        assert await slow

    asyncio.run(both())


async def _result(pending: Pending[list[str]]) -> list[str]:
    return await pending


def test_a_read_sees_what_was_written_when_it_was_asked_for(store: Driven) -> None:
    """Also while others are being read, in a transaction that began before."""

    def write_and_ask(tx: Tx) -> Pending[list[str]]:
        before = names(tx)
        store.write(put, "b", "2")
        assert before == ["a"]
        return store.engine.read(names)

    store.write(put, "a", "1")
    with one_reader_held(store):
        asking = store.engine.read(write_and_ask)

    async def asked_meanwhile() -> list[str]:
        return await (await asking)

    assert drive(asked_meanwhile()) == ["a", "b"]


def without_space(tx: Tx) -> None:
    """Fail as on a full disk."""
    if not isinstance(tx, SqliteConnection):
        raise errors.DiskFull("could not extend file")
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    raise error


def test_after_a_write_without_space_a_heartbeat_needs_space(store: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def with_room(tx: Tx, writer: str, now: float) -> None:
        written.append(writer)
        real(tx, writer, now)

    real = heartbeat.write_with_room
    monkeypatch.setattr(heartbeat, "write_with_room", with_room)
    with pytest.raises(Unavailable, match="disk is full"):
        store.write(without_space)
    store.write(put, "a", "small")  # proves nothing
    for _ in range(2):
        drive(store.engine.heartbeat(60.0))
    assert len(written) == 1
    assert [name for name in store.read(names) if name.startswith("room")] == []


def test_time_is_the_stores(store: Driven) -> None:
    now = store.read(lambda tx: tx.one("SELECT roost_now()"))[0]
    assert abs(now - ThreadHost().clock.now()) < 5
