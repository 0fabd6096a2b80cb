"""T3, T4: a stop right after an interrupt of a run that has not said a word; over and over."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import roost
from tests.brains_for_tests import until
from tests.conftest import Open, eventually, everything, settled

POLICIES = ["interrupt", "queue", "reject", "rollback", "steer", "collect"]
TALKS = 200
AT_ONCE = 20
LIMITS = roost.Limits(drain=0.5, stop_patience=0.3, collect_quiet=0.02)
NOTED = """
CREATE TABLE noted (waiting INTEGER);
CREATE TRIGGER note AFTER UPDATE ON talks WHEN NEW.waiting < 0 BEGIN INSERT INTO noted VALUES (NEW.waiting); END;
"""


class Mute:
    """Says nothing to `first` and `second` before `release`; holds the answer to `held` until then; else answers."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.inside: set[str] = set()

    async def __call__(self, turn: roost.Turn) -> AsyncIterator[str]:
        self.inside.add(turn.talk_session_id)
        if turn.text.startswith(("first", "second")):
            await until(self.release.is_set)
            yield "too late"
        elif turn.text.startswith("held"):
            await until(self.release.is_set)
        yield f"heard {turn.text}"


class Hesitant(Mute):
    """Is silent for a moment only, longer or shorter from talk to talk: its first word meets the stop."""

    async def __call__(self, turn: roost.Turn) -> AsyncIterator[str]:
        self.inside.add(turn.talk_session_id)
        if turn.text.startswith(("first", "second")):
            await asyncio.sleep(len(self.inside) % 8 / 2_000)
            yield "a word"
            await asyncio.Event().wait()
        yield f"heard {turn.text}"


@pytest.fixture(name="file")
def _file(service: Open, tmp_path: Path) -> Path:
    """A store that notes down each time a talk has less than nothing waiting."""
    service({}).close()
    with closing(sqlite3.connect(tmp_path / "roost.db")) as db:
        db.executescript(NOTED)
    return tmp_path / "roost.db"


def expect_sound(service: roost.AgentService, file: Path) -> None:
    """Never did less than nothing wait, and now nothing does."""
    service.close()
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT waiting FROM noted").fetchall() == []
        assert db.execute("SELECT DISTINCT waiting, answer_seq FROM talks").fetchall() == [(0, 0)]
        assert db.execute("SELECT * FROM inbox").fetchall() == []


def stopped(service: roost.AgentService, brain: Mute) -> Iterator[str]:
    """Talks that were asked, interrupted and stopped at once; of every other one the first run was under way."""

    def one(number: int) -> str:
        talk = service.create_talk_session("ann", profile="brain")
        service.add_message("ann", talk, "first")
        if number % 2:
            eventually(lambda: talk in brain.inside)
        service.add_message("ann", talk, "second", busy="rollback" if number % 3 == 0 else "interrupt")
        receipt = service.stop("ann", talk, wait=5 if number % 4 < 2 else 0)
        if receipt.quiesced is not None:
            assert not service.get_messages("ann", talk).running
        eventually(lambda: not service.get_messages("ann", talk).running)
        return talk

    with ThreadPoolExecutor(AT_ONCE) as threads:
        yield from threads.map(one, range(TALKS))


def log(service: roost.AgentService, talk: str) -> list[tuple[str, str]]:
    return [(m.content, m.status.value) for m in everything(service, "ann", talk)]


ASKED = [("first", "complete"), ("second", "complete")]


@pytest.mark.parametrize("busy", POLICIES)
def test_a_talk_stopped_before_its_first_word_stays_quiet_and_answers_its_next_message(
    service: Open, file: Path, busy: str
) -> None:
    brain = Mute()
    roosted = service({"brain": brain}, limits=LIMITS)
    talks = list(stopped(roosted, brain))
    brain.release.set()  # brains that were not stopped speak now
    for talk in talks:
        assert log(roosted, talk) == ASKED
        roosted.add_message("ann", talk, "third", busy=busy)
    for talk in talks:
        settled(roosted, "ann", talk)
        assert log(roosted, talk) == [*ASKED, ("third", "complete"), ("heard third", "complete")]
        assert not roosted.get_messages("ann", talk).running
    expect_sound(roosted, file)


def test_a_talk_stopped_before_a_word_is_busy_again_with_its_next_message(service: Open, file: Path) -> None:
    brain = Mute()
    roosted = service({"brain": brain}, limits=LIMITS)
    talks = list(stopped(roosted, brain))
    for talk in talks:
        roosted.add_message("ann", talk, "held")
        with pytest.raises(roost.Busy):
            roosted.add_message("ann", talk, "refused", busy="reject")
    for talk in talks:
        assert roosted.get_messages("ann", talk).running
    brain.release.set()
    for talk in talks:
        settled(roosted, "ann", talk)
        assert log(roosted, talk) == [*ASKED, ("held", "complete"), ("heard held", "complete")]
    expect_sound(roosted, file)


@pytest.mark.parametrize("busy", POLICIES)
def test_a_first_word_that_meets_the_stop_changes_nothing_after_it(service: Open, file: Path, busy: str) -> None:
    brain = Hesitant()
    roosted = service({"brain": brain}, limits=LIMITS)
    talks = list(stopped(roosted, brain))
    before = {}
    for talk in talks:
        roosted.stop("ann", talk, wait=5)
        before[talk] = [m.content for m in everything(roosted, "ann", talk) if m.status != "withdrawn"]
        assert set(before[talk]) <= {"first", "second", "a word"}
        roosted.add_message("ann", talk, "third", busy=busy)
    for talk in talks:
        whole = settled(roosted, "ann", talk)
        assert [m.content for m in whole if m.status != "withdrawn"] == [*before[talk], "third", "heard third"]
        assert {m.status for m in whole if m.content == "a word"} <= {"interrupted"}
    expect_sound(roosted, file)
