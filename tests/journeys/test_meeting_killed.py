"""A10 for meetings: a program is killed again and again while its agents meet, and nothing is lost or said twice."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.journeys.driver_meeting import NAMES, WORDS, open_meeting
from tests.journeys.killing import run_and_kill

DRIVER = Path(__file__).with_name("driver_meeting.py")


@pytest.mark.timeout(120)
def test_a_meeting_survives_being_killed(tmp_path: Path) -> None:
    database, luck = f"sqlite:///{tmp_path / 'roost.db'}", random.Random(1)
    for _ in range(4):
        run_and_kill(DRIVER, database, luck.random() * 0.1)
    service, meeting = open_meeting(database)
    with service:
        views = [[*service.meetings.watch("ann", meeting, seen_by=f"agent:{name}")][-1] for name in NAMES]
        assert [word.text for word in views[0].words] == [
            f"{NAMES[number % 3]} {number // 3 + 1}" for number in range(WORDS)
        ]
        assert len({repr((view.words, view.participants, view.refused, view.phase)) for view in views}) == 1
        assert service.dead_letters.list("ann") == []


@pytest.mark.timeout(120)
def test_that_one_was_stopped_is_known_to_the_others_after_a_kill(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'roost.db'}"
    run_and_kill(DRIVER, database, 0.0, "b")
    service, meeting = open_meeting(database)
    with service:
        for name in ("a", "c"):
            *_, view = service.meetings.watch("ann", meeting, seen_by=f"agent:{name}")
            assert [one.reason for one in view.participants if one.status == "left"] == ["it was stopped"]
            assert view.said == WORDS
