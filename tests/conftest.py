"""Fixtures of all tests: a service on a file of its own, and ways to wait that have an end."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import pytest
from hypothesis import HealthCheck, settings

import roost
from roost.brains.defaults import KEYS
from roost.client import RemoteService
from roost.runtime import supervisor
from roost.runtime.dispatch import timers
from roost.runtime.handlers import tasks
from roost.runtime.handlers.talks import reading
from tests.servers import memory, new_store, postgres_server

T = TypeVar("T")

QUICK = roost.Limits(drain=0.5, stop_patience=1.0)
"""Default limits, but closing is quick. A brain that stops when it is asked to does so within `stop_patience`."""

if (_place := memory()) and "TMPDIR" not in os.environ:  # for the tests' own files, and those of programs they start
    os.environ["TMPDIR"] = tempfile.tempdir = _place

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(roost.__file__).parents[1])}
"""For programs that a test starts: they find the same Roost, wherever they run."""

for _names in KEYS.values():  # the developer may have one
    for _name in _names:
        os.environ.pop(_name, None)
os.environ["ROOST_DATA"] = str(Path(__file__).parents[1] / ".cache" / "data")  # and a model on this machine

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in the background: programs would not heed Ctrl-C either
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "roost", max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("long", settings.get_profile("roost"), max_examples=2_000)
settings.load_profile("roost")


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Keep what is collected: the garbage collector need not look through all of it again and again."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


class Open(Protocol):
    """Opens a service; what is open at the end of the test is closed."""

    def __call__(
        self,
        brains: Mapping[str, roost.Brain] | None = None,
        *,
        name: str = "roost.db",
        limits: roost.Limits = QUICK,
        tools: Sequence[roost.Tool] = (),
    ) -> roost.AgentService: ...


def eventually(predicate: Callable[[], T], seconds: float = 30.0) -> T:
    """Poll until the answer is true, and return it; fail after a timeout."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not (answer := predicate()):
        if time.monotonic() > deadline:
            pytest.fail(f"not so within {seconds} s; the last answer was {answer!r:.500}")
        pause.wait(0.002)
    return answer


def settled(service: roost.AgentService, user: str, talk: str) -> tuple[roost.Message, ...]:
    """Follow the talk until its run has ended; all messages it has then."""
    for _ in service.stream_messages(user, talk):
        pass
    return everything(service, user, talk)


def everything(service: roost.AgentService | RemoteService, user: str, talk: str) -> tuple[roost.Message, ...]:
    """All messages of a talk, read page by page from the newest to the oldest."""
    page = service.get_messages(user, talk, limit=1_000)
    found = page.messages
    while page.more_before:
        page = service.get_messages(user, talk, before=found[0].seq, limit=1_000)
        found = page.messages + found
    return found


@pytest.fixture(name="eventually")
def _eventually() -> Callable[[Callable[[], object], float], object]:
    return eventually


@pytest.fixture(name="settled")
def _settled() -> Callable[[roost.AgentService, str, str], tuple[roost.Message, ...]]:
    return settled


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Postpone polls of the store: what is found soon is found because of a notification."""
    monkeypatch.setattr(supervisor, "SWEEP", 600.0)
    for module in (reading, tasks, timers):
        monkeypatch.setattr(module, "SLOW_LOOK", 600.0)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A server for all tests; each makes a database of its own there."""
    with postgres_server() as url:
        yield url


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Open]:
    """A factory: `service({"parrot": parrot})` opens one on the test's own SQLite file."""
    opened: list[roost.AgentService] = []

    def start(
        brains: Mapping[str, roost.Brain] | None = None,
        *,
        name: str = "roost.db",
        limits: roost.Limits = QUICK,
        tools: Sequence[roost.Tool] = (),
    ) -> roost.AgentService:
        opened.append(roost.open(new_store(tmp_path / name), brains=brains, limits=limits, tools=tools))
        return opened[-1]

    yield start
    for one in opened:
        one.close()
