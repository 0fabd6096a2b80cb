"""A17: memories are the agent's own, can be found again, and are written with the turn that adds them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Simulation
from tests.conftest import Open
from tests.runtime.conftest import QUICK, World, ended, until

TINY = replace(QUICK, memories_per_agent=2, chars_per_memory=10)


def texts(found: Any) -> list[str]:
    return [one.text for one in found]


async def scribe(turn: Turn) -> AsyncIterator[str]:
    """Follows its task: `remember KEY TEXT`, `note TEXT`, `forget KEY`, `recall QUERY`; says what it recalls."""
    for command in turn.text.splitlines():
        verb, _, rest = command.partition(" ")
        if verb == "remember":
            key, _, text = rest.partition(" ")
            await turn.remember(text, key=key)
        elif verb == "note":
            await turn.remember(rest)
        elif verb == "forget":
            yield f"{await turn.forget(rest)}; "
        elif verb == "fail":
            raise RuntimeError("it was to fail")
        else:
            yield " | ".join(texts(await turn.recall(rest))) + "; "


BRAINS: dict[str, roost.Brain] = {"scribe": scribe}


async def told(service: AsyncAgentService, *commands: str, agent: str = "d") -> str:
    task = await service.tasks.send("ann", agent, "\n".join(commands))
    done = await service.tasks.wait("ann", task, timeout=20)
    return (done.result or "").strip("; ") if done.status == "done" else f"{done.status}: {done.error}"


async def make(service: AsyncAgentService, **config: Any) -> None:
    await service.agents.create("ann", "d", profile="scribe", **{"retry_delay": 0.01, "max_attempts": 2, **config})


def test_what_a_turn_remembers_is_recalled_by_a_later_one_after_a_restart_too(world: World) -> None:
    async def first(service: AsyncAgentService) -> None:
        await make(service)
        await told(service, "note Ann likes green", "note Bob likes blue")

    async def second(service: AsyncAgentService) -> tuple[str, str]:
        return await told(service, "recall what does ann like, green?"), await told(service, "recall")

    world(BRAINS, first)
    assert world(BRAINS, second) == ("Ann likes green", "Bob likes blue | Ann likes green")


def test_a_turn_sees_what_it_has_remembered_and_forgotten_itself_as_those_after_it_do(world: World) -> None:
    before = ["remember a green door", "remember b blue green", "remember c a door"]
    changes = [
        "remember a red",
        "remember e green blue sky",
        "forget b",
        "forget e",
        "remember f green door",
        "forget x",
    ]

    async def story(service: AsyncAgentService) -> tuple[list[str], list[str]]:
        await make(service)
        await told(service, *before)
        looks = ["recall", "recall green door", "recall blue", "recall ?!"]
        inside = await told(service, *changes, *looks)
        after = await told(service, *looks)
        return inside.split("; "), after.split("; ")

    inside, after = world(BRAINS, story)
    assert inside[:3] == ["True", "True", "False"]
    assert inside[3:] == after
    assert after[:2] == ["green door | red | a door", "green door | a door"]


def test_as_many_are_recalled_as_were_asked_for_whatever_the_turn_has_forgotten(world: World) -> None:
    async def picky(turn: Turn) -> AsyncIterator[str]:
        await turn.forget("c")
        await turn.remember("nothing like it", key="b")
        yield " | ".join(texts(await turn.recall("green", limit=2)))

    async def story(service: AsyncAgentService) -> str:
        await service.agents.create("ann", "d", profile="picky")
        for key in "wxabc":
            await service.agents.remember("ann", "d", f"green {key}", key=key)
        return await told(service, "x")

    assert world({"picky": picky}, story) == "green a | green x"


def test_the_same_key_replaces(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[str, list[str]]:
        await make(service)
        await told(service, "remember ann green", "remember ann blue")
        await told(service, "remember ann red")
        return await told(service, "recall"), texts(await service.agents.memories("ann", "d", "green blue red"))

    assert world(BRAINS, story) == ("red", ["red"])


def test_a_try_that_fails_leaves_nothing_and_the_next_remembers_once(world: World) -> None:
    tries: list[int] = []

    async def clumsy(turn: Turn) -> AsyncIterator[str]:
        tries.append(turn.attempt)
        await turn.remember(f"try {turn.attempt}")
        await turn.forget("kept")
        await turn.mail("user:ann", "x", "y")
        await asyncio.sleep(0.2)  # long enough for what it sends to leave before it ends
        if turn.attempt < 3:
            raise RuntimeError("it was to fail")
        yield "done"

    async def story(service: AsyncAgentService) -> tuple[list[str], list[str]]:
        await make(service, max_attempts=3)
        await service.agents.configure("ann", "d", profile="clumsy")
        await service.agents.remember("ann", "d", "kept so far", key="kept")
        task = await service.tasks.send("ann", "d", "x")
        await until(lambda: len(tries) == 3)
        between = texts(await service.agents.memories("ann", "d"))
        await service.tasks.wait("ann", task, timeout=20)
        return between, texts(await service.agents.memories("ann", "d"))

    assert world({**BRAINS, "clumsy": clumsy}, story) == (["kept so far"], ["try 3"])


def test_a_turn_that_is_stopped_remembers_nothing(world: World) -> None:
    begun: list[bool] = []

    async def slow(turn: Turn) -> AsyncIterator[str]:
        await turn.remember("too early")
        begun.append(True)
        await asyncio.sleep(60)
        yield "never"

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="slow")
        await service.tasks.send("ann", "d", "x")
        await until(lambda: begun)
        await service.agents.stop("ann", "d")
        return texts(await service.agents.memories("ann", "d"))

    assert world({"slow": slow}, story) == []


def test_an_agent_remembers_in_its_talks_as_well(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[str, str]:
        await make(service)
        talk = await service.create_talk_session("ann", agent="d")
        await service.add_message("ann", talk, "note said in a talk\nrecall talk")
        first = (await ended(service, talk))[-1].content
        return first, await told(service, "recall talk")

    assert world(BRAINS, story) == ("said in a talk; ", "said in a talk")


def test_a_talk_without_an_agent_says_that_only_an_agent_can_remember(world: World) -> None:
    refusals: list[str] = []

    async def curious(turn: Turn) -> AsyncIterator[str]:
        for asked in (turn.remember("x"), turn.recall("x"), turn.forget("x")):
            try:
                await asked
            except roost.Invalid as error:
                refusals.append(str(error))
        yield "tried"

    async def story(service: AsyncAgentService) -> str:
        talk = await service.create_talk_session("ann", profile="curious")
        await service.add_message("ann", talk, "go on")
        return (await ended(service, talk))[-1].content

    assert world({"curious": curious}, story) == "tried"
    assert refusals == ["only an agent can remember, and this turn does not belong to one"] * 3


def test_the_bounds_hold_inside_a_turn_with_what_it_has_noted_itself(world: World) -> None:
    refused: list[str] = []

    async def greedy(turn: Turn) -> AsyncIterator[str]:
        await turn.remember("two", key="b")
        for text, key in (("three", "c"), ("x" * 11, "b"), ("", "b"), ("four", "a\nb")):
            try:
                await turn.remember(text, key=key)
            except (roost.LimitReached, roost.Invalid) as error:
                refused.append(str(error))
        await turn.remember("new", key="a")
        await turn.forget("b")
        await turn.remember("three", key="c")
        yield "done"

    async def story(service: AsyncAgentService) -> list[str]:
        await make(service)
        await service.agents.remember("ann", "d", "one", key="a")
        await service.agents.configure("ann", "d", profile="greedy")
        assert await told(service, "x") == "done"
        return texts(await service.agents.memories("ann", "d"))

    assert world({**BRAINS, "greedy": greedy}, story, TINY) == ["three", "new"]
    assert [words in sentence for words, sentence in zip(_REFUSALS, refused, strict=True)] == [True] * 4


_REFUSALS = (
    "has 2 memories, which is the limit",
    "11 characters, and 10 are allowed",
    "must not be empty",
    "must be printable",
)


def test_many_turns_at_once_each_remember_what_is_theirs(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[list[str], int]:
        await make(service, max_concurrent_tasks=20)
        tasks = [await service.tasks.send("ann", "d", f"note number {n}\nremember last {n}") for n in range(40)]
        for task in tasks:
            await service.tasks.wait("ann", task, timeout=20)
        found = await service.agents.memories("ann", "d", "number")
        return texts(found), (await service.agents.inspect("ann", "d")).memories

    found, count = world(BRAINS, story)
    assert sorted(found) == sorted(f"number {n}" for n in range(40))
    assert count == 41


def test_the_owner_sees_edits_and_pages_through_what_is_remembered(world: World) -> None:
    async def story(service: AsyncAgentService) -> None:
        await make(service)
        await told(service, "remember a green", "note blue")
        made = await service.agents.remember("ann", "d", "green and blue")
        assert await told(service, "recall") == "green and blue | blue | green"
        whole = await service.agents.memories("ann", "d")
        assert [one.created for one in whole] == sorted((one.created for one in whole), reverse=True)
        assert await service.agents.memories("ann", "d", limit=1) == whole[:1] == [made]
        assert await service.agents.memories("ann", "d", before=made.key) == whole[1:]
        assert texts(await service.agents.memories("ann", "d", "GREEN", before=made.key)) == ["green"]
        assert [await service.agents.forget("ann", "d", "a") for _ in range(2)] == [True, False]
        await service.agents.remember("ann", "d", "red", key=made.key)
        assert await told(service, "recall") == "red | blue"

    world(BRAINS, story)


def test_what_is_wrong_is_refused_and_changes_nothing(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[str]:
        agents = service.agents
        await make(service)
        await agents.remember("ann", "d", "one", key="a")
        for wrong in ("", "x" * 11, "a\0b", "\ud800"):
            with pytest.raises(roost.Invalid):
                await agents.remember("ann", "d", wrong)
        for key in ("", "a\nb", "x" * 201):
            with pytest.raises(roost.Invalid, match="the key"):
                await agents.remember("ann", "d", "x", key=key)
            with pytest.raises(roost.Invalid, match="the key"):
                await agents.forget("ann", "d", key)
        for limit in (0, 1_001, "5"):
            with pytest.raises(roost.Invalid, match="the limit"):
                await agents.memories("ann", "d", limit=limit)  # type: ignore[arg-type]
        await agents.remember("ann", "d", "two")
        with pytest.raises(roost.LimitReached, match="have it forget some first"):
            await agents.remember("ann", "d", "three")
        return texts(await agents.memories("ann", "d"))

    assert world(BRAINS, story, TINY) == ["two", "one"]


def test_a_deleted_agent_is_forgotten_with_all_it_remembered(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[str]:
        await make(service)
        await told(service, "note a secret")
        await service.agents.delete("ann", "d")
        with pytest.raises(roost.NotFound):
            await service.agents.memories("ann", "d")
        await make(service)
        return [await told(service, "recall", "recall secret"), *texts(await service.agents.memories("ann", "d"))]

    assert world(BRAINS, story) == [""]


def test_what_is_forgotten_is_not_in_the_file_any_more(service: Open, tmp_path: Path) -> None:
    opened = service(BRAINS)
    opened.agents.create("ann", "d")
    opened.agents.remember("ann", "d", "xylophones are hidden", key="secret")
    opened.agents.remember("ann", "d", "something else")
    opened.agents.forget("ann", "d", "secret")
    opened.close()
    assert not any(b"xylophone" in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


KEYS = st.sampled_from("abc")
TEXTS = st.lists(st.sampled_from(["green", "BLUE", "the", "café", "日本", "🎉", "?!"]), min_size=1, max_size=4).map(
    " ".join
)
CHANGES = st.lists(st.tuples(KEYS, st.one_of(TEXTS, st.none())), max_size=6)
QUERIES = st.lists(st.one_of(TEXTS, st.text(st.characters(codec=None))), max_size=3)


@settings(max_examples=40)
@given(before=CHANGES, changes=CHANGES, queries=QUERIES, limit=st.integers(1, 4))
def test_a_turn_recalls_what_the_next_turn_will_recall(
    tmp_path_factory: pytest.TempPathFactory, before: list[Any], changes: list[Any], queries: list[str], limit: int
) -> None:
    rounds = [before, changes, []]
    seen: list[list[tuple[roost.Memory, ...]]] = []

    async def changing(turn: Turn) -> AsyncIterator[str]:
        for key, text in rounds[len(seen)]:
            await (turn.forget(key) if text is None else turn.remember(text, key=key))
        seen.append([await turn.recall(query, limit=limit) for query in ("", *queries)])
        yield "done"

    async def story(service: AsyncAgentService) -> list[list[roost.Memory]]:
        await service.agents.create("ann", "d", profile="changing")
        assert [await told(service, "x") for _ in rounds] == ["done"] * 3
        return [await service.agents.memories("ann", "d", query, limit=limit) for query in ("", *queries)]

    simulation = Simulation(tmp_path_factory.mktemp("changing"), seed=1)
    shown = simulation.run(story(simulation.start({"changing": changing}, QUICK)))
    simulation.crash()
    assert seen[1] == seen[2] == [tuple(page) for page in shown]


def test_a_turn_recalls_what_those_before_it_have_remembered_though_they_have_just_ended(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[str]:
        await make(service, start=False)
        sent = [await service.tasks.send("ann", "d", f"remember last {n}\nnote number {n}\nrecall") for n in range(10)]
        sent += [await service.tasks.send("ann", "d", "forget last\nrecall last number")]
        await service.agents.start("ann", "d")
        return [(await service.tasks.wait("ann", task, timeout=20)).result or "" for task in sent]

    *told, end = world(BRAINS, story)
    for n, recalled in enumerate(told):
        numbers = [f"number {n - back}" for back in range(n + 1)]
        assert recalled == " | ".join([numbers[0], str(n), *numbers[1:]][:10]) + "; "
    assert end == "True; " + " | ".join(f"number {9 - back}" for back in range(10)) + "; "
