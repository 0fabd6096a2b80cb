"""Results that come later, waited for in both colours."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import pytest

from roost.hosts.pending import HostPending, Together, call_on, drive, wake_stalled
from roost.hosts.threads import ThreadHost
from roost.ports import Loop


async def result_of(pending: HostPending[int]) -> int:
    return await pending


def test_a_plain_thread_waits_for_what_another_sets() -> None:
    pending: HostPending[int] = HostPending()
    threading.Thread(target=pending.set, args=(7,)).start()
    assert drive(result_of(pending)) == 7


def test_a_loop_waits_for_what_another_thread_sets() -> None:
    pending: HostPending[int] = HostPending()
    threading.Thread(target=pending.set, args=(7,)).start()
    assert asyncio.run(result_of(pending)) == 7


def test_a_plain_call_works_on_a_thread_whose_loop_is_running() -> None:
    pending: HostPending[int] = HostPending()

    async def main() -> int:
        threading.Thread(target=pending.set, args=(7,)).start()
        return drive(result_of(pending))

    assert asyncio.run(main()) == 7


def test_a_failure_is_raised_where_it_is_awaited() -> None:
    pending: HostPending[int] = HostPending()
    pending.fail(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        drive(result_of(pending))


def test_the_first_result_counts() -> None:
    pending: HostPending[int] = HostPending()
    pending.set(1)
    pending.set(2)
    pending.fail(ValueError())
    assert drive(result_of(pending)) == 1


@pytest.mark.parametrize("plain", [True, False])
def test_waiting_has_a_limit_and_cancels_nothing(plain: bool) -> None:
    pending: HostPending[int] = HostPending()

    async def wait() -> bool:
        return await pending.within(0.01)

    assert (drive(wait()) if plain else asyncio.run(wait())) is False
    pending.set(1)
    assert drive(wait()) is True


def test_many_may_wait_for_one() -> None:
    pending: HostPending[int] = HostPending()
    got: list[int] = []
    threads = [threading.Thread(target=lambda: got.append(drive(result_of(pending)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    pending.set(3)
    for thread in threads:
        thread.join(5)
    assert got == [3] * 8


def test_what_is_gathered_reaches_the_loop_in_order_and_in_one_go() -> None:
    order: list[int] = []
    wakes: list[Any] = []

    class CountingLoop(asyncio.SelectorEventLoop):
        def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
            wakes.append(callback)
            return super().call_soon_threadsafe(callback, *args, context=context)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with Together():
            for n in range(5):
                call_on(loop, partial(order.append, n))
        await asyncio.sleep(0.001)

    loop = CountingLoop()
    loop.run_until_complete(main())
    loop.close()
    assert order == [0, 1, 2, 3, 4]
    assert len(wakes) == 1


class Elsewhere(asyncio.SelectorEventLoop):
    """A loop that looks idle when it is to be woken, and has begun something else by then."""

    is_idle = True


def test_stuck_loops_delay_no_other_loop() -> None:
    host, heard = ThreadHost(), threading.Event()
    stuck = [Elsewhere() for _ in range(5)]

    async def listen(loop: Loop) -> None:
        await asyncio.to_thread(heard.wait, 20)

    listener = host.start_loop("listener", listen, lambda *_: None)

    def wake() -> None:
        with host.together():
            for loop in stuck:
                call_on(loop, lambda: None)
            listener.call(heard.set)

    pump = host.pump("waker", wake)
    pump.ring()
    assert heard.wait(10)
    pump.close()
    listener.join()
    for loop in stuck:
        loop.close()


def test_loops_that_are_woken_together_wake_each_other() -> None:
    """Wake far more loops than are woken at once: each gets its calls in order."""
    host = ThreadHost()
    heard: dict[int, list[int]] = {number: [] for number in range(40)}
    left = threading.Semaphore(0)

    async def listen(loop: Loop) -> None:
        await asyncio.sleep(30)

    def hear(number: int, said: int) -> None:
        heard[number].append(said)
        left.release()

    loops = [host.start_loop(f"listener-{number}", listen, lambda *_: None) for number in heard]
    for said in range(20):
        with host.together():
            for number, loop in enumerate(loops):
                loop.call(hear, number, said)
    while wake_stalled():
        pass
    assert all(left.acquire(timeout=10) for _ in range(20 * len(loops)))
    assert all(said == list(range(20)) for said in heard.values())
    for loop in loops:
        loop.abandon()
        loop.join()
