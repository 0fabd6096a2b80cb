"""Bells wake one waiter again and again: none is lost, and many on one loop share its wake-ups."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from roost.hosts.bell import HostBell
from roost.hosts.pending import Together, drive

LONG = 20.0
"""Seconds that no wait takes here."""


def rung_on_a_thread(bell: HostBell) -> None:
    threading.Thread(target=bell.ring).start()


def test_a_waiter_on_a_loop_is_woken_by_a_thread_again_and_again() -> None:
    async def main() -> None:
        bell = HostBell()
        for _ in range(3):
            bell.clear()
            rung_on_a_thread(bell)
            assert await bell.within(LONG)
        bell.close()

    asyncio.run(main())


def test_a_waiter_on_a_plain_thread_is_woken() -> None:
    bell = HostBell()
    for _ in range(3):
        bell.clear()
        rung_on_a_thread(bell)
        assert drive(bell.within(LONG))


@pytest.mark.parametrize("driven", [True, False])
def test_a_bell_that_was_rung_before_is_not_waited_for_until_it_is_cleared(driven: bool) -> None:
    bell = HostBell()
    bell.ring()
    run = drive if driven else asyncio.run
    assert run(bell.within(LONG))
    bell.clear()
    assert not run(bell.within(0.001))


def test_each_wait_has_its_whole_time_although_the_timer_is_that_of_an_earlier_one() -> None:
    async def main() -> None:
        bell = HostBell()
        asyncio.get_running_loop().call_later(0.04, bell.ring)
        assert await bell.within(0.05)
        bell.clear()
        start = time.monotonic()
        assert not await bell.within(0.05)
        assert time.monotonic() - start > 0.045
        start = time.monotonic()
        assert not await bell.within(0.01)  # shorter than the timer
        assert time.monotonic() - start > 0.009

    asyncio.run(main())


def test_a_wait_that_is_cancelled_leaves_the_bell_as_it_was() -> None:
    async def main() -> None:
        bell = HostBell()
        task = asyncio.create_task(bell.within(LONG))
        await asyncio.wait([task], timeout=0)
        task.cancel()
        await asyncio.wait([task])
        rung_on_a_thread(bell)
        assert await bell.within(LONG)
        bell.close()

    asyncio.run(main())


def test_bells_that_are_rung_in_a_batch_wake_at_its_end() -> None:
    async def main() -> None:
        bells = [HostBell() for _ in range(5)]
        waits = [asyncio.create_task(bell.within(LONG)) for bell in bells]
        await asyncio.wait(waits, timeout=0)

        def batch() -> None:
            with Together():
                for bell in bells:
                    bell.ring()

        threading.Thread(target=batch).start()
        assert await asyncio.gather(*waits) == [True] * 5

    asyncio.run(main())


def test_no_ring_is_lost_between_many_bells_and_threads() -> None:
    bells, rounds, is_over = [HostBell() for _ in range(20)], 200, threading.Event()
    gates = [threading.Semaphore(0) for _ in range(4)]

    def ringing(number: int) -> None:
        while gates[number].acquire() and not is_over.is_set():
            for bell in bells[number::4]:
                bell.ring()

    async def main() -> None:
        for _ in range(rounds):  # a lost ring would take `LONG`
            for bell in bells:
                bell.clear()
            waits = [asyncio.create_task(bell.within(LONG)) for bell in bells]
            for gate in gates:
                gate.release()
            assert all(await asyncio.gather(*waits))

    threads = [threading.Thread(target=ringing, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        asyncio.run(main())
    finally:
        is_over.set()
        for gate in gates:
            gate.release()
        for thread in threads:
            thread.join()
