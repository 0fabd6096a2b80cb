"""Processes that share the tests: each test is run once, and a failure is the failure of its process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import share_tests

TESTS = """
import os, pathlib, pytest

@pytest.fixture(scope="session", params=[1, 2])  # pytest sorts by it: files are run in turn
def kind(request):
    return request.param

@pytest.mark.parametrize("number", [1, 2])
def test_runs(kind, number, request):
    with open(pathlib.Path(__file__).parent / "ran.txt", "a") as ran:
        print(request.node.nodeid, file=ran)
    assert request.node.path.name != os.environ.get("FAILS")
"""


ALONE = """
import pathlib, pytest

@pytest.mark.alone
def test_runs_last(request):
    ran = pathlib.Path(__file__).parent / "ran.txt"
    assert len(ran.read_text().splitlines()) == 20
    ran.open("a").write(request.node.nodeid)
"""


@pytest.mark.parametrize(("fails", "code"), [("", 0), ("test_a.py", 1), ("test_b.py", 1), ("test_e.py", 1)])
def test_processes_that_share_tests_run_each_test_once(tmp_path: Path, fails: str, code: int) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = alone")
    (tmp_path / "test_alone.py").write_text(ALONE)
    for name in "abcde":
        (tmp_path / f"test_{name}.py").write_text(TESTS)
    done = share(tmp_path, 3, FAILS=fails)
    ran = (tmp_path / "ran.txt").read_text().splitlines()
    assert len(ran) == len(set(ran)) == 5 * 4 + 1
    assert done.returncode == code
    assert done.stdout.count("FAILED") == (4 if fails else 0)
    written = tmp_path / ".cache" / "tests" / "failures"
    failures = written.read_text() if written.exists() else ""
    assert failures.count("assert request.node.path.name") == (4 if fails else 0)


def test_folders_of_long_tests_come_first(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = alone")
    for name in ("core", "journeys"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text(TESTS.replace(".parent", ".parents[1]"))
    share(tmp_path, 1)
    ran = [line.split("/")[0] for line in (tmp_path / "ran.txt").read_text().splitlines()]
    assert ran == ["journeys"] * 4 + ["core"] * 4


def share(folder: Path, processes: int, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.share_tests"]
    return subprocess.run(
        [*command, "--processes", str(processes)],
        cwd=folder,
        env={"PYTHONPATH": str(Path(share_tests.__file__).parents[1]), **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
