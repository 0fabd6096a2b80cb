"""M1, A10, A11: broadcasts, messages and requests under `kill -9`: nothing is lost, doubled or out of order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.conftest import eventually
from tests.journeys.driver_messages import CREW, PARTS, PLANS, open_crew
from tests.journeys.killing import run_and_kill

DRIVER = Path(__file__).with_name("driver_messages.py")
KILLS = 6


@pytest.mark.timeout(90)
def test_a_crew_killed_again_and_again_hears_everything_once_and_in_order(tmp_path: Path) -> None:
    database, luck = f"sqlite:///{tmp_path / 'roost.db'}", random.Random(8)
    for _ in range(KILLS):
        run_and_kill(DRIVER, database, luck.random() * 0.25)
    with open_crew(database) as service:
        eventually(lambda: len(service.tasks.list("ann", agent="lead", status="done")) == PLANS, seconds=40)
        eventually(lambda: not any(agent.queue_depth for agent in service.agents.list("ann")), seconds=20)
        answers = " ".join(str(task.result) for task in service.tasks.list("ann", agent="lead")).split()
        asked = sorted(zip(answers[::2], answers[1::2], strict=True))
        assert asked == [(name, str(number + 1)) for name in CREW for number in range(PLANS)]
        for name in CREW:
            heard = service.agents.inspect("ann", name).turn_state["heard"]
            assert len(heard) == len(set(heard))
            kinds = ("all", "one") if name == "w0" else ("all",)
            for plan in range(PLANS):  # while one waits for answers, the next one begins
                told = [f"plan {plan}.{part} {kind}" for part in range(PARTS) for kind in kinds]
                assert [text for text in heard if text.startswith(f"plan {plan}.")] == told, f"what {name} has heard"
        assert service.dead_letters.list("ann") == []
