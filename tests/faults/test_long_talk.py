"""A talk of 200,000 messages: its next answer costs no more than that of a short one, and nothing of it is missing."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter

import pytest

import roost
from roost import Turn
from tests.conftest import settled

LONG = 200_000
MOST_MIB = 24.0


def filled(path: Path, talk: str) -> None:
    """Copy its first question and answer until it is long."""
    database = sqlite3.connect(path)
    with database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(messages)")]
        pair = database.execute("SELECT * FROM messages WHERE talk_id = ? ORDER BY seq", (talk,)).fetchall()
        places = {name: columns.index(name) for name in ("seq", "revision", "content")}

        def copied(seq: int) -> list[object]:
            row = list(pair[(seq - 1) % 2])
            row[places["seq"]] = row[places["revision"]] = seq
            row[places["content"]] = f"{seq} " + 200 * "x"
            return row

        marks = ", ".join("?" * len(columns))
        database.executemany(f"INSERT INTO messages VALUES ({marks})", map(copied, range(3, LONG + 1)))
        database.execute("UPDATE talks SET last_seq = ?, revision = ? WHERE talk_id = ?", (LONG, LONG, talk))
    database.close()


def memory() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


class Looks:
    """Answers with what it finds at both ends and in the middle of the history, and how long that took."""

    def __init__(self) -> None:
        self.seconds = 0.0

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        began, told = perf_counter(), turn.history
        found = [told[-1], told[-20:][0], told[0], told[LONG // 2], next(reversed(told))]
        words = f"{len(told)}: {' '.join(str(message.seq) for message in found)}"
        self.seconds = perf_counter() - began
        yield words


@pytest.fixture
def long_talk(tmp_path: Path) -> tuple[str, str]:
    url = f"sqlite:///{tmp_path}/roost.db"

    async def echo(turn: Turn) -> AsyncIterator[str]:
        yield turn.text

    with roost.open(url, brains={"looks": echo}) as service:
        talk = service.create_talk_session("ann", profile="looks")
        service.add_message("ann", talk, "hello")
        settled(service, "ann", talk)
    filled(tmp_path / "roost.db", talk)
    return url, talk


def test_the_next_answer_of_a_long_talk_is_quick_and_small(long_talk: tuple[str, str]) -> None:
    url, talk = long_talk
    looks = Looks()
    with roost.open(url, brains={"looks": looks}) as service:
        beside = service.create_talk_session("ann", profile="looks")
        before, durations = memory(), []
        for number in range(5):
            began = perf_counter()
            service.add_message("ann", talk, f"well? {number}")
            for _ in service.stream_messages("ann", talk):
                pass
            answer = service.get_messages("ann", talk).messages[-1].content
            durations.append(perf_counter() - began)
            there = LONG + 2 * number
            assert answer == f"{there}: {there} {there - 19} 1 {LONG // 2 + 1} {there}"
        assert memory() - before < MOST_MIB
        assert min(durations) < 0.5  # all of it takes more than a second to read
        assert looks.seconds < 0.5
        assert len(service.get_messages("ann", talk, limit=50).messages) == 50
        assert service.get_messages("ann", talk, before=3, limit=50).messages[0].content == "hello"
        assert service.get_messages("ann", beside).messages == ()
