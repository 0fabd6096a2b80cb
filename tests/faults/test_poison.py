"""A4, T12: a turn that kills its process is given up after its tries, and condemns none of its neighbours."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost
from tests.conftest import ENVIRONMENT, everything
from tests.faults.driver_poison import HEALTHY, LIMITS, works
from tests.forks import run
from tests.servers import fresh_store

DRIVER = Path(__file__).with_name("driver_poison.py")
MOST_DEATHS = 7
"""Once as themselves and once as suspects, in quarantine twice by the task and once by the talk, and some slack."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.soak])])
def new_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/roost.db"
    else:
        with fresh_store(request.getfixturevalue("postgres")) as made:
            yield made


def lives(database: str) -> int:
    """Start the program again and again until it ends by itself; how often it died."""
    for deaths in range(MOST_DEATHS + 1):
        child = run([sys.executable, str(DRIVER), database], env=ENVIRONMENT, capture_output=True, timeout=60)
        if child.returncode == 0:
            return deaths
        assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    pytest.fail(f"it died more than {MOST_DEATHS} times")


@pytest.mark.timeout(120)
def test_a_poison_turn_is_given_up_and_all_its_neighbours_are_done(new_database: str) -> None:
    assert 5 <= lives(new_database) <= MOST_DEATHS
    with roost.open(new_database, brains={"works": works}, limits=LIMITS) as service:
        tasks = {(task.agent_id, task.prompt): task for task in service.tasks.list("ann")}
        healthy = {key: task for key, task in tasks.items() if key[1] != "poison"}
        assert len(healthy) == 2 * len(HEALTHY)
        assert {(t.status, t.result, t.attempts) for t in healthy.values()} == {
            ("done", f"did {text}", 1) for text in HEALTHY
        }
        [letter] = service.dead_letters.list("ann")
        assert (letter.envelope["body"], letter.fault, letter.attempts) == ("poison", "lost_worker", 2)
        talks = [everything(service, "ann", talk.talk_session_id) for talk in service.list_sessions("ann")]
        last = {whole[0].content: whole[-1] for whole in talks if whole}  # a death may come before the first message
        assert last.pop("poison").status == "failed"
        assert {text: (m.status, m.content) for text, m in last.items()} == {
            text: ("complete", f"did {text}") for text in HEALTHY
        }
