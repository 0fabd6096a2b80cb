"""A17: finished rows are kept as long as the limits say; unfinished ones stay, however old they are."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.ports import Tx
from roost.runtime import retention
from roost.testing import Simulation
from tests.runtime.conftest import QUICK, World, becomes, ended, until

NOTHING_KEPT = replace(
    QUICK,
    keep_runs_days=1e-9,
    keep_events_days=1e-9,
    keep_changes_days=1e-9,
    keep_tasks_days=1e-9,
    keep_mail_days=1e-9,
    keep_letters_days=1e-9,
    keep_talks_days=1e-9,
    keep_journals_days=1e-9,
)
UNLIMITED = replace(
    QUICK,
    keep_runs_days=0,
    keep_events_days=0,
    keep_changes_days=0,
    keep_tasks_days=0,
    keep_mail_days=0,
    keep_letters_days=0,
    keep_talks_days=0,
    keep_journals_days=0,
)
TABLES = (
    "runs",
    "steps",
    "events",
    "agent_changes",
    "tasks",
    "mail",
    "dead_letters",
    "talks",
    "messages",
    "schedules",
    "inbox",
)


async def busy(turn: Turn) -> AsyncIterator[str]:
    if "fail" in turn.text:
        raise RuntimeError("as asked")
    await turn.step("a step", lambda: 1)
    yield "done"


async def life(service: AsyncAgentService) -> None:
    """One of everything that is kept, and all of it over."""
    await service.agents.create("ann", "d", profile="busy", max_attempts=1, subscriptions=["news"])
    for prompt in ("work", "fail"):
        task = await service.tasks.send("ann", "d", prompt)
        await service.tasks.wait("ann", task, timeout=20)
    await service.schedules.create("ann", "d", "work", at=datetime(2020, 1, 1, tzinfo=UTC))
    await becomes(lambda: service.schedules.list("ann"), lambda found: found[0].next is None)
    await service.events.publish("ann", "news", {"n": 1})
    letter = await service.mail.send("ann", "agent:d", "Hello", "world")
    await becomes(lambda: service.mail.get("ann", letter), lambda mail: mail.status == "replied")
    answer, *_ = await service.mail.inbox("ann")
    await service.mail.read("ann", answer.mail_id)
    talk = await service.create_talk_session("ann", profile="busy")
    await service.add_message("ann", talk, "hello")
    await ended(service, talk)
    await becomes(lambda: service.agents.get("ann", "d"), lambda agent: not agent.queue_depth)


def counts(path: Path) -> dict[str, int]:
    with sqlite3.connect(path) as db:
        found = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
    db.close()
    return found


async def sweep(service: AsyncAgentService) -> dict[str, int]:
    """Sweep when everything done until now is a moment old."""
    clock = service.roost.context.host.clock
    start = clock.now()
    await until(lambda: clock.now() > start + 0.005)
    return await service.roost.retention.sweep()


def test_what_is_over_and_too_old_is_gone_and_the_agent_lives_on(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[dict[str, int], Any]:
        await life(service)
        removed = await sweep(service)
        task = await service.tasks.send("ann", "d", "work")
        return removed, await service.tasks.wait("ann", task, timeout=20)

    removed, task = world({"busy": busy}, story, UNLIMITED)
    assert set(removed.values()) <= {0}
    assert task.status == "done"

    async def later(service: AsyncAgentService) -> tuple[Any, ...]:
        await sweep(service)
        await becomes(lambda: service.tasks.list("ann"), lambda tasks: not tasks)
        await becomes(lambda: service.schedules.list("ann"), lambda found: not found)
        await becomes(lambda: service.dead_letters.list("ann"), lambda letters: not letters)
        await becomes(lambda: service.events.history("ann"), lambda events: not events)
        await becomes(lambda: service.mail.inbox("ann", include_archived=True), lambda mail: not mail)
        await becomes(lambda: service.list_sessions("ann"), lambda talks: not talks)
        seen = await becomes(lambda: service.agents.inspect("ann", "d"), lambda seen: not seen.runs)
        return seen.agent.agent_id, seen.changes

    assert world({"busy": busy}, later, NOTHING_KEPT) == ("d", ())


def test_nothing_that_is_unfinished_is_removed(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[Any, ...]:
        await service.agents.create("ann", "d", profile="busy", start=False, subscriptions=["news"])
        task = await service.tasks.send("ann", "d", "work")
        letter = await service.mail.send("ann", "agent:d", "Hello", "world")
        event = await service.events.publish("ann", "news")
        unread = await service.mail.send("ann", "user:ann", "Note", "to myself")
        await sweep(service)
        kept = (
            (await service.tasks.get("ann", task)).status,
            (await service.mail.get("ann", letter)).status,
            (await service.mail.get("ann", unread)).status,
            [one.event_id for one in await service.events.history("ann")] == [event],
            (await service.agents.get("ann", "d")).queue_depth,
        )
        await service.agents.start("ann", "d")
        done = await service.tasks.wait("ann", task, timeout=20)
        return *kept, done.status

    assert world({"busy": busy}, story, NOTHING_KEPT) == ("queued", "unread", "unread", True, 3, "done")


def test_a_dead_letter_keeps_what_its_retry_needs(world: World) -> None:
    tries: list[int] = []

    async def once(turn: Turn) -> AsyncIterator[str]:
        await turn.step("count", lambda: tries.append(1))
        if not allowed:
            raise RuntimeError("as asked")
        yield "done"

    allowed: list[bool] = []

    async def story(service: AsyncAgentService) -> tuple[str, int]:
        await service.agents.create("ann", "d", profile="once", max_attempts=1)
        task = await service.tasks.send("ann", "d", "work")
        await service.tasks.wait("ann", task, timeout=20)
        await sweep(service)
        [letter] = await service.dead_letters.list("ann")
        allowed.append(True)
        await service.dead_letters.retry("ann", letter.letter_id)
        done = await becomes(lambda: service.tasks.get("ann", task), lambda task: task.is_over)
        return done.status, len(tries)

    limits = replace(NOTHING_KEPT, keep_letters_days=90.0)
    assert world({"once": once}, story, limits) == ("done", 1)


def test_each_kind_goes_when_its_time_has_come_and_not_before(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=1)

    def opened(days: float) -> dict[str, int]:
        simulation.clock.shift += days * 86_400

        async def story() -> None:
            async with service:
                await sweep(service)

        service = simulation.start({"busy": busy}, QUICK)
        simulation.run(story())
        return counts(simulation.path)

    async def first() -> None:
        async with service:
            await life(service)

    service = simulation.start({"busy": busy}, QUICK)
    simulation.run(first())
    before = counts(simulation.path)
    assert all(before[table] for table in TABLES if table != "inbox")
    assert opened(29) == before
    after_31 = opened(2)
    gone = {table for table in TABLES if before[table] and not after_31[table]}
    assert gone == {"runs", "steps", "events", "schedules"}
    assert (before["tasks"], after_31["tasks"]) == (3, 1)  # a dead letter needs the other
    after_91 = opened(60)
    assert {t for t in TABLES if after_31[t] and not after_91[t]} == {"dead_letters", "tasks", "agent_changes"}
    after_366 = opened(275)
    assert {t for t in TABLES if after_91[t] and not after_366[t]} == {"mail"}
    assert after_366["talks"] == after_366["messages"] / 2 == 1  # kept without limit


def test_a_sweep_removes_a_little_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "LOOK", 7)
    monkeypatch.setattr(retention, "BATCH", 3)

    async def story(service: AsyncAgentService) -> tuple[list[int], int]:
        sizes: list[int] = []
        store = service.roost.context.store
        write = store.write

        def counted(op: Any, *args: Any, **options: Any) -> Any:
            if op.__name__ == "remove":
                sizes.append(len(args[2]))
            return write(op, *args, **options)

        for number in range(20):
            await service.events.publish("ann", f"event{number}", optional=True)
        monkeypatch.setattr(store, "write", counted)
        removed = await sweep(service)
        return sizes, removed["events"]

    sizes, removed = world({"busy": busy}, story, replace(UNLIMITED, keep_events_days=1e-9))
    assert (sum(sizes), removed) == (20, 20)
    assert max(sizes) == 3


def test_a_sweep_gives_space_back_a_little_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "PAGES", 16)
    simulation = Simulation(tmp_path, seed=1)
    calls: list[str] = []

    async def story() -> tuple[int, int, int]:
        async with service:
            store = service.roost.context.store
            for number in range(200):
                await service.events.publish("ann", f"event{number}", {"text": 2_000 * "x"}, optional=True)
            full, _ = await store.read(pages)
            write = store.write

            def counted(op: Any, *args: Any, **options: Any) -> Any:
                calls.append(op.__name__)
                return write(op, *args, **options)

            monkeypatch.setattr(store, "write", counted)
            assert (await sweep(service))["events"] == 200
            return full, *await store.read(pages)

    service = simulation.start({}, replace(UNLIMITED, keep_events_days=1e-9))
    full, count, free = simulation.run(story())
    assert full - count >= 100
    assert free <= count * 0.2
    steps = [name for name in calls if name in ("remove", "give_back")]
    assert steps == ["remove", *["give_back"] * (len(steps) - 1)]
    assert len(steps) > (full - count) / 16


def pages(tx: Tx) -> tuple[int, int]:
    """Return the number of pages of a SQLite file, and of its free pages."""
    [[count]], [[free]] = tx.read("PRAGMA page_count"), tx.read("PRAGMA freelist_count")
    return count, free


def test_sweeps_come_by_themselves(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "FIRST", 0.3)
    monkeypatch.setattr(retention, "EVERY", 0.3)

    async def story(service: AsyncAgentService) -> int:
        await until(lambda: service.roost.retention.sweeps)
        await service.events.publish("ann", "news", optional=True)
        await until(lambda: service.roost.retention.sweeps > 2)  # the one under way may have come too soon
        return len(await service.events.history("ann"))

    assert world({}, story, NOTHING_KEPT) == 0


def test_only_retention_limits_may_be_zero() -> None:
    from roost.settings import load

    assert load(environ={"ROOST_LIMITS__KEEP_RUNS_DAYS": "0"}).limits.keep_runs_days == 0
    with pytest.raises(roost.Invalid, match="keep_runs_days must be a number, 0"):
        load(environ={"ROOST_LIMITS__KEEP_RUNS_DAYS": "-1"})
    with pytest.raises(roost.Invalid, match="attempts must be a whole number greater than 0"):
        load(environ={"ROOST_LIMITS__ATTEMPTS": "0"})
