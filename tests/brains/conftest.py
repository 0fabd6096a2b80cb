from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import roost
from roost.brains.guide import guided

Ask = Callable[[roost.AgentService, str, str], roost.Message]


@pytest.fixture(scope="module")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[roost.AgentService]:
    """One Roost for a whole file of tests, with a guide that does not linger."""
    with open_roost(tmp_path_factory.mktemp("roost") / "roost.db") as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "roost.db"


@pytest.fixture(scope="session")
def ask() -> Ask:
    return _ask


@pytest.fixture(scope="session")
def opened() -> Callable[[Path], roost.AgentService]:
    return open_roost


def open_roost(file: Path) -> roost.AgentService:
    return roost.open(f"sqlite:///{file}", brains={"guide": guided(pace=0), "unhurried": guided(pace=0.002)})


def _ask(service: roost.AgentService, talk: str, said: str) -> roost.Message:
    """Say something and wait for the answer."""
    cursor = service.get_messages("ann", talk).cursor
    service.add_message("ann", talk, said)
    *_, last = service.stream_messages("ann", talk, after=cursor)
    return last.message
