"""Talks: turns, chunks, stops, reads."""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import roost
from bench.figures import Figure, bench, percentile
from roost.runtime.talks.run import TalkRun


async def instant(turn: roost.Turn) -> AsyncIterator[str]:
    yield "ok"


@bench("turns")
def turns(folder: Path) -> Iterator[Figure]:
    """Fresh talks, 20 at once: created, asked, and answered; the caller reads the stream."""
    rate, count = turns_per_second(f"sqlite:///{folder}/turns.db")
    yield Figure("fresh_talks_20_at_once", rate, "turns/s", count, 3_000, more_is_better=True)


@bench("streamed-turns")
def streamed_turns(folder: Path) -> Iterator[Figure]:
    """Fresh talks, 20 at once, as people have them: two chunks, 5 ms apart."""
    rate, count = turns_per_second(f"sqlite:///{folder}/streamed.db", brain=streamed)
    yield Figure("streamed_talks_20_at_once", rate, "turns/s", count, 2_000, more_is_better=True)


async def streamed(turn: roost.Turn) -> AsyncIterator[str]:
    yield "o"
    await asyncio.sleep(0.005)
    yield "k"


def turns_per_second(url: str, count: int = 6_000, brain: roost.Brain = instant) -> tuple[float, int]:
    at_once = 20

    async def main() -> float:
        async with await roost.aopen(url, brains={"brain": brain}) as service:

            async def one() -> None:
                talk = await service.create_talk_session("ann", profile="brain")
                await service.add_message("ann", talk, "hello")
                last = None
                async for change in service.stream_messages("ann", talk):
                    last = change
                assert last is not None
                assert last.message.content == "ok"

            async def lane(turns: int) -> None:
                for _ in range(turns):
                    await one()

            await asyncio.gather(*(lane(10) for _ in range(at_once)))
            start = time.perf_counter()
            await asyncio.gather(*(lane(count // at_once) for _ in range(at_once)))
            return time.perf_counter() - start

    return count / asyncio.run(main()), count


@bench("long-talk")
def long_talk(folder: Path) -> Iterator[Figure]:
    """One talk of 1,000 turns: the time of turn 10, 100 and 1,000, and what is left on disk."""
    times: list[float] = []
    with roost.open(f"sqlite:///{folder}/long.db", brains={"instant": instant}) as service:
        talk = service.create_talk_session("ann", profile="instant")
        cursor = service.get_messages("ann", talk).cursor
        for _ in range(1_010):
            start = time.perf_counter()
            service.add_message("ann", talk, "hello")
            for change in service.stream_messages("ann", talk, after=cursor):
                cursor = change.cursor
            times.append(time.perf_counter() - start)

    def at(turn: int) -> float:
        return statistics.median(times[max(0, turn - 10) : turn + 10]) * 1e3

    for turn in (10, 100):
        yield Figure(f"turn_{turn}", at(turn), "ms", 20)
    yield Figure("turn_1000", at(1_000), "ms", 20, 1.0)
    yield Figure("turn_1000_over_turn_10", at(1_000) / at(10), "×", 20, 1.1)
    yield Figure("store_size_1000_turns", (folder / "long.db").stat().st_size / 2**20, "MiB", 1_000, 1.0)


@bench("first-chunk")
def first_chunk(folder: Path) -> Iterator[Figure]:
    """From `add_message` to the first chunk in a reader's hands."""

    async def two_words(turn: roost.Turn) -> AsyncIterator[str]:
        yield "first"
        await asyncio.sleep(0.002)
        yield "second"

    waits: list[float] = []
    with roost.open(f"sqlite:///{folder}/first.db", brains={"two_words": two_words}) as service:
        for _ in range(500):
            talk = service.create_talk_session("ann", profile="two_words")
            cursor = service.get_messages("ann", talk).cursor
            start = time.perf_counter()
            service.add_message("ann", talk, "hello")
            for change in service.stream_messages("ann", talk, after=cursor):
                if change.message.sender == "agent" and change.text:
                    waits.append(time.perf_counter() - start)
                    break
            for _ in service.stream_messages("ann", talk):
                pass
    yield Figure("first_chunk_p50", percentile(waits, 50) * 1e3, "ms", len(waits), 0.8)
    yield Figure("first_chunk_p99", percentile(waits, 99) * 1e3, "ms", len(waits))


@bench("chunks")
def chunks(folder: Path) -> Iterator[Figure]:
    """CPU of the whole process per chunk, to a reader, above the bare brain's."""

    async def burst(turn: roost.Turn) -> AsyncIterator[str]:
        for _ in range(100_000):
            yield "word "

    async def steady(turn: roost.Turn) -> AsyncIterator[str]:
        for _ in range(1_000):
            yield "word "
            await asyncio.sleep(0.001)

    async def bare(brain: roost.Brain) -> None:
        async for _ in brain(None):  # type: ignore[arg-type, union-attr]
            pass

    brains: dict[str, roost.Brain] = {"burst": burst, "steady": steady}
    with roost.open(f"sqlite:///{folder}/chunks.db", brains=brains) as service:
        for name, count, goal in (("burst", 100_000, 0.005), ("steady", 1_000, None)):
            start = time.process_time()
            asyncio.run(bare(brains[name]))
            alone = time.process_time() - start
            talk = service.create_talk_session("ann", profile=name)
            start = time.process_time()
            service.add_message("ann", talk, "go")
            for _ in service.stream_messages("ann", talk):
                pass
            cost = (time.process_time() - start - alone) / count
            yield Figure(f"chunk_cpu_{name}", cost * 1e3, "ms", count, goal)


@bench("stops")
def stops(folder: Path) -> Iterator[Figure]:
    """From `add_message` to the old run acknowledged stopped; alone, and beside a brain that burns CPU."""

    async def endless(turn: roost.Turn) -> AsyncIterator[str]:
        while True:
            yield "word "
            await asyncio.sleep(0.003)

    def burning(turn: roost.Turn) -> Iterator[str]:
        yield "burning"
        while not turn.stopping:
            sum(range(500))

    brains: dict[str, roost.Brain] = {"endless": endless, "burning": burning}
    with roost.open(f"sqlite:///{folder}/stops.db", brains=brains) as service:
        yield Figure("stop_p99", percentile(_stop_times(service, 300), 99) * 1e3, "ms", 300, 3.0)
        burner = service.create_talk_session("bob", profile="burning")
        service.add_message("bob", burner, "burn")
        times = _stop_times(service, 200)
        service.stop("bob", burner, wait=5)
        yield Figure("stop_beside_burner_p99", percentile(times, 99) * 1e3, "ms", 200, 15.0)


def _running(service: roost.AgentService, talk: str) -> TalkRun | None:
    """Return the run of a talk that nobody has stopped yet."""
    lane = service.roost.placement.lane(talk)
    run = None if lane is None else lane.run
    return None if run is None or run.acknowledged is not None else run


def _stop_times(service: roost.AgentService, count: int) -> list[float]:
    talk = service.create_talk_session("ann", profile="endless")
    service.add_message("ann", talk, "start")
    clock, pause = time.time, threading.Event()
    times = []
    for _ in range(count):
        for change in service.stream_messages("ann", talk):
            if change.message.status == "streaming" and change.text:
                break
        while (run := _running(service, talk)) is None:
            pause.wait(0.0002)  # the one that was stopped before may still be there
        start = clock()
        service.add_message("ann", talk, "again")
        while run.acknowledged is None:
            pause.wait(0.0002)
        assert run.acknowledged >= start, "it was stopped before it was asked to"
        times.append(run.acknowledged - start)
    service.stop("ann", talk, wait=5)
    return times


@bench("reads")
def reads(folder: Path) -> Iterator[Figure]:
    """`get_messages` with nothing new."""
    with roost.open(f"sqlite:///{folder}/reads.db", brains={"instant": instant}) as service:
        talk = service.create_talk_session("ann", profile="instant")
        service.add_message("ann", talk, "hello")
        for _ in service.stream_messages("ann", talk):
            pass
        cursor = service.get_messages("ann", talk).cursor
        service.get_messages("ann", talk, after=cursor)
        count = 200_000
        start = time.perf_counter()
        for _ in range(count):
            service.get_messages("ann", talk, after=cursor)
        yield Figure("empty_poll", (time.perf_counter() - start) / count * 1e6, "µs", count, 2.0)
