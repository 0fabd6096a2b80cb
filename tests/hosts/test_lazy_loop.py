"""The lazy loop behaves as the standard one, before and after its first descriptor."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import socket
import threading

import pytest

from roost.hosts.lazy_loop import LazyLoop


def test_it_has_no_descriptors_until_it_needs_one() -> None:
    loop = LazyLoop()
    try:
        assert loop.run_until_complete(asyncio.sleep(0.001, "slept")) == "slept"
        assert not loop.lazy.get_map()
    finally:
        loop.close()


def test_other_threads_wake_it_while_it_sleeps() -> None:
    loop = LazyLoop()
    future = loop.create_future()
    threading.Thread(target=lambda: loop.call_soon_threadsafe(future.set_result, "woken")).start()
    try:
        assert loop.run_until_complete(asyncio.wait_for(future, 5)) == "woken"
    finally:
        loop.close()


def test_timers_fire_in_order() -> None:
    loop = LazyLoop()
    fired: list[int] = []

    async def main() -> None:
        for n in (3, 1, 2):
            loop.call_later(n / 1000, fired.append, n)
        await asyncio.sleep(0.02)

    loop.run_until_complete(main())
    loop.close()
    assert fired == [1, 2, 3]


def test_what_is_called_soon_is_called_in_order_and_in_its_context() -> None:
    loop = LazyLoop()
    whose = contextvars.ContextVar("whose", default="nobody's")
    other = contextvars.copy_context()
    other.run(whose.set, "theirs")
    called: list[tuple[int, str]] = []

    def call(number: int) -> None:
        called.append((number, whose.get()))

    async def main() -> None:
        whose.set("ours")
        loop.call_soon(call, 1)
        loop.call_soon(call, 2, context=other)
        loop.call_soon(call, 3).cancel()
        await asyncio.sleep(0)

    loop.run_until_complete(main())
    loop.close()
    assert called == [(1, "ours"), (2, "theirs")]
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_soon(call, 4)


def test_while_it_is_debugged_it_is_as_strict_as_the_standard_one() -> None:
    loop = LazyLoop()
    loop.set_debug(True)
    try:
        with pytest.raises(TypeError, match="callable"):
            loop.call_soon("nothing that can be called")
    finally:
        loop.close()


def test_after_its_first_descriptor_sockets_and_other_threads_both_wake_it() -> None:
    loop = LazyLoop()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)

    async def main() -> tuple[bytes, str]:
        threading.Thread(target=theirs.send, args=(b"hello",)).start()
        got = await asyncio.wait_for(loop.sock_recv(ours, 10), 5)
        future: asyncio.Future[str] = loop.create_future()
        threading.Thread(target=lambda: loop.call_soon_threadsafe(future.set_result, "woken")).start()
        return got, await asyncio.wait_for(future, 5)

    try:
        assert loop.run_until_complete(main()) == (b"hello", "woken")
    finally:
        loop.close()
        ours.close()
        theirs.close()
    gc.collect()


def test_subprocesses_and_streams_work_on_it() -> None:
    loop = LazyLoop()

    async def main() -> bytes:
        process = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        return out

    thread_result: list[bytes] = []

    def run() -> None:
        asyncio.set_event_loop(loop)
        thread_result.append(loop.run_until_complete(asyncio.wait_for(main(), 10)))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(15)
    assert thread_result == [b"hi\n"]


def test_a_flood_of_rings_loses_none() -> None:
    loop = LazyLoop()
    count = 0
    done = loop.create_future()

    def ring() -> None:
        nonlocal count
        count += 1
        if count == 4000:
            done.set_result(None)

    def flood() -> None:
        for _ in range(1000):
            loop.call_soon_threadsafe(ring)

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    loop.run_until_complete(asyncio.wait_for(done, 10))
    loop.close()
    assert count == 4000
