"""Lists of 10,000 items: each page opens in a moment, and reads one page of them at a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import roost
from roost.ui import access
from roost.ui.shell.navigation import Route
from tests.conftest import eventually
from tests.ui.conftest import Screen

MANY = 10_000
CROWD = "crowd"
MOMENT = 1.0
"""Processor time in which a page opens."""


@dataclass(frozen=True)
class Listed:
    """List of a page, by the key of its table; `before` is the part of the URL that names a page of it."""

    route: Route
    table: str
    query: dict[str, str] = field(default_factory=dict)
    shown: int = 50


LISTS = {
    "runs": Listed(Route.RUNS, "runs"),
    "mail": Listed(Route.MAIL, "mails_None_inbox"),
    "approvals": Listed(Route.APPROVALS, "decided", {"show": "decided"}),
    "meetings": Listed(Route.MEETINGS, "meetings"),
    "dead_letters": Listed(Route.MONITOR, "letters", {"tab": "dead-letters"}),
    "events": Listed(Route.MONITOR, "events", {"tab": "events"}),
    "tasks": Listed(Route.AGENTS, "tasks", {"agent": "worker", "tab": "tasks"}),
}
COPIED = {
    "runs": "run_id",
    "mail": "mail_id",
    "approvals": "approval_id",
    "meetings": "meeting_id",
    "meeting_log": "meeting_id",
    "dead_letters": "letter_id",
    "events": "event_id",
    "tasks": "task_id",
}
"""Tables with the columns of their ids."""
OWNED = {
    "runs": f"instr(address, '{CROWD}') AND outcome = 'done'",
    "mail": f"instr(recipient, '{CROWD}')",
    "meetings": f"instr(participant, '{CROWD}')",
    "meeting_log": f"instr(participant, '{CROWD}')",
}
"""Conditions of rows that are copied, where they have no `user_id`."""


def create_one_of_each(service: roost.AgentService) -> None:
    service.agents.create(CROWD, "worker", profile="brain", max_attempts=1)
    task = service.tasks.send(CROWD, "worker", "pay")
    [question] = eventually(lambda: service.approvals.list(CROWD))
    service.approvals.approve(CROWD, question.approval_id)
    service.tasks.wait(CROWD, task)
    for mail in service.mail.inbox(CROWD):
        service.mail.delete(CROWD, mail.mail_id)
    service.mail.send(CROWD, f"user:{CROWD}", "News", "All is well.", sender="agent:worker")
    meeting = service.meetings.call(CROWD, "A short one")
    eventually(lambda: service.meetings.view(CROWD, meeting).phase == "running")
    service.meetings.end(CROWD, meeting)
    service.events.publish(CROWD, "seen.nowhere")
    eventually(lambda: service.dead_letters.list(CROWD))


def multiply(file: Path) -> None:
    """Copy the newest item of each kind, under ids that follow its own."""
    with closing(sqlite3.connect(file, timeout=20)) as db, db:
        db.execute("CREATE TEMP TABLE numbers (i INTEGER)")
        db.executemany("INSERT INTO numbers VALUES (?)", ((number,) for number in range(1, MANY + 1)))
        for table, key in COPIED.items():
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            copied = [f"{key} || printf('%05d', i)" if name == key else name for name in columns]
            copied = ["NULL" if name == "key" else name for name in copied]
            owned = OWNED.get(table, f"user_id = '{CROWD}'")
            db.execute(f"INSERT INTO {table} SELECT {', '.join(copied)} FROM {table}, numbers WHERE {owned}")


@pytest.fixture(scope="module")
def screen(service: roost.AgentService, store_file: Path) -> Iterator[Screen]:
    create_one_of_each(service)
    multiply(store_file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access, "_hosted", access._hosted)
        access.host(service, lambda _: CROWD)
        yield Screen().go(Route.AGENTS)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_ten_thousand_opens_in_a_moment_and_is_read_page_by_page(screen: Screen, name: str) -> None:
    one = LISTS[name]
    pages: list[list[str]] = []
    for _ in range(3):
        query = one.query | ({"before": pages[-1][-1]} if pages else {})
        began = time.process_time()
        screen.go(one.route, **query)
        assert time.process_time() - began < MOMENT
        pages.append(screen.row_ids(one.table))
    found = [row for page in pages for row in page]
    assert len(found) == len(set(found)) == 3 * one.shown
    assert found == sorted(found, reverse=True)
    oldest = found[-1][:-5] + "00010"
    assert len(screen.go(one.route, **one.query, before=oldest).row_ids(one.table)) >= 9
