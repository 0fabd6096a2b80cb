"""A10, A11: a team of agents is killed again and again, and everything is done once."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

import roost
from tests.conftest import eventually
from tests.journeys.driver_team import open_team
from tests.journeys.killing import run_and_kill

DRIVER = Path(__file__).with_name("driver_team.py")
KILLS = 10


def finish(service: roost.AgentService) -> None:
    """Let it all be done; a step of which nobody knows whether it was done is looked at by a person, and done again."""
    for _ in range(100):
        assert service.dead_letters.list("ann") == []
        for asked in service.approvals.list("ann"):
            service.approvals.approve("ann", asked.approval_id)
        if len(service.mail.inbox("ann", "agent:tester")) == 2 and not any(
            agent.queue_depth for agent in service.agents.list("ann")
        ):
            return
        threading.Event().wait(0.1)
    pytest.fail("the team has not finished")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 20))])
def test_a_team_killed_ten_times_does_everything_once(tmp_path: Path, seed: int) -> None:
    database, ledger, luck = f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "ledger", random.Random(seed)
    for _ in range(KILLS):
        run_and_kill(DRIVER, database, luck.random() * 0.15, str(ledger))
    with open_team(database, ledger) as service:
        finish(service)
        mails = service.mail.inbox("ann", "agent:tester")
        assert sorted(mail.body for mail in mails) == ["built by coder-1", "built by coder-2"]
        eventually(lambda: all(mail.processed for mail in service.mail.inbox("ann", "agent:tester")))
        tested = service.agents.inspect("ann", "tester").turn_state["tested"]
        assert sorted(tested) == ["built by coder-1", "built by coder-2"]
        assert [task.result for task in service.tasks.list("ann", agent="planner")] == ["planned"]
    done = ledger.read_text().split("\n")[:-1]
    # What was cut off in the middle is done again only because a person said so.
    assert set(done) == {f"coder-{coder} {number}" for coder in (1, 2) for number in range(3)}
