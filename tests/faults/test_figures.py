"""A15: figures of the monitor survive the death of their process."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import roost
from tests.conftest import ENVIRONMENT
from tests.faults.driver_figures import FAILS, WORKS, works
from tests.forks import run

DRIVER = Path(__file__).with_name("driver_figures.py")


@pytest.mark.timeout(60)
def test_figures_of_a_killed_process_are_there_after_its_restart(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/roost.db"
    child = run([sys.executable, str(DRIVER), database], env=ENVIRONMENT, capture_output=True, timeout=50)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    now = datetime.now(UTC)
    long: dict[str, Any] = {"since": now - timedelta(hours=1), "until": now + timedelta(hours=1)}
    with roost.open(database, brains={"works": works}) as service:
        report = service.monitor.figures("ann", **long)
        counts = {(str(one.name), one.label): one.count for one in report.series}
        assert counts["runs", "task"] == counts["waited", "task"] == WORKS + FAILS
        assert counts["errors", "internal"] == counts["dead_letters", "task"] == FAILS
        [edge] = service.monitor.edges("ann", **long)
        assert (edge.sender, edge.recipient, edge.count) == ("user:ann", "agent:ann/d", WORKS + FAILS)
