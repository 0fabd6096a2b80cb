"""A folder in which commands run in the process of the test, where a process of their own would only take time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli import running


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the programs of this test, as people do, instead of forking them."""
    monkeypatch.setattr(running, "Popen", subprocess.Popen)
    monkeypatch.setattr(running, "run", subprocess.run)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which ann's commands run, in this process; the log of the tests stays as it is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ROOST_USER", "ann")
    monkeypatch.setattr("roost.log.set_up", lambda *_, **__: None)
    (tmp_path / "data").mkdir()
    return tmp_path
