"""A3: a brain that burns a processor leaves the others their share of the interpreter."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from roost.hosts import threads
from roost.hosts.threads import PRESSED, ThreadHost
from roost.ports import Loop
from tests.conftest import eventually


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadHost]:
    monkeypatch.setattr(threads, "LASTING", 0.3)
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-4)
    try:
        yield ThreadHost()
    finally:
        sys.setswitchinterval(before)


def burns(until: threading.Event) -> None:
    while not until.is_set():
        pass


def waits(until: threading.Event) -> None:
    until.wait(20)


def on_a_loop(host: ThreadHost, act: Callable[[threading.Event], None], until: threading.Event) -> None:
    async def main(loop: Loop) -> None:
        await asyncio.sleep(0)
        act(until)

    host.start_loop("burns", main, lambda *_: None)


def on_a_thread(host: ThreadHost, act: Callable[[threading.Event], None], until: threading.Event) -> None:
    host.run_blocking("burns", lambda: act(until))


def paced(host: ThreadHost) -> float:
    host.pace()
    return sys.getswitchinterval()


@pytest.mark.parametrize("start", [on_a_loop, on_a_thread])
def test_while_one_burns_the_interpreter_is_handed_over_more_often(
    host: ThreadHost, start: Callable[..., None]
) -> None:  # fmt: skip
    until = threading.Event()
    start(host, burns, until)
    try:
        assert eventually(lambda: paced(host) == pytest.approx(PRESSED))
    finally:
        until.set()
    assert eventually(lambda: paced(host) == pytest.approx(5e-4))


def test_what_was_is_set_again_when_the_last_host_needs_it_no_more(host: ThreadHost) -> None:
    until, other = threading.Event(), ThreadHost()
    for one in (host, other):
        on_a_thread(one, burns, until)
    try:
        eventually(lambda: paced(host) == paced(other) == pytest.approx(PRESSED) and len(threads.Pace._pressing) == 2)
        host.pace(last=True)
        assert sys.getswitchinterval() == pytest.approx(PRESSED)
        other.pace(last=True)
        assert sys.getswitchinterval() == pytest.approx(5e-4)
    finally:
        until.set()


@pytest.mark.parametrize("start", [on_a_loop, on_a_thread])
def test_one_that_only_waits_changes_nothing(host: ThreadHost, start: Callable[..., None]) -> None:
    until = threading.Event()
    start(host, waits, until)
    try:
        latest = time.monotonic() + 0.5
        eventually(lambda: paced(host) != pytest.approx(5e-4) or time.monotonic() > latest)
        assert sys.getswitchinterval() == pytest.approx(5e-4)
    finally:
        until.set()
