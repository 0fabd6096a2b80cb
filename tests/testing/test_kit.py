"""The parts of the kit by themselves: the clock, scripts, roosts in one line, waiting, the network."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

import roost.testing
from roost.testing import Clock, Network, aeventually, eventually, insist, script, wait


def test_a_clock_stands_still_until_it_is_moved() -> None:
    clock = Clock()
    assert clock.time == datetime(2027, 1, 15, 8, tzinfo=UTC)
    clock.advance(60)
    clock.jump(-3600)
    assert (clock.time, clock.monotonic()) == (datetime(2027, 1, 15, 7, 1, tzinfo=UTC), 60)
    clock.set(datetime(2030, 1, 1, tzinfo=UTC))
    assert (clock.time, clock.monotonic()) == (datetime(2030, 1, 1, tzinfo=UTC), 60)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)


def test_a_roost_in_one_line_leaves_nothing_behind() -> None:
    before = set(threading.enumerate())
    brain = script("hello", "world")
    with roost.testing.roost(brain) as service:
        talk = service.create_talk_session("ann")
        answers = []
        for text in ("one", "two", "three"):
            service.add_message("ann", talk, text)
            answers.append(list(service.stream_messages("ann", talk))[-1].message.content)
        folder = Path(service.roost.context.store.database.path).parent  # type: ignore[attr-defined]
    assert answers == ["hello", "world", "world"]
    assert [given.text for given in brain.given] == ["one", "two", "three"]
    assert not folder.exists()
    assert set(threading.enumerate()) <= before


def test_a_script_fails_waits_matches_and_keeps_what_it_was_given() -> None:
    brain = script(RuntimeError("no"), ["slow", wait(0.01), "ly"], matching={"*weather*": lambda turn: turn.text[:4]})

    async def story() -> list[str | None]:
        async with roost.testing.aroost(brain) as service:
            await service.agents.create("ann", "d", retry_delay=0.01)
            results = []
            for text in ("work", "what weather"):
                task = await service.tasks.send("ann", "d", text)
                results.append((await service.tasks.wait("ann", task)).result)
            return results

    assert asyncio.run(story()) == ["slowly", "what"]
    assert [(given.text, given.attempt, given.ended) for given in brain.given] == [
        ("work", 1, False),
        ("work", 2, True),
        ("what weather", 1, True),
    ]
    assert {(given.kind, given.sender, given.agent_id) for given in brain.given} == {("task", "user:ann", "d")}


def test_a_script_without_a_reply_says_so() -> None:
    with roost.testing.simulated(script(matching={"hello": "world"})) as simulation:
        simulation.run(simulation.service.agents.create("ann", "d", max_attempts=1))
        task = simulation.run(simulation.service.tasks.send("ann", "d", "what?"))
        assert simulation.run(simulation.service.tasks.wait("ann", task)).status == "failed"


def test_waiting_gives_the_answer_or_says_what_was_seen() -> None:
    answers = iter([0, 0, 3])
    assert eventually(lambda: next(answers)) == 3
    with pytest.raises(AssertionError, match=r"not so within 0\.02 s; last seen: \[\]"):
        eventually(list, within=0.02)

    def fails() -> bool:
        raise roost.NotFound("there is no such thing")

    with pytest.raises(AssertionError, match="last seen: NotFound: there is no such thing"):
        eventually(fails, within=0.02)


def test_waiting_with_coroutines_takes_simulated_time() -> None:
    async def story() -> int:
        loop = asyncio.get_running_loop()
        latest = loop.time() + 600

        async def late() -> bool:
            return loop.time() > latest

        await aeventually(late, within=1_000)
        with pytest.raises(AssertionError, match="last seen: 0"):
            await aeventually(lambda: 0, within=1_000)
        return round(loop.time() - latest)

    with roost.testing.simulated() as simulation:
        assert simulation.run(story()) == 1_000


def test_insisting_ends_when_the_store_is_back_or_the_time_is_over() -> None:
    refused = [roost.Unavailable("not now"), roost.Unavailable("not now")]

    async def act() -> str:
        if refused:
            raise refused.pop()
        return "done"

    async def refuse() -> str:
        raise roost.Unavailable("never")

    async def story() -> str:
        with pytest.raises(roost.Unavailable, match="never"):
            await insist(refuse, within=10)
        return await insist(act)

    with roost.testing.simulated() as simulation:
        assert simulation.run(story()) == "done"


# --- the network ------------------------------------------------------------------------------------


def heard(network: Network[str, int], count: int = 200) -> list[int]:
    found: list[int] = []
    network.join("bob", lambda sender, message: found.append(message))
    network.join("ann", lambda sender, message: None)
    for number in range(count):
        network.send("ann", "bob", number)
    network.run()
    return found


def test_a_network_without_faults_delivers_all_in_order() -> None:
    assert heard(Network(seed=1, delay=(0.0, 5.0))) == list(range(200))


def test_a_network_loses_doubles_and_reorders_by_its_seed() -> None:
    def run(seed: int) -> list[int]:
        return heard(Network(seed=seed, lose=0.2, double=0.2, reorder=0.3))

    found = run(1)
    assert found == run(1) != run(2)
    assert 100 < len(set(found)) < 200 < len(found) + 40
    assert len(found) > len(set(found))
    assert found != sorted(found)


def test_a_network_is_cut_one_way_or_both_and_heals() -> None:
    network: Network[str, str] = Network(seed=1)
    said: list[str] = []
    for name in ("ann", "bob", "cem"):
        network.join(name, lambda sender, message, name=name: said.append(f"{sender}>{name}: {message}"))  # type: ignore[misc]
    network.cut("ann", "bob", both_ways=False)
    network.send("ann", "bob", "lost")
    network.send("bob", "ann", "there")
    network.run()
    network.isolate("cem")
    network.broadcast("bob", "hello")
    network.run()
    network.heal("cem")
    network.broadcast("cem", "back")
    network.send("ann", "bob", "lost")
    network.run()
    network.heal()
    network.send("ann", "bob", "healed")
    network.run()
    assert sorted(said) == ["ann>bob: healed", "bob>ann: hello", "bob>ann: there", "cem>ann: back", "cem>bob: back"]


def test_a_network_that_talks_in_circles_is_stopped() -> None:
    network: Network[str, str] = Network(seed=1)
    network.join("ann", lambda sender, message: network.send("ann", "bob", message))
    network.join("bob", lambda sender, message: network.send("bob", "ann", message))
    network.send("ann", "bob", "ping")
    network.run(5.0)
    assert network.clock.monotonic() == 5.0
    assert network.underway == 1
    with pytest.raises(AssertionError, match="in an endless loop"):
        network.run(most=1_000)
