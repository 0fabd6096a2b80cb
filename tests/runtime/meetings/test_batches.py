"""M3: words that come close together are delivered as one ordered batch; a person's words at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import roost
from roost import AsyncAgentService, Turn
from tests.runtime.meetings.meeting_rooms import BRAINS, play, running, seen, team

Given = list[tuple[float, list[str]]]


def listening(given: Given) -> dict[str, object]:
    async def listener(turn: Turn) -> AsyncIterator[str]:
        several = len({m.sender for m in turn.messages}) > 1
        assert turn.text == "\n".join(f"{m.sender}: {m.content}" if several else m.content for m in turn.messages)
        given.append((asyncio.get_running_loop().time(), [f"{m.sender}: {m.content}" for m in turn.messages]))
        yield ""

    return {**BRAINS, "listener": listener}


async def meeting_of(s: AsyncAgentService) -> str:
    await s.agents.create("ann", "ear", profile="listener")
    await team(s, "d", "e")
    people = ["agent:ear", "agent:d", "agent:e"]
    meeting = await s.meetings.call("ann", "news", required=people)
    await seen(s, meeting, lambda view: running(view) and len(view.present) == 4)
    return meeting


async def say(s: AsyncAgentService, meeting: str, number: int, by: str | None = None) -> float:
    await s.meetings.say("ann", meeting, str(number), by=by)
    return asyncio.get_running_loop().time()


def test_five_quick_messages_are_one_ordered_batch() -> None:
    given: Given = []

    async def story(s: AsyncAgentService) -> None:
        meeting, last = await meeting_of(s), 0.0
        for number in range(5):
            last = await say(s, meeting, number, by=("agent:d", "agent:e")[number % 2])
            await asyncio.sleep(0.1)
        await asyncio.sleep(5)
        [(when, words)] = given
        assert words == [f"agent:ann/{'de'[number % 2]}: {number}" for number in range(5)]
        assert 0.4 <= when - last <= 1.0  # after a quiet time of half a second

    play(story, listening(given))  # type: ignore[arg-type]


def test_steady_traffic_is_delivered_within_the_maximum() -> None:
    given: Given = []

    async def story(s: AsyncAgentService) -> None:
        meeting = await meeting_of(s)
        said: dict[str, float] = {}
        for number in range(30):
            said[str(number)] = await say(s, meeting, number, by="agent:d")
            await asyncio.sleep(0.3)  # never quiet for long enough
        await asyncio.sleep(5)
        words = [word.rpartition(" ")[2] for _, batch in given for word in batch]
        assert words == [str(number) for number in range(30)]  # all of them, in order, each once
        late = max(when - said[word.rpartition(" ")[2]] for when, batch in given for word in batch)
        assert 1.0 < late <= 2.3
        assert 4 <= len(given) <= 8

    play(story, listening(given))  # type: ignore[arg-type]


def test_a_persons_message_is_handed_over_at_once_with_what_waits() -> None:
    given: Given = []

    async def story(s: AsyncAgentService) -> None:
        meeting = await meeting_of(s)
        await say(s, meeting, 1, by="agent:d")
        await asyncio.sleep(0.1)
        spoken = await say(s, meeting, 2)
        await asyncio.sleep(5)
        [(when, words)] = given
        assert words == ["agent:ann/d: 1", "user:ann: 2"]
        assert when - spoken < 0.2

    play(story, listening(given))  # type: ignore[arg-type]


def test_a_persons_message_alone_is_handed_over_at_once() -> None:
    given: Given = []

    async def story(s: AsyncAgentService) -> None:
        meeting = await meeting_of(s)
        spoken = await say(s, meeting, 1)
        await asyncio.sleep(5)
        [(when, words)] = given
        assert (words, when - spoken < 0.2) == (["user:ann: 1"], True)

    play(story, listening(given))  # type: ignore[arg-type]


def test_words_that_come_during_a_turn_are_the_next_batch() -> None:
    given: Given = []

    async def slow(turn: Turn) -> AsyncIterator[str]:
        given.append((0.0, [m.content for m in turn.messages]))
        await asyncio.sleep(3)
        yield ""

    async def story(s: AsyncAgentService) -> None:
        meeting = await meeting_of(s)
        for number in range(4):
            await say(s, meeting, number)
            await asyncio.sleep(0.5)
        await asyncio.sleep(10)
        assert [words for _, words in given] == [["0"], ["1", "2", "3"]]

    play(story, {**BRAINS, "listener": slow})


def test_a_persons_message_is_not_held_back_by_what_agents_say_after_it() -> None:
    given: Given = []

    async def slow(turn: Turn) -> AsyncIterator[str]:
        given.append((asyncio.get_running_loop().time(), [m.content for m in turn.messages]))
        await asyncio.sleep(3)
        yield ""

    async def story(s: AsyncAgentService) -> None:
        meeting = await meeting_of(s)
        await say(s, meeting, 0)
        await asyncio.sleep(1)
        await say(s, meeting, 1)
        await asyncio.sleep(1.9)
        await say(s, meeting, 2, by="agent:d")  # a moment before the turn about the person's begins
        await asyncio.sleep(10)
        [(began, first), (later, second)] = given
        assert (first, second) == (["0"], ["1", "2"])
        assert later - began < 3.2

    play(story, {**BRAINS, "listener": slow})


def test_of_a_batch_no_speaker_stands_for_the_others() -> None:
    given: list[tuple[str, tuple[str, ...]]] = []
    refused: list[str] = []

    async def reader(turn: Turn) -> AsyncIterator[str]:
        given.append((turn.text, turn.senders))
        try:
            assert [turn.sender] == list(turn.senders or [""])
        except roost.Invalid as error:
            refused.append(str(error))
        await asyncio.sleep(3)  # what is said meanwhile is its next batch
        yield ""

    async def story(s: AsyncAgentService) -> None:
        meeting = await meeting_of(s)
        await say(s, meeting, 1)
        await asyncio.sleep(1)
        await say(s, meeting, 2, by="agent:d")
        await say(s, meeting, 3)
        await say(s, meeting, 4, by="agent:e")
        await asyncio.sleep(5)
        assert given == [
            ("1", ("user:ann",)),
            ("agent:ann/d: 2\nuser:ann: 3\nagent:ann/e: 4", ("agent:ann/d", "user:ann", "agent:ann/e")),
        ]
        assert refused[0].startswith("the turn has several senders: agent:ann/d, user:ann")
        assert "turn.messages" in refused[0]

    play(story, {**BRAINS, "listener": reader})


def test_the_example_in_the_guide_loses_no_message_of_a_person_who_speaks_first() -> None:
    """The first agent answers the person before the second one has begun its turn."""
    page = Path(__file__).parents[3] / "docs" / "guides" / "meetings.md"
    source = page.read_text().partition("```python\n")[2].partition("service =")[0]
    example: dict[str, Any] = {}
    exec(source, example)
    batches: list[list[str]] = []

    async def late(turn: Turn) -> AsyncIterator[str]:
        if not turn.messages:
            return
        if turn.agent_id == "ear" and not batches:
            batches.append([m.sender for m in turn.messages])
            await asyncio.sleep(3)  # what is said meanwhile is its next batch
            return
        if turn.agent_id == "ear":
            batches.append([m.sender for m in turn.messages])
        async for words in example["helper"](turn):
            yield words

    async def story(s: AsyncAgentService) -> None:
        meeting = await meeting_of(s)
        await s.agents.configure("ann", "d", profile="listener")
        await say(s, meeting, 0, by="agent:e")
        await asyncio.sleep(1)
        await s.meetings.say("ann", meeting, "It leaks.")
        await asyncio.sleep(10)
        words = [word.text for word in (await s.meetings.view("ann", meeting)).words]
        assert batches[1] == ["user:ann", "agent:ann/d"]
        assert words == ["0", "It leaks.", "d has heard: It leaks.", "ear has heard: It leaks."]

    play(story, {**BRAINS, "listener": late})
