"""A10, A11: `kill -9` after each step of runs with three tool calls: each has acted once, and the answer is whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.conftest import ENVIRONMENT
from tests.journeys.driver_tools import TOOLS

DRIVER = Path(__file__).with_name("driver_tools.py")


def live(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(DRIVER), str(folder)], env=ENVIRONMENT, capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip


def test_after_a_kill_at_each_step_every_tool_has_acted_once_and_the_answer_is_whole(tmp_path: Path) -> None:
    deaths = 0
    while (life := live(tmp_path)).returncode == -signal.SIGKILL:
        deaths += 1
        assert deaths <= 12, "each point is the last of one life"
    assert (life.returncode, life.stderr) == (0, "")
    assert deaths >= 6
    points = len(list(tmp_path.glob("passed-*")))
    assert points == 12, "each of three tools, after it has acted and after its call, for the task and the talk"
    words = {kind: "".join(f"{kind}:{name}:go " for name in TOOLS) for kind in ("task", "talk")}
    assert life.stdout.splitlines() == [f"done {words['task']}", f"complete {words['talk']}"]
    entries = [line.split() for line in (tmp_path / "ledger").read_text().splitlines()]
    assert sorted(what for _, what in entries) == sorted(" ".join(words.values()).split())
    assert len({key for key, _ in entries}) == 6
