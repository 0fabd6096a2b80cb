"""A folder in which commands run in the process of the test, where a process of their own would only take time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import running
from tests.cli.forks import forks


@pytest.fixture(scope="session", autouse=True)
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with forks(running.environment(tmp_path_factory.mktemp("forks"))) as made:
        running.FORKED.append(made)
        yield
        running.FORKED.clear()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which ann's commands run, in this process; the log of the tests stays as it is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ROOST_USER", "ann")
    monkeypatch.setattr("roost.log.set_up", lambda *_, **__: None)
    (tmp_path / "data").mkdir()
    return tmp_path
