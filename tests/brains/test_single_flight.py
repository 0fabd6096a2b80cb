"""Several talks that first use one profile at the same moment share one load, and one failure."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from roost import BrainFailed, Profile
from roost.brains.profiles import ProfileRegistry
from roost.brains.single_flight import SingleFlight
from roost.core.values.secrets import Redactor
from roost.hosts.threads import ThreadHost
from roost.service import AgentService
from roost.wiring import open_roost
from tests.conftest import QUICK, eventually, settled

MODULE = """
import {signals} as signals
signals.imports.append(1)
signals.gate.wait(20)
if signals.broken:
    raise RuntimeError("no luck today")

async def say(turn):
    yield f"heard {{turn.text}}"

async def shout(turn):
    yield turn.text.upper()
"""


class Signals(ModuleType):
    """Module that the brain's module imports: records its imports, and decides when and how they end."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.imports: list[int] = []
        self.gate = threading.Event()
        self.broken = False


@pytest.fixture
def signals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Signals]:
    name = f"signals_{abs(hash(request.node.name))}"
    found = Signals(name)
    monkeypatch.setitem(sys.modules, name, found)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"slow_{name}.py").write_text(MODULE.format(signals=name))
    yield found
    found.gate.set()
    sys.modules.pop(f"slow_{name}", None)


def profile(signals: Signals, function: str = "say") -> Profile:
    return Profile(function, f"slow_{signals.__name__}:{function}")


def opened(**options: Any) -> ProfileRegistry:
    shelf = ProfileRegistry(**options)
    shelf.open(ThreadHost(), Redactor())
    return shelf


def at_once(count: int, act: Callable[[], object], release: threading.Event, waiting: str) -> list[object]:
    """Call it on this many threads, and release them once all of them wait; return what each got."""
    got: list[object] = []

    def one() -> None:
        try:
            got.append(act())
        except BrainFailed as error:
            got.append(error)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    eventually(lambda: sum(_is_inside(thread, waiting) for thread in threads) == count)
    release.set()
    for thread in threads:
        thread.join(20)
    return got


def _is_inside(thread: threading.Thread, function: str) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None


def test_a_brain_that_another_thread_has_just_loaded_is_used_as_it_is(signals: Signals) -> None:
    signals.gate.set()
    shelf = opened()
    assert shelf.load(profile(signals)) is shelf.load(profile(signals))
    assert len(signals.imports) == 1


def test_many_who_load_a_profile_at_once_share_one_import(signals: Signals) -> None:
    shelf = opened()
    got = at_once(16, lambda: shelf.load(profile(signals)), signals.gate, "load")
    assert len(got) == 16
    assert {id(one) for one in got} == {id(shelf.loaded(profile(signals)))}
    assert len(signals.imports) == 1


def test_a_failed_import_raises_for_all_waiting_callers_and_is_retried_next_time(signals: Signals) -> None:
    signals.broken = True
    shelf = opened()
    # Two functions of one module: the import is the same.
    each = iter([profile(signals), profile(signals, "shout")] * 8)
    got = at_once(16, lambda: shelf.load(next(each)), signals.gate, "do")
    assert [str(one).rpartition(": ")[2] for one in got] == ["no luck today"] * 16
    first = len(signals.imports)
    assert first <= 2  # a thread may have come just after the end
    signals.broken = False
    shelf.load(profile(signals))
    assert len(signals.imports) == first + 1


def test_a_given_brain_is_prepared_once_for_all_who_wait() -> None:
    prepared, gate = [], threading.Event()

    class Slow:
        def prepare(self) -> None:
            prepared.append(1)
            gate.wait(20)

        async def __call__(self, turn: Any) -> Any:
            yield turn.text

    shelf = opened(given={"slow": Slow()})
    got = at_once(8, lambda: shelf.load(Profile("slow", "slow")), gate, "load")
    assert len(set(map(id, got))) == 1
    assert prepared == [1]
    assert shelf.loaded(Profile("slow", "slow")) is got[0]


def test_with_reload_a_changed_file_is_run_once_for_all_who_wait(signals: Signals, tmp_path: Path) -> None:
    signals.gate.set()
    shelf = opened(reload=True)
    shelf.load(profile(signals))
    signals.gate.clear()
    file = tmp_path / f"slow_{signals.__name__}.py"
    os.utime(file, ns=(0, file.stat().st_mtime_ns + 10**9))
    each = iter([profile(signals), profile(signals, "shout")] * 4)
    got = at_once(8, lambda: shelf.load(next(each)), signals.gate, "load")
    assert len(got) == 8
    assert not [one for one in got if isinstance(one, BrainFailed)]
    assert len(signals.imports) == 2


def test_first_messages_of_many_talks_with_one_profile_are_all_answered(signals: Signals, tmp_path: Path) -> None:
    shelf = ProfileRegistry(None, [profile(signals)], "say")
    with AgentService(open_roost(f"sqlite:///{tmp_path / 'roost.db'}", shelf, QUICK)) as service:
        talks = [service.create_talk_session("ann") for _ in range(40)]
        for talk in talks:
            service.add_message("ann", talk, "hello")
        signals.gate.set()
        answers = {settled(service, "ann", talk)[-1].content for talk in talks}
    assert answers == {"heard hello"}
    assert len(signals.imports) == 1


def test_one_flight_is_over_when_it_lands() -> None:
    flights, tries = SingleFlight(threading.Lock), iter([1, 2])
    assert [flights.do("a", lambda: next(tries)), flights.do("a", lambda: next(tries))] == [1, 2]
    with pytest.raises(StopIteration):
        flights.do("a", lambda: next(tries))
