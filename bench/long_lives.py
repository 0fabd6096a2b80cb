"""Long lives: a talk of 200,000 messages, and an agent with 100,000 finished tasks, beside short ones."""

from __future__ import annotations

import math
import random
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import roost
from bench import agents
from bench.figures import Figure, bench, percentile
from roost.core.values.ids import encode
from roost.hosts.pending import drive
from roost.stores.sql.talks import search

MESSAGES, FEW_MESSAGES = 200_000, 200
TASKS, FEW_TASKS = 100_000, 100
EXPIRED = 25_000
"""Tasks that retention removes, each with its run, a step and two changes of state."""
TEXT = 200
"""Characters of a message."""
TURNS, READS, RESTARTS = 300, 200, 15
AGE = 100 * 86_400.0
"""Seconds after which all that is finished has expired."""
SAME = 1.2
"""Largest ratio of a long talk to a short one, and of a turn while retention works to others."""
LINEAR = ("usage", "search")
"""Calls that read something of each run, or of each block of words."""
QUICK = 5.0
"""Milliseconds in which a list or a report has to be there."""

Row = Mapping[str, Any]


async def journals(turn: roost.Turn) -> AsyncIterator[str]:
    await turn.step("a step", lambda: 1)
    yield "ok"


BRAINS: dict[str, roost.Brain] = {"journals": journals}


def copy(db: sqlite3.Connection, table: str, rows: list[Row], count: int, changed: Callable[[int, Row], Row]) -> None:
    """Add `count` copies of these rows, each with the values that `changed` returns for its number."""
    names = list(rows[0])
    marks = ", ".join("?" * len(names))
    copies = ({**row, **changed(number, row)} for number in range(count) for row in rows)
    db.executemany(
        f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})",
        ([row[name] for name in names] for row in copies),
    )


