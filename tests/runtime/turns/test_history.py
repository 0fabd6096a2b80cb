"""T8: a brain sees the whole talk, although only the newest messages are in RAM."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from roost import AsyncAgentService, Message, Turn
from roost.brains.guide import guided
from roost.brains.scripted import scripted
from roost.runtime.replays import rebuild as turns
from roost.runtime.talks import live_talk as live
from roost.runtime.talks import live_talks
from roost.runtime.turns import history
from roost.runtime.turns.history import TalkHistory
from tests.runtime.conftest import World, ended, said, until

TURNS = 30


@pytest.fixture(autouse=True)
def little_ram(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is loaded, little is kept, and a page has few messages."""
    monkeypatch.setattr(history, "PAGE", 7)
    monkeypatch.setattr(history, "PAGES", 2)
    monkeypatch.setattr(live, "KEPT", 10)
    monkeypatch.setattr(live, "MOST", 20)
    monkeypatch.setattr(live_talks, "TAIL", 8)
    monkeypatch.setattr(turns, "TAIL", 8)


async def talked(service: AsyncAgentService, count: int = TURNS, profile: str = "echo") -> str:
    talk = await service.create_talk_session("ann", profile=profile)
    for number in range(count):
        await service.add_message("ann", talk, f"word {number}")
        await ended(service, talk)
    return talk


async def everything(service: AsyncAgentService, talk: str) -> list[Message]:
    """All that people see, by page."""
    found: list[Message] = []
    page = await service.get_messages("ann", talk, limit=9)
    while True:
        found = [*page.messages, *found]
        if not page.more_before:
            return found
        page = await service.get_messages("ann", talk, before=page.messages[0].seq, limit=9)


async def echo(turn: Turn) -> AsyncIterator[str]:
    yield turn.text


class Reads:
    """Notes what it is given, in all the ways there are to read it."""

    def __init__(self) -> None:
        self.given: list[list[Message]] = []
        self.kinds: list[str] = []

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        told: Any = turn.history
        plain: list[Message] = [*told]
        self.given.append(plain)
        self.kinds.append(type(told).__name__)
        assert [*reversed(told)] == plain[::-1]
        assert len(told) == len(plain)
        assert bool(told) is bool(plain)
        assert [told[place] for place in range(len(plain))] == plain
        assert [told[-place] for place in range(1, len(plain) + 1)] == plain[::-1]
        for part in (slice(-3, None), slice(2, 9), slice(None, None, 5), slice(-40, -2), slice(None), slice(-3, -1)):
            assert told[part] == plain[part]
        for wrong in (len(plain), -len(plain) - 1):
            with pytest.raises(IndexError):
                told[wrong]
        assert told == plain
        assert told + plain[:1] == plain + plain[:1]
        if isinstance(told, TalkHistory):
            assert [message async for message in told] == plain
            assert told.count_of("user") == sum(message.sender == "user" for message in plain)
        yield f"{len(plain)} before"


@pytest.mark.parametrize("again", [False, True])
def test_a_brain_sees_all_of_a_talk_that_is_not_in_ram(world: World, again: bool) -> None:
    reads = Reads()
    brains: dict[str, Any] = {"echo": echo, "reads": reads}
    talks: list[str] = []

    async def first(service: AsyncAgentService) -> None:
        talks.append(await talked(service))

    async def second(service: AsyncAgentService) -> tuple[list[Message], str]:
        before = await everything(service, talks[0])
        await service.configure("ann", talks[0], profile="reads")
        await service.add_message("ann", talks[0], "well?")
        return before, (await ended(service, talks[0]))[-1].content

    async def both(service: AsyncAgentService) -> tuple[list[Message], str]:
        await first(service)
        return await second(service)

    if again:
        world(brains, first)
    before, answer = world(brains, second if again else both)
    assert (answer, len(before)) == (f"{2 * TURNS} before", 2 * TURNS)
    assert reads.given == [before]
    assert reads.kinds == ["TalkHistory"]


