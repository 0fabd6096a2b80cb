"""Many senders to few people on PostgreSQL: mail is numbered once and in order, and no deadlock reaches a caller."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import psycopg
import pytest

import roost
from roost.hosts.pending import drive
from roost.hosts.threads import ThreadHost
from roost.ports import Pending, Tx
from roost.stores.engine import Engine
from roost.stores.sql import mail as mail_sql
from roost.wiring import database
from tests.conftest import QUICK, eventually
from tests.contracts.conftest import Driven
from tests.servers import fresh_store

PEOPLE = ("ann", "bob", "eve")
pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    with fresh_store(postgres) as made:
        yield made


def deadlocks(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
        assert row is not None
        return int(row[0])


def send(service: roost.AgentService, sender: int, count: int) -> None:
    for number in range(count):
        person = PEOPLE[(sender + number) % len(PEOPLE)]
        service.mail.send(person, f"user:{person}", f"{sender}/{number}", "words")


def read(service: roost.AgentService, person: str, count: int) -> list[str]:
    """Return the subjects in the order in which they arrive."""
    found: list[str] = []
    cursor = "0"
    while len(found) < count:
        page = service.mail.wait(person, cursor, timeout=10)
        assert page.mail, f"{len(found)} of {count} have arrived"
        found += [mail.subject for mail in page.mail]
        for mail in page.mail:
            service.mail.archive(person, mail.mail_id)  # writes the rows that are being numbered
        cursor = page.cursor
    return found


@pytest.mark.parametrize(("senders", "each"), [(8, 30), pytest.param(32, 1_500, marks=pytest.mark.soak)])
def test_mail_of_many_senders_is_numbered_without_a_deadlock(url: str, senders: int, each: int) -> None:
    with roost.open(url, limits=QUICK) as service, ThreadPoolExecutor(senders + 2 * len(PEOPLE)) as threads:
        start = time.perf_counter()
        sent = [threads.submit(send, service, sender, each) for sender in range(senders)]
        whole = senders * each // len(PEOPLE)
        readers = [threads.submit(read, service, person, whole) for person in (*PEOPLE, *PEOPLE)]
        for one in sent:
            one.result(60)
        found = [reader.result(60) for reader in readers]
        print(f"{senders * each / (time.perf_counter() - start):.0f} mails/s, numbered and read twice")
    for first, second in zip(found[: len(PEOPLE)], found[len(PEOPLE) :], strict=True):
        assert first == second, "both readers of a mailbox see one order"
        assert len(set(first)) == whole
        for sender in range(senders):
            mine = [int(subject.partition("/")[2]) for subject in first if subject.startswith(f"{sender}/")]
            assert mine == sorted(mine), "mail of one sender stays in order"
    assert deadlocks(url) == 0


async def awaited(pending: Pending[None]) -> None:
    await pending


def test_a_batch_that_loses_deadlocks_is_tried_again_and_its_callers_see_nothing(url: str) -> None:
    host = ThreadHost()
    store = Driven(Engine(host, database(url, host.clock.now), queued=100))
    first, second = (f"user:{person}" for person in PEOPLE[:2])
    for box in (first, second):
        store.write(mail_sql.number_arrivals, box)
    holds_first, other_waits = Event(), Event()

    def pause(tx: Tx) -> None:
        holds_first.set()
        other_waits.wait(10)

    lock = "SELECT 1 FROM mailboxes WHERE recipient = %s FOR UPDATE"
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    try:
        with (
            psycopg.connect(url) as other,
            psycopg.connect(url, autocommit=True) as watching,
            ThreadPoolExecutor(1) as thread,
        ):
            other.execute("SET deadlock_timeout = '30s'")  # so that Roost gives way
            other.execute(lock, (second,))
            engine = store.engine
            with store.held():
                written = [
                    engine.write(mail_sql.number_arrivals, first),
                    engine.write(pause),
                    engine.write(mail_sql.number_arrivals, second),
                ]
            assert holds_first.wait(10)
            locked = thread.submit(other.execute, lock, (first,))
            eventually(lambda: watching.execute(waiting).fetchone())
            other_waits.set()  # the last one to wait is the one that looks for a deadlock
            locked.result(30)
            other.rollback()
        for one in written:
            drive(awaited(one))
        # The second attempt can lock the first row before `other` is awake, and lose again: then they run one by one.
        eventually(lambda: deadlocks(url) >= 1)
    finally:
        store.engine.close()
