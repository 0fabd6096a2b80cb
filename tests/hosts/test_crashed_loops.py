"""Loops that crash: the crash is reported once, and Python does not warn about the tasks that were left."""

from __future__ import annotations

import asyncio
import gc

import pytest

from roost.hosts.threads import ThreadHost
from roost.ports import Loop
from tests.conftest import eventually


def test_a_crashed_loop_leaves_no_warnings_about_its_tasks(caplog: pytest.LogCaptureFixture) -> None:
    crashes: list[str] = []

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    async def main(loop: Loop) -> None:
        task = asyncio.create_task(stubborn())
        await task

    def die() -> None:
        raise SystemExit("crashed by a test")

    loop = ThreadHost().start_loop("doomed", main, lambda _, error: crashes.append(str(error)))
    loop.call(die)
    over = loop.over
    eventually(lambda: over.done)
    loop.join()
    del loop
    gc.collect()
    assert crashes == ["crashed by a test"]
    assert "destroyed" not in caplog.text