def rows_of(db: sqlite3.Connection, table: str, column: str, value: str) -> list[Row]:
    found = db.execute(f"SELECT * FROM {table} WHERE {column} = ?", (value,))
    names = [name for name, *_ in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def renamed(row: Row, number: int, age: float = 0.0) -> dict[str, Any]:
    """Return the ids of a row for its copy, which was made some seconds ago: each of its own."""
    late = int((time.time() - age) * 1e3) + number
    ids = {name: row[name] for name in ("run_id", "envelope_id", "task_id", "change_id", "root") if row.get(name)}
    times = {name: row[name] - age for name in ("created", "started", "ended", "at") if row.get(name)} if age else {}
    return times | {name: f"{str(value).partition('_')[0]}_{encode(late, number)}" for name, value in ids.items()}


def lengthen_talk(path: Path, talk_id: str, messages: int) -> None:
    """Give a talk with one turn many, as if they had been made."""
    with closing(sqlite3.connect(path)) as db, db:
        pair = sorted(rows_of(db, "messages", "talk_id", talk_id), key=lambda row: int(row["seq"]))
        turns = messages // 2 - 1

        def message(number: int, row: Row) -> Row:
            seq = row["seq"] + 2 + 2 * number
            text = " ".join(f"word{random.randrange(30_000)}" for _ in range(TEXT // 10))
            run = {} if row["run_id"] is None else renamed({"run_id": row["run_id"]}, number)
            return {"seq": seq, "revision": seq, "content": text, **run}

        copy(db, "messages", pair, turns, message)
        for table, column in (("runs", "talk_id"), ("steps", "holder")):
            copy(db, table, rows_of(db, table, column, talk_id), turns, lambda number, row: renamed(row, number))
        db.execute("UPDATE talks SET last_seq = ?, revision = ? WHERE talk_id = ?", (messages, messages, talk_id))


def lengthen_agent(path: Path, address: str, tasks: int, age: float = 0.0) -> None:
    """Give an agent that has done one task many finished ones, as if they had been done some seconds ago."""
    with closing(sqlite3.connect(path)) as db, db:
        for table, column in (("tasks", "address"), ("runs", "address"), ("steps", "holder")):
            first = rows_of(db, table, column, address)[:1]
            copy(db, table, first, tasks - 1, lambda number, row: renamed(row, number, age))
        changes = [row for row in rows_of(db, "agent_changes", "address", address) if row["cause"] != "created"]
        copy(
            db,
            "agent_changes",
            changes,
            tasks - 1,
            lambda number, row: renamed(row, 2 * number + (row["after"] == "idle"), age),
        )


def write_search_blocks(service: roost.AgentService, talk_id: str) -> None:
    """Write the blocks for search, which the background would do in minutes."""
    store = service.roost.context.store

    async def write() -> None:
        while blocks := await store.read(search.missing_blocks, [talk_id], 1_000_000):
            await store.write(search.write_blocks, blocks)

    drive(write())


def milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def take_turn(service: roost.AgentService, talk_id: str, cursor: str | None = None) -> None:
    cursor = cursor or service.get_messages("ann", talk_id, limit=1).cursor
    service.add_message("ann", talk_id, "hello")
    for _ in service.stream_messages("ann", talk_id, after=cursor):
        pass


@bench("long-lived-talk")
def long_lived_talk(folder: Path) -> Iterator[Figure]:
    """A talk of 200,000 messages beside one of 200 in the same store: after a restart, and while it is used."""
    url, path = f"sqlite:///{folder}/talks.db", folder / "talks.db"
    with roost.open(url, brains=BRAINS) as service:
        talks = {name: service.create_talk_session("ann", profile="journals") for name in ("long", "short")}
        for talk in talks.values():
            take_turn(service, talk)
    for name, messages in (("long", MESSAGES), ("short", FEW_MESSAGES)):
        lengthen_talk(path, talks[name], messages)
    with roost.open(url, brains=BRAINS) as service:
        for talk in talks.values():
            write_search_blocks(service, talk)
    opened: list[float] = []
    firsts: dict[str, list[float]] = {}
    for name, talk in list(talks.items()) * RESTARTS:  # in turn: the machine changes its speed
        start = time.perf_counter()
        with roost.open(url, brains=BRAINS) as service:
            opened.append((time.perf_counter() - start) * 1e3)
            firsts.setdefault(f"{name}_talk_first_page", []).append(
                milliseconds(partial(service.get_messages, "ann", talk))
            )
            firsts.setdefault(f"{name}_talk_first_turn", []).append(milliseconds(partial(take_turn, service, talk)))
    yield Figure("long_talk_store_opened", statistics.median(opened), "ms", len(opened))
    for metric, values in firsts.items():
        yield Figure(metric, statistics.median(values), "ms", len(values))
    yield from _ratios(firsts)
    with roost.open(url, brains=BRAINS) as service:
        yield from _in_use(service, talks)


def _in_use(service: roost.AgentService, talks: Mapping[str, str]) -> Iterator[Figure]:
    calls: dict[str, Callable[[str], object]] = {
        "turn": lambda talk: take_turn(service, talk),
        "newest_page": lambda talk: service.get_messages("ann", talk),
        "newest_500": lambda talk: service.get_messages("ann", talk, limit=500),
        "older_page": lambda talk: service.get_messages("ann", talk, before=random.randrange(100, FEW_MESSAGES)),
        "talk": lambda talk: service.get_session("ann", talk),
        "usage": lambda talk: service.get_usage("ann", talk),
        "runs": lambda talk: service.runs.list("ann", talk=talk),
        "failed_runs": lambda talk: service.runs.list("ann", talk=talk, outcome="failed"),
        "search": lambda talk: service.search("ann", "hello", talk_session_id=talk),
    }
    times: dict[str, list[float]] = {}
    for what, call in calls.items():
        count = TURNS if what == "turn" else READS
        for name, talk in list(talks.items()) * count:
            times.setdefault(f"{name}_talk_{what}", []).append(milliseconds(partial(call, talk)))
    for metric, values in times.items():
        yield Figure(metric, statistics.median(values), "ms", len(values))
        yield Figure(f"{metric}_p99", percentile(values, 99), "ms", len(values))
    yield from _ratios(times)


def _ratios(times: Mapping[str, list[float]]) -> Iterator[Figure]:
    """Yield how much longer a long talk takes than a short one."""
    for metric, values in times.items():
        if metric.startswith("long_"):
            short, goal = times[metric.replace("long_", "short_")], None if metric.endswith(LINEAR) else SAME
            yield Figure(
                f"{metric}_over_short", statistics.median(values) / statistics.median(short), "×", len(values), goal
            )


@bench("long-lived-agent")
def long_lived_agent(folder: Path) -> Iterator[Figure]:
    """An agent with 100,000 finished tasks beside one with 100: lists and reports."""
    url, path = f"sqlite:///{folder}/agents.db", folder / "agents.db"
    with roost.open(url, brains=BRAINS) as service:
        for agent in ("old", "young"):
            service.agents.create("ann", agent, profile="journals")
            service.tasks.wait("ann", service.tasks.send("ann", agent, "hello"))
        agents.settled(service, "old", "young")
    for agent, tasks in (("old", TASKS), ("young", FEW_TASKS)):
        lengthen_agent(path, f"ann/{agent}", tasks)
    with roost.open(url, brains=BRAINS) as service:
        task = service.tasks.list("ann", agent="old", limit=1)[0].task_id
        run = service.runs.list("ann", agent="old", limit=1)[0].run_id
        middle = service.tasks.list("ann", agent="old", limit=1_000)[-1].task_id
        calls: dict[str, Callable[[], object]] = {
            "agents_list": lambda: service.agents.list("ann"),
            "agents_list_active": lambda: service.agents.list("ann", state="active"),
            "agents_list_failing": lambda: service.agents.list("ann", failing=True),
            "agents_find": lambda: service.agents.find("ann", "ol"),
            "agent_get": lambda: service.agents.get("ann", "old"),
            "agent_inspect": lambda: service.agents.inspect("ann", "old"),
            "agent_inspect_young": lambda: service.agents.inspect("ann", "young"),
            "agent_history": lambda: service.agents.history("ann", "old"),
            "agent_inbox": lambda: service.agents.inbox("ann", "old"),
            "tasks_list": lambda: service.tasks.list("ann"),
            "tasks_list_page": lambda: service.tasks.list("ann", before=middle),
            "tasks_list_of_agent": lambda: service.tasks.list("ann", agent="old"),
            "tasks_list_of_young": lambda: service.tasks.list("ann", agent="young"),
            "tasks_list_queued": lambda: service.tasks.list("ann", status="queued"),
            "tasks_list_running": lambda: service.tasks.list("ann", agent="old", status="running"),
            "tasks_list_failed": lambda: service.tasks.list("ann", status="failed"),
            "tasks_list_failed_of_agent": lambda: service.tasks.list("ann", agent="old", status="failed"),
            "tasks_list_done": lambda: service.tasks.list("ann", status="done"),
            "task_get": lambda: service.tasks.get("ann", task),
            "runs_list": lambda: service.runs.list("ann"),
            "runs_list_of_agent": lambda: service.runs.list("ann", agent="old"),
            "runs_list_of_young": lambda: service.runs.list("ann", agent="young"),
            "runs_list_failed": lambda: service.runs.list("ann", outcome="failed"),
            "runs_list_failed_of_agent": lambda: service.runs.list("ann", agent="old", outcome="failed"),
            "runs_list_mail": lambda: service.runs.list("ann", kind="mail"),
            "runs_list_mail_of_agent": lambda: service.runs.list("ann", agent="old", kind="mail"),
            "runs_list_failed_mail": lambda: service.runs.list("ann", outcome="failed", kind="mail"),
            "run_get": lambda: service.runs.get("ann", run),
            "approvals_list": lambda: service.approvals.list("ann"),
            "schedules_list": lambda: service.schedules.list("ann"),
            "dead_letters_list": lambda: service.dead_letters.list("ann"),
            "metrics": lambda: service.monitor.metrics(),
            "task": lambda: service.tasks.wait("ann", service.tasks.send("ann", "old", "hello")),
        }
        for name, call in calls.items():
            call()
            times = [milliseconds(call) for _ in range(10 if milliseconds(call) > 50 else READS)]
            yield Figure(f"old_agent_{name}", statistics.median(times), "ms", len(times), QUICK)
            yield Figure(f"old_agent_{name}_p99", percentile(times, 99), "ms", len(times))


@bench("retention")
def retention(folder: Path) -> Iterator[Figure]:
    """Turns while expired rows are deleted and their space is given back, beside turns without that."""
    url, path = f"sqlite:///{folder}/old.db", folder / "old.db"
    with roost.open(url, brains=BRAINS) as service:
        talk = service.create_talk_session("ann", profile="journals")
        service.agents.create("ann", "old", profile="journals")
        service.tasks.wait("ann", service.tasks.send("ann", "old", "hello"))
        agents.settled(service, "old")
    lengthen_agent(path, "ann/old", EXPIRED, age=AGE)
    size = path.stat().st_size
    with roost.open(url, brains=BRAINS) as service:
        sweeper = service.roost.retention
        sweeper._next = math.inf

        def turns_while(continues: Callable[[int], bool]) -> list[float]:
            times: list[float] = []
            while continues(len(times)):
                times.append(milliseconds(partial(take_turn, service, talk)))
            return times

        before = turns_while(lambda count: count < 10 * TURNS)[TURNS:]
        start = time.perf_counter()
        sweeper._next = 0.0
        meanwhile = turns_while(lambda _: sweeper.sweeps < 1)
        seconds = time.perf_counter() - start
        after = turns_while(lambda count: count < 9 * TURNS)
        assert len(service.tasks.list("ann", agent="old")) < 2, "the tasks are still there"
    for when, times in (("without", before + after), ("with", meanwhile)):
        yield Figure(f"turn_{when}_retention_p50", statistics.median(times), "ms", len(times))
        yield Figure(
            f"turn_{when}_retention_p99", percentile(times, 99), "ms", len(times), 10.0 if when == "with" else None
        )
        yield Figure(f"turn_{when}_retention_max", max(times), "ms", len(times))
    slower = statistics.median(meanwhile) / statistics.median(before + after)
    yield Figure("turn_with_retention_over_without", slower, "×", len(meanwhile), SAME)
    yield Figure("retention_sweep", seconds, "s", 5 * EXPIRED)
    yield Figure("store_before_retention", size / 2**20, "MiB", 1)
    yield Figure("store_after_retention", path.stat().st_size / 2**20, "MiB", 1)
    with closing(sqlite3.connect(path)) as db:
        free, pages = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count"))
    yield Figure("free_pages_after_retention", 100 * free / pages, "%", pages, 15.0)