def test_withdrawn_answers_are_not_in_it(world: World) -> None:
    reads = Reads()

    async def slow(turn: Turn) -> AsyncIterator[str]:
        new = turn.messages[-1].content
        yield f"I think of {new}"
        if new.startswith("wait"):
            await asyncio.sleep(60)

    async def story(service: AsyncAgentService) -> list[Message]:
        talk = await service.create_talk_session("ann", profile="slow", busy="rollback")
        for number in range(12):
            word = f"wait {number}" if number % 3 == 1 else f"word {number}"
            await service.add_message("ann", talk, word)
            await said(service, talk, f"I think of {word}")
            if number % 3 != 1:
                await ended(service, talk)
        await service.configure("ann", talk, profile="reads")
        await service.add_message("ann", talk, "well?")
        await ended(service, talk)
        return [message for message in await everything(service, talk) if message.status != "withdrawn"]

    shown = world({"slow": slow, "reads": reads}, story)
    assert reads.given == [shown[:-2]]
    assert reads.kinds == ["TalkHistory"]
    assert len(shown) < shown[-1].seq  # some were withdrawn


def test_a_replay_is_given_the_history_as_it_was(world: World) -> None:
    reads = Reads()

    async def story(service: AsyncAgentService) -> tuple[bool, str]:
        talk = await talked(service)
        await service.configure("ann", talk, profile="reads")
        await service.add_message("ann", talk, "well?")
        await ended(service, talk)
        [run, *_] = await service.runs.list("ann", talk=talk)
        await service.configure("ann", talk, profile="echo")
        await service.add_message("ann", talk, "more")
        await ended(service, talk)
        replayed = await service.runs.replay("ann", run.run_id)
        return replayed.is_identical, replayed.text

    assert world({"echo": echo, "reads": reads}, story) == (True, f"{2 * TURNS} before")
    assert reads.given[0] == reads.given[1]


def test_many_messages_that_wait_are_answered_together(world: World) -> None:
    """More than are kept in RAM."""
    begun: list[bool] = []
    gate: list[bool] = []

    async def waits(turn: Turn) -> AsyncIterator[str]:
        begun.append(True)
        await until(lambda: gate)
        yield f"{len(turn.messages)} new, {len(turn.history)} before"

    async def story(service: AsyncAgentService) -> list[str]:
        talk = await talked(service, 15)
        await service.configure("ann", talk, profile="waits", busy="queue")
        for number in range(40):
            await service.add_message("ann", talk, f"more {number}")
            await until(lambda: begun)
        gate.append(True)
        return [message.content for message in (await ended(service, talk))[-2:]]

    found = world({"echo": echo, "waits": waits}, story)
    assert found[-1] == "39 new, 32 before"


def test_a_plain_brain_reads_it_too(world: World) -> None:
    def counts(turn: Any) -> Iterator[str]:
        yield f"{sum(1 for _ in turn.history)}, first {turn.history[0].content}"

    async def story(service: AsyncAgentService) -> str:
        talk = await talked(service)
        await service.configure("ann", talk, profile="counts")
        await service.add_message("ann", talk, "well?")
        return (await ended(service, talk))[-1].content

    assert world({"echo": echo, "counts": counts}, story) == f"{2 * TURNS}, first word 0"


def test_built_in_brains_continue_as_in_a_short_talk(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], str]:
        talk = await talked(service, TURNS, "scripted")
        answers = [message.content for message in await everything(service, talk) if message.sender == "agent"]
        await service.configure("ann", talk, profile="guide")
        await service.add_message("ann", talk, "hello")
        return answers, (await ended(service, talk))[-1].content

    answers, greeting = world({"scripted": scripted(["a", "b", "c"]), "guide": guided(pace=0.0)}, story)
    assert answers == ["a", "b", "c"] * (TURNS // 3)
    assert greeting


def test_a_reader_that_fell_behind_what_is_in_ram_misses_nothing(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[int], int]:
        talk = await service.create_talk_session("ann", profile="echo")
        cursor = (await service.get_messages("ann", talk)).cursor
        for number in range(TURNS):
            await service.add_message("ann", talk, f"word {number}")
            await ended(service, talk)
        seen: list[int] = []
        while True:
            page = await service.get_messages("ann", talk, after=cursor, limit=7)
            seen += [message.seq for message in page.messages]
            cursor = page.cursor
            if not page.messages:
                return seen, len(await everything(service, talk))

    seen, count = world({"echo": echo}, story)
    assert seen == list(range(1, count + 1))
