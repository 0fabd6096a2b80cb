"""Switch interval of the GIL: short while a thread is CPU-bound, otherwise long."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable

import pytest

from roost.hosts.switch_interval import LONG, SHORT
from roost.hosts.threads import ThreadHost
from roost.ports import Loop
from tests.conftest import eventually


class Beside:
    """A loop that turns all the time, so that there is one to look at, and something beside it."""

    def __init__(self) -> None:
        self.host, self.over = ThreadHost(), threading.Event()
        self.loops = [self.host.start_loop("turning", self._turn, self._ended)]

    async def _turn(self, loop: Loop) -> None:
        while not self.over.is_set():  # noqa: ASYNC110 — it is to turn
            await asyncio.sleep(0.001)

    def _ended(self, loop: Loop, error: BaseException | None) -> None:
        assert error is None

    def on_loop(self, act: Callable[[], None]) -> None:
        async def main(loop: Loop) -> None:
            act()

        self.loops.append(self.host.start_loop("beside", main, self._ended))

    def on_thread(self, act: Callable[[], None]) -> None:
        self.host.run_blocking("beside", act)

    def burn(self) -> None:
        while not self.over.is_set():
            pass

    def block(self) -> None:
        self.over.wait(10)

    def end(self) -> None:
        self.over.set()
        for loop in self.loops:
            assert self.host.wait(loop.over, 10)


@pytest.mark.parametrize("where", ["on_loop", "on_thread"])
def test_the_switch_interval_is_short_while_a_thread_is_cpu_bound(where: str) -> None:
    one = Beside()
    try:
        eventually(lambda: sys.getswitchinterval() == pytest.approx(LONG))
        burning = Beside()
        getattr(one, where)(burning.burn)
        eventually(lambda: sys.getswitchinterval() == pytest.approx(SHORT))
        burning.end()
        eventually(lambda: sys.getswitchinterval() == pytest.approx(LONG))
    finally:
        one.end()


@pytest.mark.parametrize("where", ["on_loop", "on_thread"])
def test_a_thread_that_waits_burns_nothing(where: str) -> None:
    one = Beside()
    try:
        eventually(lambda: sys.getswitchinterval() == pytest.approx(LONG))
        getattr(one, where)(one.block)
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            assert sys.getswitchinterval() == pytest.approx(LONG)
            one.over.wait(0.01)
    finally:
        one.end()


def test_the_switch_interval_grows_with_the_number_of_threads() -> None:
    """Each that waits for the GIL wakes once per interval: if thousands do, nothing else runs any more."""
    one, crowd = Beside(), Beside()
    try:
        for _ in range(300):
            one.on_thread(crowd.block)
        eventually(lambda: sys.getswitchinterval() > 2 * LONG)
        crowd.end()
        eventually(lambda: sys.getswitchinterval() < 1.3 * LONG)
    finally:
        one.end()
        crowd.end()


def test_the_interval_is_exact_again_after_many_threads_have_ended() -> None:
    """Until all have ended it may differ by a quarter from the one for their number."""
    first, rest = Beside(), Beside()
    try:
        for crowd, count in ((first, 60), (rest, 28)):
            for _ in range(count):
                crowd.on_thread(crowd.block)
        eventually(lambda: sys.getswitchinterval() > 2 * LONG)
        first.end()
        eventually(lambda: sys.getswitchinterval() < 1.6 * LONG)
        rest.end()
        eventually(lambda: sys.getswitchinterval() == pytest.approx(LONG))
    finally:
        first.end()
        rest.end()
