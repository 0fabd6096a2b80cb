"""A program that was ended in the middle of its work is replaced by a newer one: from every earlier schema on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.stores import migrations
from roost.stores.postgres_connection import PostgresConnection
from roost.stores.sqlite import SqliteConnection
from tests.conftest import QUICK, eventually, everything, settled
from tests.servers import fresh_database

EARLIER = range(1, len(migrations.steps()))
CONFIG = (
    '{"profile": "worker", "check_mail_interval": 30.0, "max_concurrent_tasks": 1, "wake_on_priority": "normal",'
    ' "inbox_limit": 10000, "max_attempts": 3, "retry_delay": 1.0, "task_expiry": null, "subscriptions": [],'
    ' "idle_timeout": 60.0, "shared": false, "description": ""}'
)
"""As the first version with agents wrote it."""


async def worker(turn: roost.Turn) -> AsyncIterator[str]:
    turn.state["done"] = [*turn.state.get("done", []), turn.text]
    yield f"did {turn.text}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        (tmp_path / "old.db").touch()
        yield f"sqlite:///{tmp_path / 'old.db'}"
    else:
        with fresh_database(request.getfixturevalue("postgres")) as made:
            yield made


UNCOUNTED = 27
"""First version in which users have no number of talks."""


def insert(connection: Any, table: str, **row: Any) -> None:
    names = list(row)
    connection.write(f"INSERT INTO {table} ({', '.join(names)}) VALUES (:{', :'.join(names)})", row)


def leave_work(url: str, version: int) -> None:
    """A store as a program of that version left it when it was killed: a question and a task wait."""
    connection: Any
    if url.startswith("sqlite:"):
        connection = SqliteConnection(Path(url.removeprefix("sqlite:///")), lambda: 0.0, read_only=False)
        migrations.migrate(connection, dialect="sqlite", to=version)
    else:
        connection = PostgresConnection(url, read_only=False)
        migrations.migrate(connection, dialect="postgres", to=version)
    connection.begin()
    counted = {"talks": 1} if version < UNCOUNTED else {}
    insert(connection, "users", user_id="ann", **counted)
    insert(
        connection,
        "talks",
        talk_id="talk_old",
        user_id="ann",
        profile="worker",
        busy="interrupt",
        title="Old",
        options="{}",
        created=1.0,
        updated=1.0,
        last_seq=3,
        revision=3,
        epoch=0,
        waiting=1,
        answer_seq=0,
    )
    said = (("user", "one"), ("agent", "did one"), ("user", "two"))
    for seq, (sender, content) in enumerate(said, start=1):
        insert(
            connection,
            "messages",
            talk_id="talk_old",
            seq=seq,
            sender=sender,
            content=content,
            status="complete",
            created=1.0,
            revision=seq,
        )
    insert(connection, "inbox", envelope_id="env_talk", lane="talk_old", seq=3, attempts=1, due=1.0, busy="interrupt")
    if version >= 2:
        leave_task(connection, version)
    connection.commit()
    connection.close()


def leave_task(connection: Any, version: int) -> None:
    if version < UNCOUNTED:
        connection.write("UPDATE users SET agents = 1")
    insert(
        connection,
        "agents",
        address="ann/d",
        user_id="ann",
        agent_id="d",
        config=CONFIG,
        state="idle",
        paused=0,
        epoch=3,
        memory='{"done": ["zero"]}',
        wants_load=0,
        errors=0,
        created=1.0,
        last_active=1.0,
    )
    insert(
        connection,
        "inbox",
        envelope_id="task_old",
        lane="task_old",
        seq=0,
        attempts=1,
        due=0.0,
        busy="",
        address="ann/d",
        kind="task",
        sender="user:ann",
        body="count",
        created=1.0,
        rank=1.0,
        recorded=1,
    )
    insert(
        connection,
        "tasks",
        task_id="task_old",
        address="ann/d",
        user_id="ann",
        sender="user:ann",
        prompt="count",
        priority="normal",
        status="queued",
        attempts=0,
        created=1.0,
    )


@pytest.mark.parametrize("version", EARLIER)
def test_work_left_under_an_earlier_schema_is_done_once_under_this_one(url: str, version: int) -> None:
    leave_work(url, version)
    for _ in range(2):  # the second time nothing is left to do
        with roost.open(url, brains={"worker": worker}, limits=QUICK) as service:
            settled(service, "ann", "talk_old")
            assert [m.content for m in everything(service, "ann", "talk_old")] == ["one", "did one", "two", "did two"]
            if version >= 2:
                eventually(lambda: service.tasks.get("ann", "task_old").is_over)
                assert service.tasks.get("ann", "task_old").result == "did count"
                assert service.agents.inspect("ann", "d").turn_state == {"done": ["zero", "count"]}
