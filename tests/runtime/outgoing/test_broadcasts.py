"""M1: one message to many agents: to all of the owner's, to a group, to a filter."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Limits, Turn
from roost.runtime.dispatch import dispatcher as hall
from roost.testing import Faults, Simulation, all_invariants, insist, simulated
from tests.runtime.agents.test_agents import FAST, done
from tests.runtime.conftest import QUICK, World, becomes

pytestmark = pytest.mark.order

Heard = dict[str, list[str]]


def hearing(heard: Heard) -> roost.Brain:
    async def hears(turn: Turn) -> AsyncIterator[str]:
        heard.setdefault(str(turn.agent_id), []).append(f"{turn.text} from {turn.sender}")
        yield ""

    return hears


async def calls(turn: Turn) -> AsyncIterator[str]:
    yield f"told {await turn.broadcast(turn.text)}"


async def crew(service: AsyncAgentService, *names: str, profile: str = "hears", **config: Any) -> None:
    await service.agents.create_many("ann", names, profile=profile, **FAST, **config)


async def all_done(service: AsyncAgentService) -> None:
    async def left() -> int:
        return sum(agent.queue_depth for agent in await service.agents.list("ann"))

    await becomes(left, lambda depth: depth == 0)


def test_it_reaches_all_but_the_sender_and_each_once(world: World) -> None:
    heard: Heard = {}

    async def story(service: AsyncAgentService) -> str | None:
        await crew(service, "d", profile="calls")
        await crew(service, "a", "b", "c")
        await service.agents.create("bob", "x", profile="hears")
        told = await done(service, "hello")
        await all_done(service)
        return told.result

    assert world({"calls": calls, "hears": hearing(heard)}, story) == "told 3"
    assert heard == {name: ["hello from agent:ann/d"] for name in "abc"}


def test_a_broadcast_reaches_a_group_or_a_filter(world: World) -> None:
    heard: Heard = {}

    async def story(service: AsyncAgentService) -> list[int]:
        await crew(service, "w-1", "w-2", "w.3", groups=["night", "day"])
        await crew(service, "x", groups=["day", "a%b_"])
        await crew(service, "y", profile="other")
        await service.agents.configure("ann", "w-2", groups=["day"])
        await service.agents.sleep("ann", "w-1")
        tell = service.agents.broadcast
        told = [
            await tell("ann", "all"),
            await tell("ann", "night", group="night"),
            await tell("ann", "day", group="day"),
            await tell("ann", "odd", group="a%b_"),
            await tell("ann", "case", group="DAY"),
            await tell("ann", "ids", ids="w*"),
            await tell("ann", "profile", profile="other"),
            await tell("ann", "state", state="sleeping"),
            await tell("ann", "both", group="day", ids="*2"),
            await tell("ann", "none", group="nobody"),
            await tell("bob", "bob's"),
        ]
        await service.agents.wake("ann", "w-1")
        await all_done(service)
        return told

    brain = hearing(heard)
    assert world({"hears": brain, "other": brain}, story) == [5, 2, 4, 1, 0, 3, 1, 1, 1, 0, 0]
    assert {name: [text.split()[0] for text in texts] for name, texts in heard.items()} == {
        "w-1": ["all", "night", "day", "ids", "state"],
        "w-2": ["all", "day", "ids", "both"],
        "w.3": ["all", "night", "day", "ids"],
        "x": ["all", "day", "odd"],
        "y": ["all", "profile"],
    }


def test_recipients_follow_changes_of_agents(world: World) -> None:
    async def story(service: AsyncAgentService) -> list[int]:
        await crew(service, "a", "b")
        tell = partial(service.agents.broadcast, "ann", "hello", group="night")
        told = [await tell()]
        await crew(service, "c", groups=["night"])
        told += [await tell(), await tell()]
        await service.agents.configure("ann", "b", groups=["night"])
        told.append(await tell())
        await service.agents.delete("ann", "c")
        told.append(await tell())
        await all_done(service)
        return told

    assert world({"hears": hearing({})}, story) == [0, 1, 1, 2, 1]


def test_it_keeps_the_order_of_all_that_is_sent_and_a_retry_holds_the_lane(world: World) -> None:
    heard: Heard = {}

    async def mixes(turn: Turn) -> AsyncIterator[str]:
        for number in range(0, 9, 3):
            await turn.send("agent:a", f"{number}")
            await turn.broadcast(f"{number + 1}")
            await turn.send("agent:a", f"{number + 2}")
        yield ""

    async def stumbles(turn: Turn) -> AsyncIterator[str]:
        if turn.attempt == 1 and turn.text in "14":
            raise ValueError
        heard.setdefault(str(turn.agent_id), []).append(turn.text)
        yield ""

    async def story(service: AsyncAgentService) -> None:
        await crew(service, "d", profile="mixes")
        await crew(service, "a", "b", profile="stumbles", max_concurrent_tasks=5)
        await done(service, "go")
        await all_done(service)

    world({"mixes": mixes, "stumbles": stumbles}, story)
    assert heard == {"a": [str(number) for number in range(9)], "b": ["1", "4", "7"]}


def test_one_that_is_full_is_not_counted_and_has_a_dead_letter(world: World) -> None:
    heard: Heard = {}

    async def story(service: AsyncAgentService) -> tuple[int, list[tuple[str | None, str, str]]]:
        await crew(service, "full", inbox_limit=1, start=False)
        await crew(service, "a", "b")
        await service.tasks.send("ann", "full", "first")
        told = await service.agents.broadcast("ann", "hello")
        letters = await service.dead_letters.list("ann")
        await service.agents.start("ann", "full")
        await all_done(service)
        await service.dead_letters.retry_all("ann")
        await all_done(service)
        return told, [(letter.agent_id, letter.fault, letter.reason) for letter in letters]

    told, letters = world({"hears": hearing(heard)}, story)
    assert (told, letters) == (2, [("full", "full", "the inbox of the agent 'full' was full")])
    assert heard["full"] == ["first from user:ann", "hello from user:ann"]
    assert heard["a"] == heard["b"] == ["hello from user:ann"]


def test_a_sleeping_agent_receives_the_broadcast_when_it_wakes(world: World) -> None:
    heard: Heard = {}

    async def story(service: AsyncAgentService) -> tuple[str, int]:
        await crew(service, "a")
        await service.agents.sleep("ann", "a")
        await service.agents.broadcast("ann", "hello", priority="urgent")
        asleep = await service.agents.get("ann", "a")
        await service.agents.wake("ann", "a")
        await all_done(service)
        return asleep.state, asleep.queue_depth

    assert world({"hears": hearing(heard)}, story) == ("sleeping", 1)
    assert heard == {"a": ["hello from user:ann"]}


def test_agents_that_tell_each_other_without_end_are_cut_off() -> None:
    async def echoes(turn: Turn) -> AsyncIterator[str]:
        await turn.broadcast("and on")
        yield ""

    async def story(service: AsyncAgentService) -> set[str]:
        await crew(service, "a", "b", "c", profile="echoes")
        await service.agents.broadcast("ann", "go")
        await all_done(service)
        return {letter.fault for letter in await service.dead_letters.list("ann")}

    with simulated(echoes, brains={"echoes": echoes}, limits=Limits(hops=4)) as simulation:
        assert simulation.run(story(simulation.service)) == {"hops"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": ""}, "must not be empty"),
        ({"text": "x", "priority": "loud"}, "priority 'loud' is not known"),
        ({"text": "x", "state": "dead"}, "state 'dead' is not known"),
        ({"text": "x", "profile": "nobody"}, "nobody"),
        ({"text": "x", "group": 5}, "the group must be a text"),
        ({"text": "x", "ids": ""}, "pattern of agent ids must not be empty"),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_sent(options: dict[str, Any], message: str) -> None:
    async def story(service: AsyncAgentService) -> int:
        await service.agents.create("ann", "a", start=False)
        with pytest.raises(roost.Invalid, match=message):
            await service.agents.broadcast("ann", **options)
        return (await service.agents.get("ann", "a")).queue_depth

    with simulated(calls) as simulation:
        assert simulation.run(story(simulation.service)) == 0


@pytest.mark.parametrize("groups", ["night", [""], [5], [str(n) for n in range(101)]])
def test_groups_that_cannot_be_used_are_refused(groups: Any) -> None:
    with simulated(calls) as simulation, pytest.raises(roost.Invalid, match="group"):
        simulation.run(simulation.service.agents.create("ann", "a", groups=groups))


def test_to_too_many_is_refused_and_to_a_hundred_is_a_few_writes() -> None:
    async def story(service: AsyncAgentService, simulation: Simulation) -> int:
        await service.agents.create_many("ann", [f"a{n}" for n in range(100)], start=False, groups=["some"])
        await service.agents.create("ann", "b", start=False)
        with pytest.raises(roost.LimitReached, match=r"may go to 100 agents.*name a group"):
            await service.agents.broadcast("ann", "hello")
        assert simulation.database is not None
        before = simulation.database.commits
        assert await service.agents.broadcast("ann", "hello", group="some") == 100
        return simulation.database.commits - before

    with simulated(calls, limits=Limits(agents_per_broadcast=100)) as simulation:
        assert simulation.run(story(simulation.service, simulation)) < 5


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_at_any_commit_delivers_the_broadcast_once(tmp_path: Path, side: str) -> None:
    async def tells(turn: Turn) -> AsyncIterator[str]:
        first = await turn.broadcast("one")
        await asyncio.sleep(0.2)  # long enough for it to leave on the way
        yield f"{first} and {await turn.broadcast('two')}"

    async def counts(turn: Turn) -> AsyncIterator[str]:
        turn.state[turn.text] = turn.state.get(turn.text, 0) + 1
        yield ""

    for commit in range(1, 9):
        folder = tmp_path / str(commit)
        folder.mkdir()
        brains: dict[str, roost.Brain] = {"tells": tells, "counts": counts}
        simulation = Simulation(folder, seed=commit)

        async def begin(service: AsyncAgentService) -> None:
            await crew(service, "d", profile="tells")
            await crew(service, "a", "b", profile="counts")

        async def go(service: AsyncAgentService) -> str | None:
            task = await service.tasks.send("ann", "d", "go", key="once")
            result = (await service.tasks.wait("ann", task, timeout=60)).result
            await all_done(service)
            return result

        simulation.run(begin(simulation.start(brains, QUICK)))
        database = simulation.database
        assert database is not None
        setattr(database, f"crash_{side}", database.commits + commit)
        try:
            simulation.run(go(simulation.service))
            simulation.crash()
        except KeyboardInterrupt:  # the power was cut
            pass
        assert simulation.run(go(simulation.start(brains, QUICK))) == "2 and 2", f"crashed {side} commit {commit}"
        for name in "ab":
            state = simulation.run(simulation.service.agents.inspect("ann", name)).turn_state
            assert state == {"one": 1, "two": 1}, f"crashed {side} commit {commit}"
        simulation.crash()


@pytest.mark.parametrize("seed", range(12))
def test_whatever_goes_wrong_nothing_is_lost_doubled_or_overtaken(seed: int) -> None:
    async def leads(turn: Turn) -> AsyncIterator[str]:
        for number in range(4):
            await turn.broadcast(f"{turn.text} {number}")
            await turn.send("agent:w0", f"{turn.text} {number} for you")
            await asyncio.sleep(0.03)
        yield await turn.ask("agent:w1", f"{turn.text} done?", deadline=300.0)

    async def works(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(0.01)
        yield f"yes, {turn.text}"

    async def story(service: AsyncAgentService) -> list[str | None]:
        config: dict[str, Any] = {"max_attempts": 60, "retry_delay": 0.05}
        for names, profile in ((["lead"], "leads"), ([f"w{n}" for n in range(4)], "works")):
            with contextlib.suppress(roost.Conflict):
                await insist(partial(service.agents.create_many, "ann", names, profile=profile, **config))
        plans = [f"plan {n}" for n in range(2)]
        tasks = [await insist(partial(service.tasks.send, "ann", "lead", plan, key=plan)) for plan in plans]
        return [(await service.tasks.wait("ann", task)).result for task in tasks]

    faults = Faults.some(seed)
    with Simulation(seed=seed, faults=faults) as simulation:
        told = simulation.play(story, {"leads": leads, "works": works}, QUICK)
        assert told == [f"yes, plan {n} done?" for n in range(2)]
        all_invariants(simulation)
        bodies = [turn.text for turn in simulation.turns if turn.agent_id == "w3" and turn.ended]
        assert {f"plan {n} {k}" for n in range(2) for k in range(4)} <= set(bodies)


def test_what_finds_no_room_in_ram_is_not_counted_as_tried(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hall, "IN_RAM", 1)
    attempts: list[int] = []

    async def floods(turn: Turn) -> AsyncIterator[str]:
        for number in range(300):
            await turn.send("agent:a", str(number))
        await asyncio.sleep(0.2)  # long enough for them to leave on the way
        yield ""

    async def counts(turn: Turn) -> AsyncIterator[str]:
        attempts.append(turn.attempt)
        await asyncio.sleep(0.3 if turn.text == "first" else 0.0)
        yield ""

    async def story(service: AsyncAgentService) -> int:
        await crew(service, "d", profile="floods")
        await crew(service, "a", profile="counts", max_attempts=1)
        await service.tasks.send("ann", "a", "first")
        await done(service, "go")
        await all_done(service)
        return len(await service.dead_letters.list("ann"))

    assert world({"floods": floods, "counts": counts}, story) == 0
    assert attempts == [1] * 301
