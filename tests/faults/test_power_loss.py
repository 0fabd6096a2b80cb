"""Power loss: writes that were not synced are gone. What was acknowledged is there, and is done once."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

import roost
from tests.conftest import ENVIRONMENT, QUICK, eventually, everything
from tests.faults.driver_power_loss import worker
from tests.faults.lossy_files import ENDED
from tests.forks import run
from tests.servers import ROOT


def run_until_power_is_lost(database: str, log: Path, seed: int, writes: int) -> tuple[int, int]:
    """Return the number of syncs, and of lost writes."""
    command = [sys.executable, "-m", "tests.faults.driver_power_loss", database, str(log), str(seed), str(writes)]
    ended = run(command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == ENDED, ended.stderr
    syncs, lost = ended.stdout.split()
    return int(syncs), int(lost)


@pytest.mark.parametrize("rounds", [4, pytest.param(60, marks=pytest.mark.soak)])
def test_what_was_acknowledged_survives_power_loss_and_is_done_once(tmp_path: Path, rounds: int) -> None:
    database, log = f"sqlite:///{tmp_path / 'roost.db'}", tmp_path / "acknowledged"
    lost = 0
    for seed in range(rounds):
        syncs, count = run_until_power_is_lost(database, log, seed, writes=20 + 37 * seed % 200)
        assert syncs > 0
        lost += count
    assert lost > 0, "no write was ever lost: the fault has not fired"
    acknowledged = [line.split("\t") for line in log.read_text().splitlines()]
    with roost.open(database, brains={"worker": worker}, limits=QUICK) as service:
        eventually(lambda: not service.agents.get("ann", "d").queue_depth, 30)
        eventually(lambda: not any(talk.running for talk in service.list_sessions("ann")), 30)
        done = Counter(service.agents.inspect("ann", "d").turn_state["done"])
        talks = {talk: [m.content for m in everything(service, "ann", talk)] for _, talk, _ in acknowledged}
        assert service.dead_letters.list("ann") == []
    assert set(done.values()) == {1}
    for kind, talk, text in acknowledged:
        assert (done[text] if kind == "task" else talks[talk].count(text)) == 1
