"""A10, A11: `kill -9` after each step of runs with three tool calls: each has acted once, and the answer is whole."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ENVIRONMENT
from tests.forks import run
from tests.journeys.driver_tools import TOOLS

DRIVER = Path(__file__).with_name("driver_tools.py")
RECOVERED = re.compile(r"previous process died; \d+ turns may have been running")
"""Logged by a life after a kill, unless all that was running was in quarantine by then."""


def live(folder: Path, how: str) -> subprocess.CompletedProcess[str]:
    return run(
        [sys.executable, str(DRIVER), str(folder), how],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def last_life(folder: Path, how: str) -> list[str]:
    """Live until every point was the last of one life; what the last one says."""
    deaths = 0
    while (life := live(folder, how)).returncode == -signal.SIGKILL:
        deaths += 1
        assert deaths <= 12, "each point is the last of one life"
    assert (life.returncode, [line for line in life.stderr.splitlines() if not RECOVERED.fullmatch(line)]) == (0, [])
    assert deaths >= 6
    points = len(list(folder.glob("passed-*")))
    assert points == 12, "each of three tools, after it has acted and after its call, of both runs"
    return life.stdout.splitlines()


def words(kind: str) -> str:
    return "".join(f"{kind}:{name}:go " for name in TOOLS)


def acted(folder: Path) -> list[str]:
    entries = [line.split(maxsplit=1) for line in (folder / "ledger").read_text().splitlines()]
    assert len({key for key, _ in entries}) == len(entries)
    return sorted(what for _, what in entries)


@pytest.mark.timeout(120)
def test_after_a_kill_at_each_step_every_tool_has_acted_once_and_the_answer_is_whole(tmp_path: Path) -> None:
    assert last_life(tmp_path, "alone") == [f"done {words('task')}", f"complete {words('talk')}"]
    assert acted(tmp_path) == sorted((words("task") + words("talk")).split())


@pytest.mark.timeout(120)
def test_tools_of_messages_and_meetings_act_once_after_a_kill(tmp_path: Path) -> None:
    assert last_life(tmp_path, "among") == [f"done {words('task')} identical", f"done {words('meeting')} identical"]
    assert acted(tmp_path) == sorted((words("task") + words("meeting")).split()), "on what it had heard, and once"
