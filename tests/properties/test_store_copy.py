"""Any store is copied to PostgreSQL row by row: odd texts through the service, and odd values in every column."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import roost
from roost.hosts.pending import drive
from roost.stores.copies.store_copy import copy_store
from tests.conftest import QUICK, settled
from tests.properties.conftest import ANY_TEXT
from tests.servers import fresh_database, new_store
from tests.store_rows import in_postgres, in_sqlite

pytestmark = pytest.mark.postgres

NAME = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "TEXT": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "INTEGER": st.integers(-(2**31), 2**31 - 1),
    "DOUBLE PRECISION": st.floats(allow_nan=False),
    "BLOB": st.binary(max_size=30),
}


@pytest.fixture
def new_path() -> Iterator[Callable[[], Path]]:
    """A factory of paths, one for each example."""
    with TemporaryDirectory() as folder:
        yield lambda: Path(folder) / f"{uuid4().hex}.db"


def copied_alike(path: Path, server: str) -> None:
    """Copy a store, and compare all rows."""
    before = in_sqlite(path)
    with fresh_database(server) as target:
        copied = copy_store(path, target)
        assert in_postgres(target) == before
    assert copied.rows == sum(map(len, before.values()))


@given(st.data())
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_all_that_a_service_stores_is_copied_alike(
    postgres: str, new_path: Callable[[], Path], data: st.DataObject
) -> None:
    path = new_path()

    def text() -> str:
        return data.draw(ANY_TEXT)

    def name() -> str:
        return data.draw(NAME)

    with roost.open(new_store(path), limits=QUICK) as service:
        user = name()
        service.users.add("root", "ann")
        service.tokens.create(user, name())
        service.webhooks.create(user, "https://localhost:9/never", events=["*"], name=name())
        hook = service.hooks.create(user, event="heard", name=name()).hook
        drive(service.asynchronous.hooks.accept(hook, {"webhook-id": "1"}, {"text": text()}))
        service.agents.create(user, "d", profile="echo", description=name(), subscriptions=["news.*"])
        service.agents.remember(user, "d", text(), key=name())
        service.events.publish(user, "news.today", {"text": text()})
        service.schedules.create(user, "d", text(), every=3600, name=name())
        service.tasks.wait(user, service.tasks.send(user, "d", text(), key=name()), 30)
        service.mail.send(user, f"user:{user}", name(), text(), sender="agent:d")
        service.mail.send(user, "agent:d", name(), text())
        file = service.add_attachment(user, "notes.bin", data.draw(st.binary(min_size=1)))
        talk = service.create_talk_session(user, profile="echo", title=name())
        service.add_message(user, talk, text(), attachments=[file.attachment_id], key=name())
        settled(service, user, talk)
        service.fork(user, talk, seq=1)
        meeting = service.meetings.call(user, name(), optional=["agent:d"])
        service.meetings.say(user, meeting, text())
        service.agents.sleep(user, "d", data.draw(st.floats(60, 1e6)))
    copied_alike(path, postgres)


@given(st.data())
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_value_in_any_column_is_copied_alike(
    postgres: str, new_path: Callable[[], Path], data: st.DataObject
) -> None:
    path = new_path()
    new_store(path)
    with closing(sqlite3.connect(path)) as db, db:
        listed = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('meta', 'sqlite_sequence')"
        for (table,) in db.execute(listed).fetchall():
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            rows = data.draw(st.lists(st.tuples(*map(_values, columns)), max_size=3))
            places = ", ".join("?" for _ in columns)
            db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)
    copied_alike(path, postgres)


def _values(column: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    _, _, kind, required, _, key = column
    return VALUES[kind] if required or key else st.none() | VALUES[kind]
