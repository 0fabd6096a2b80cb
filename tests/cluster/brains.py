"""Brains of test clusters. Nodes load a copy of this file from the folder of the cluster, where the ledger is."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import roost

LEDGER = Path(__file__).with_name("ledger.txt")
PIECES = 6
"""Pieces of an answer of `served`, after the first one."""


def note(*words: object) -> None:
    """Append a line to the ledger; lines of all nodes are in the order of their time."""
    line = " ".join("+".join(str(word).split()) for word in words)  # a turn may be of several messages
    with LEDGER.open("a") as file:
        file.write(f"{time.clock_gettime(time.CLOCK_BOOTTIME):.6f} {os.getpid()} {line}\n")


async def worker(turn: roost.Turn) -> AsyncIterator[str]:
    note("begin", turn.text)
    await asyncio.sleep(0.01)
    yield f"done {turn.text}"
    note("end", turn.text)


async def ponger(turn: roost.Turn) -> AsyncIterator[str]:
    note("begin", turn.text)
    yield "pong"


async def quick(turn: roost.Turn) -> AsyncIterator[str]:
    await asyncio.sleep(0.02)
    yield turn.text


async def mailer(turn: roost.Turn) -> AsyncIterator[str]:
    """Mails its task once it is done: one mail for each task, however often it had to run."""
    await asyncio.sleep(0.02)
    await turn.mail("user:ann", turn.text, "done")
    yield turn.text


async def served(turn: roost.Turn) -> AsyncIterator[str]:
    """Work of a load: beats while it runs; for an agent one effect outside of Roost, and a mail, for each text."""
    address = _address(turn)
    note("beat", address, turn.run_id)
    try:
        if turn.kind == "meeting":
            for text in [message.content for message in turn.messages if message.sender.startswith("user:")][-1:]:
                yield f"{address} has heard {text}"
        elif turn.agent_id:
            text = turn.subject or turn.text
            await _affect(turn, text)
            await asyncio.sleep(0.01)
            await turn.mail("user:ann", text, "done")
            yield text
        else:
            yield f"{'+'.join(turn.text.split())}:"
            for number in range(PIECES):
                await asyncio.sleep(0.01)
                note("beat", address, turn.run_id)
                yield f" {number}"
    finally:
        note("beat", address, turn.run_id)


async def _affect(turn: roost.Turn, text: str) -> None:
    """Add an effect to the ledger, as a step; a repeated turn looks for it there."""

    async def act() -> str:
        note("effect", text, turn.step_key)
        return text

    def check(key: str) -> str | None:
        return text if f" effect {text} {key}\n" in LEDGER.read_text() else None

    await turn.step("effect", act, check=check)
    note("recorded", text)


async def poison(turn: roost.Turn) -> AsyncIterator[str]:
    """Kills its node while others are busy, if it is asked to; else waits until that has begun, and takes longer."""
    address = turn.agent_id or turn.talk_session_id
    note("begin", address, turn.text)
    if turn.text == "poison":
        await asyncio.sleep(0.2)
        note("death", address)
        os.kill(os.getpid(), signal.SIGKILL)
    while " poison\n" not in LEDGER.read_text():  # noqa: ASYNC110 — another process writes it
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.4)
    note("end", address, turn.text)
    yield f"did {turn.text}"


async def asker(turn: roost.Turn) -> AsyncIterator[str]:
    """Asks an agent a number of times, one after the other; answers with the times in milliseconds."""
    target, count = turn.text.split()
    times = []
    for _ in range(int(count)):
        start = time.perf_counter()
        await turn.ask(target, "x", deadline=30)
        times.append(f"{(time.perf_counter() - start) * 1000:.3f}")
    note("asked", target)
    yield " ".join(times)


async def stamped(turn: roost.Turn) -> AsyncIterator[str]:
    """Says the time, by the clock that all processes share."""
    for _ in range(60):
        yield f"{time.monotonic():.6f} "
        await asyncio.sleep(0.02)


async def counting(turn: roost.Turn) -> AsyncIterator[str]:
    """Says its numbers slowly; each number is written once."""
    for number in range(40):
        yield f"{number} "
        await asyncio.sleep(0.05)


async def burning(turn: roost.Turn) -> AsyncIterator[str]:
    """Beats while it runs, also at its end, so that two nodes that run it at once are noticed."""
    run = f"{os.getpid()}-{time.monotonic_ns()}"
    try:
        while True:
            note("beat", turn.text, run)
            yield "."
            await asyncio.sleep(0.02)
    finally:
        note("beat", turn.text, run)


async def waiting(turn: roost.Turn) -> AsyncIterator[str]:
    """Runs until its process ends."""
    note("begin", turn.text)
    await asyncio.Event().wait()
    yield ""


async def holding_once(turn: roost.Turn) -> AsyncIterator[str]:
    """Holds the interpreter in its first run only, and beats before and after."""
    address = _address(turn)
    note("beat", address, turn.run_id)
    if " held " not in LEDGER.read_text():
        note("held", address)
        ctypes.PyDLL(None).usleep(int(float(turn.text) * 1_000_000))
        note("released", address)
    for _ in range(PIECES):
        note("beat", address, turn.run_id)
        await asyncio.sleep(0.01)
    yield f"held {turn.text}"


async def beating(turn: roost.Turn) -> AsyncIterator[str]:
    """Beats a number of times, and once more when it ends."""
    address = _address(turn)
    try:
        for _ in range(int(turn.text)):
            note("beat", address, turn.run_id)
            await asyncio.sleep(0.02)
        yield "beaten"
    finally:
        note("beat", address, turn.run_id)


def _address(turn: roost.Turn) -> str:
    return f"agent:{turn.agent_id}" if turn.agent_id else turn.talk_session_id
