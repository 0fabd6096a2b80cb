"""Processes that share the tests: each test is run once, and a failure is the failure of its process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def start(folder: Path, worker: str, fails: str = "") -> subprocess.Popen[bytes]:
    plugin = ["-p", "no:cacheprovider", "-p", "tools.share_tests", "--share", "claims", "--worker", worker]
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", ".", *plugin, "."],
        cwd=folder,
        env={"PYTHONPATH": str(Path(share_tests.__file__).parents[1]), "FAILS": fails},
        stdout=subprocess.DEVNULL,
    )


def test_processes_that_share_tests_run_each_test_once(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    for name in "abcde":
        (tmp_path / f"test_{name}.py").write_text(TESTS)
    workers = [start(tmp_path, f"{number}/2", fails="test_c.py") for number in (1, 2)]
    codes = [worker.wait(60) for worker in workers]
    ran = (tmp_path / "ran.txt").read_text().splitlines()
    assert len(ran) == len(set(ran)) == 5 * 4
    assert sorted(codes) == [0, 1]
