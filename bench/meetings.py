"""Meetings of eight: one after the other, and one who speaks while seven listen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import roost
from bench.figures import Figure, bench

EIGHT = [f"p{number}" for number in range(8)]


async def speaker(turn: roost.Turn) -> AsyncIterator[str]:
    yield "words"


async def listener(turn: roost.Turn) -> AsyncIterator[str]:
    yield ""


def over(service: roost.AgentService, meeting: str, words: int) -> None:
    """Wait until all have heard all of it."""
    for name in EIGHT:
        while service.meetings.view("ann", meeting, seen_by=f"agent:{name}", limit=0).said < words:
            time.sleep(0.02)


@bench("meeting-round")
def meeting_round(folder: Path) -> Iterator[Figure]:
    """Eight agents speak one after the other: each hears of the last one's words, is asked, and answers."""
    count = 500
    with roost.open(f"sqlite:///{folder}/round.db", brains={"speaker": speaker}) as service:
        service.agents.create_many("ann", EIGHT, profile="speaker")
        others = [f"agent:{name}" for name in EIGHT[1:]]
        seconds = 0.0
        for words in (50, count):
            start = time.perf_counter()
            meeting = service.meetings.call(
                "ann", "round", required=others, floor="round_robin", max_words=words, by="agent:p0"
            )
            over(service, meeting, words)
            seconds = time.perf_counter() - start
        yield Figure("meeting_of_8_in_turn", count / seconds, "msg/s", count)


@bench("meeting-flood")
def meeting_flood(folder: Path) -> Iterator[Figure]:
    """One speaks as fast as it can, and seven listen; until all of it is in the logs of all."""
    count, at_once = 2_000, 100
    brains: dict[str, Any] = {"listener": listener}
    with roost.open(f"sqlite:///{folder}/flood.db", brains=brains) as service:
        service.agents.create_many("ann", EIGHT, profile="listener")
        others = [f"agent:{name}" for name in EIGHT[1:]]

        async def flood(meeting: str, words: int) -> None:
            say = service.asynchronous.meetings.say
            for first in range(0, words, at_once):
                said = (say("ann", meeting, f"words {first + n}", by="agent:p0") for n in range(at_once))
                await asyncio.gather(*said)

        seconds = 0.0
        for words in (200, count):
            meeting = service.meetings.call("ann", "flood", required=others, max_words=10_000, by="agent:p0")
            while service.meetings.view("ann", meeting, limit=0).phase != "running":
                time.sleep(0.002)
            start = time.perf_counter()
            asyncio.run(flood(meeting, words))
            over(service, meeting, words)
            seconds = time.perf_counter() - start
        yield Figure("meeting_of_8_flooded", count / seconds, "msg/s", count)
        yield Figure("meeting_of_8_heard", 7 * count / seconds, "deliveries/s", 7 * count)
