"""Callers that ask for the same at the same time share one read."""

from __future__ import annotations

import asyncio
import gc

import pytest

import roost
from roost.api.shared_reads import SharedReads


class Slow:
    """A read that ends when it is let go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun = self.cancelled = 0
        self.gate = asyncio.Event()
        self.error = error

    async def __call__(self) -> str:
        self.begun += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return f"result {self.begun}"


async def waiting(reads: SharedReads[str], read: Slow, keys: list[str]) -> list[asyncio.Task[str]]:
    tasks = [asyncio.create_task(reads.get(key, read)) for key in keys]
    await asyncio.wait(tasks, timeout=0)
    return tasks


def test_one_read_serves_all_that_ask_meanwhile_and_the_next_one_reads_again() -> None:
    async def main() -> None:
        reads, read = SharedReads[str](), Slow()
        tasks = await waiting(reads, read, ["a"] * 5)
        read.gate.set()
        assert await asyncio.gather(*tasks) == ["result 1"] * 5
        assert await reads.get("a", read) == "result 2"
        assert len(reads) == 0

    asyncio.run(main())


def test_other_keys_are_read_by_themselves() -> None:
    async def main() -> None:
        reads, read = SharedReads[str](), Slow()
        tasks = await waiting(reads, read, ["a", "b"])
        read.gate.set()
        await asyncio.gather(*tasks)
        assert read.begun == 2

    asyncio.run(main())


def test_an_error_reaches_all_that_wait() -> None:
    async def main() -> None:
        reads, read = SharedReads[str](), Slow(roost.NotFound("no such talk"))
        tasks = await waiting(reads, read, ["a"] * 3)
        read.gate.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one) for one in found] == [roost.NotFound] * 3

    asyncio.run(main())


def test_an_error_that_nobody_waits_for_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        reads, read = SharedReads[str](), Slow(roost.NotFound("no such talk"))
        [task] = await waiting(reads, read, ["a"])
        read.gate.set()
        await asyncio.sleep(0)  # the read has ended, and its caller does not know it yet
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    gc.collect()
    assert caplog.text == ""


def test_a_caller_that_leaves_ends_its_read_only_and_another_one_reads_instead() -> None:
    async def main() -> None:
        reads, read = SharedReads[str](), Slow()
        first, second, third = await waiting(reads, read, ["a"] * 3)
        second.cancel()
        await asyncio.wait([second])
        assert (read.begun, read.cancelled) == (1, 0)
        first.cancel()
        await asyncio.wait([first, third], timeout=0.01)
        assert (read.begun, read.cancelled, len(reads)) == (2, 1, 1)
        read.gate.set()
        assert await third == "result 2"
        assert len(reads) == 0

    asyncio.run(main())


def test_the_last_caller_that_leaves_ends_the_read() -> None:
    async def main() -> None:
        reads, read = SharedReads[str](), Slow()
        tasks = await waiting(reads, read, ["a"] * 2)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert (len(reads), read.cancelled) == (0, read.begun)
        again = (await waiting(reads, read, ["a"]))[0]
        read.gate.set()
        assert await again == f"result {read.begun}"

    asyncio.run(main())
