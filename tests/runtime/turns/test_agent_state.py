"""A11, A17: no change of `turn.state` is lost at default settings, whichever turns of an agent run concurrently."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.hosts.threads import ThreadHost
from roost.runtime.turns.agent_state import AgentState
from roost.runtime.turns.shared_state import SharedState
from tests.runtime.conftest import World, becomes, ended, said, until

pytestmark = pytest.mark.order


async def echo(turn: Turn) -> AsyncIterator[str]:
    yield turn.text


async def state_of(service: AsyncAgentService, agent: str = "d") -> dict[str, Any]:
    return dict((await service.agents.inspect("ann", agent)).turn_state)


async def all_done(service: AsyncAgentService, tasks: list[str]) -> set[str]:
    return {(await service.tasks.wait("ann", task, timeout=60)).status for task in tasks}


def test_twenty_tasks_that_ask_and_then_count_leave_twenty(world: World) -> None:
    asked: list[str] = []

    async def notes_who_asks(turn: Turn) -> AsyncIterator[str]:
        asked.append(turn.text)
        yield "yes"

    async def counts(turn: Turn) -> AsyncIterator[str]:
        await turn.ask("agent:e", turn.text)
        turn.state["n"] = turn.state.get("n", 0) + 1
        turn.state.setdefault("seen", {"texts": []})["texts"].append(turn.text)
        yield str(turn.attempt)

    async def story(service: AsyncAgentService) -> tuple[dict[str, Any], set[str], set[str | None]]:
        await service.agents.create("ann", "d", profile="counts")
        await service.agents.create("ann", "e", profile="notes")
        tasks = [await service.tasks.send("ann", "d", str(number)) for number in range(20)]
        states = await all_done(service, tasks)
        tries = {(await service.tasks.get("ann", task)).result for task in tasks}
        return await state_of(service), states, tries

    kept, states, tries = world({"counts": counts, "notes": notes_who_asks}, story)
    assert kept["n"] == 20
    assert sorted(kept["seen"]["texts"]) == sorted(map(str, range(20)))
    assert (states, tries) == ({"done"}, {"1"})  # to run again is no failed try
    assert sorted(asked) == sorted(map(str, range(20)))  # and asks nothing twice


def test_a_turn_that_runs_again_sends_once_and_repeats_no_step(world: World) -> None:
    stepped: list[str] = []

    async def acts(turn: Turn) -> AsyncIterator[str]:
        before = turn.state.get("n", 0)
        await turn.mail("user:ann", f"from {turn.text}", "hello")
        await turn.step("once", stepped.append, turn.text)
        await asyncio.sleep(0.2)  # what it sends has left, and others count meanwhile
        turn.state["n"] = before + 1
        yield f"{before}"

    async def story(service: AsyncAgentService) -> tuple[int, list[str]]:
        await service.agents.create("ann", "d", profile="acts", max_concurrent_tasks=4)
        await all_done(service, [await service.tasks.send("ann", "d", str(number)) for number in range(4)])
        subjects = sorted(mail.subject for mail in await service.mail.inbox("ann"))
        return (await state_of(service))["n"], subjects

    assert world({"acts": acts}, story) == (4, [f"from {number}" for number in range(4)])
    assert sorted(stepped) == ["0", "1", "2", "3"]


def test_the_runs_that_were_repeated_can_be_seen(world: World) -> None:
    begun: list[str] = []

    async def overlaps(turn: Turn) -> AsyncIterator[str]:
        before = turn.state.get("n", 0)
        begun.append(turn.text)
        await until(lambda: len(begun) >= 2)
        turn.state["n"] = before + 1
        yield "counted"

    async def story(service: AsyncAgentService) -> list[str]:
        await service.agents.create("ann", "d", profile="overlaps", max_concurrent_tasks=2)
        await all_done(service, [await service.tasks.send("ann", "d", str(number)) for number in range(2)])
        return sorted(run.outcome for run in await service.runs.list("ann", agent="d"))

    assert world({"overlaps": overlaps}, story) == ["done", "done", "repeated"]


async def waits(turn: Turn) -> AsyncIterator[str]:
    before = turn.state.get("n", 0)
    await asyncio.sleep(0.05)
    turn.state["n"] = before + 1
    yield "counted"


def test_turns_that_conflict_again_and_again_all_end(world: World) -> None:
    async def story(service: AsyncAgentService) -> tuple[int, set[str]]:
        await service.agents.create("ann", "d", profile="waits", max_concurrent_tasks=12)
        states = await all_done(service, [await service.tasks.send("ann", "d", str(number)) for number in range(12)])
        return (await state_of(service))["n"], states

    assert world({"waits": waits}, story) == (12, {"done"})


def test_turns_that_change_different_names_do_not_run_again(world: World) -> None:
    runs: list[str] = []

    async def notes(turn: Turn) -> AsyncIterator[str]:
        runs.append(turn.text)
        await asyncio.sleep(0.05)
        turn.state[turn.text] = True
        yield "noted"

    async def story(service: AsyncAgentService) -> dict[str, Any]:
        await service.agents.create("ann", "d", profile="notes", max_concurrent_tasks=3)
        await all_done(service, [await service.tasks.send("ann", "d", name) for name in "abc"])
        return await state_of(service)

    assert world({"notes": notes}, story) == {"a": True, "b": True, "c": True}
    assert sorted(runs) == ["a", "b", "c"]


# --- talks -----------------------------------------------------------------------------------------


def count(turn: Turn) -> None:
    turn.state["n"] = turn.state.get("n", 0) + 1
    turn.state.setdefault("nested", {"n": 0})["n"] += 1


class Gate:
    """Turns of talks count, speak, wait for the gate, and count again."""

    def __init__(self) -> None:
        self.open = False
        self.runs = 0

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        self.runs += turn.kind == "talk"
        count(turn)
        if turn.kind == "talk":
            yield "I count"
            while not self.open:  # noqa: ASYNC110 — the story opens it
                await asyncio.sleep(0.005)
            count(turn)
        if "fail" in turn.text:
            raise RuntimeError("as asked")
        yield " done"


async def beside(service: AsyncAgentService, gate: Gate, talks: int, tasks: int, text: str = "go") -> list[str]:
    """Begin turns of talks, do tasks while they wait, let them end; return how the turns ended."""
    await service.agents.create("ann", "d", profile="gate")
    open_talks = [await service.create_talk_session("ann", agent="d") for _ in range(talks)]
    for talk in open_talks:
        await service.add_message("ann", talk, text)
        await said(service, talk, "I count")
    await all_done(service, [await service.tasks.send("ann", "d", str(number)) for number in range(tasks)])
    gate.open = True
    return [str((await ended(service, talk))[-1].status) for talk in open_talks]


@pytest.mark.parametrize(("talks", "tasks"), [(1, 3), (2, 0), (3, 4)])
def test_talks_beside_tasks_and_other_talks_lose_no_count(world: World, talks: int, tasks: int) -> None:
    gate = Gate()

    async def story(service: AsyncAgentService) -> tuple[list[str], dict[str, Any]]:
        return await beside(service, gate, talks, tasks), await state_of(service)

    ends, kept = world({"gate": gate}, story)
    assert ends == ["complete"] * talks
    assert kept == {"n": 2 * talks + tasks, "nested": {"n": 2 * talks + tasks}}
    assert gate.runs == talks  # whose words a person has seen is not run again

    async def later(service: AsyncAgentService) -> dict[str, Any]:
        return await state_of(service)

    assert world({"gate": gate}, later) == kept


def test_a_talk_that_asks_and_is_asked_back_does_not_block(world: World) -> None:
    """The turn of the talk has changed what the task changes for which it waits."""

    async def counts(turn: Turn) -> AsyncIterator[str]:
        count(turn)
        if turn.kind == "talk":
            yield "I ask. "
            yield await turn.ask("agent:e", "well?", deadline=30)
            count(turn)
        else:
            yield f"{turn.state['n']} by then"

    async def passes_on(turn: Turn) -> AsyncIterator[str]:
        yield await turn.ask("agent:d", turn.text, deadline=30)

    async def story(service: AsyncAgentService) -> tuple[str, dict[str, Any]]:
        await service.agents.create("ann", "d", profile="counts")
        await service.agents.create("ann", "e", profile="passes_on")
        talk = await service.create_talk_session("ann", agent="d")
        await service.add_message("ann", talk, "go")
        return (await ended(service, talk))[-1].content, await state_of(service)

    answer, kept = world({"counts": counts, "passes_on": passes_on}, story)
    assert (answer, kept) == ("I ask. 2 by then", {"n": 3, "nested": {"n": 3}})


def test_a_talk_that_fails_takes_back_what_it_has_counted(world: World) -> None:
    gate = Gate()

    async def story(service: AsyncAgentService) -> tuple[list[str], dict[str, Any]]:
        return await beside(service, gate, 1, 3, "fail"), await state_of(service)

    ends, kept = world({"gate": gate}, story)
    assert (ends, kept) == (["failed"], {"n": 3, "nested": {"n": 3}})

    async def later(service: AsyncAgentService) -> dict[str, Any]:
        return await state_of(service)

    assert world({"gate": gate}, later) == kept


def test_a_talk_that_is_stopped_takes_back_what_it_has_counted(world: World) -> None:
    gate = Gate()

    async def story(service: AsyncAgentService) -> dict[str, Any]:
        await service.agents.create("ann", "d", profile="gate")
        talk = await service.create_talk_session("ann", agent="d")
        await service.add_message("ann", talk, "go")
        await said(service, talk, "I count")
        await all_done(service, [await service.tasks.send("ann", "d", "beside")])
        await service.stop("ann", talk, wait=5)
        await all_done(service, [await service.tasks.send("ann", "d", "after")])
        return await state_of(service)

    assert world({"gate": gate}, story) == {"n": 2, "nested": {"n": 2}}


def test_a_number_read_before_a_wait_and_set_after_it_is_added_up(world: World) -> None:
    gate: list[bool] = []

    async def stale(turn: Turn) -> AsyncIterator[str]:
        before = turn.state.get("n", 0)
        if turn.kind == "talk":
            yield "read"
            while not gate:  # noqa: ASYNC110 — the story opens it
                await asyncio.sleep(0.005)
        turn.state["n"] = before + 1
        yield "!"

    async def story(service: AsyncAgentService) -> dict[str, Any]:
        await service.agents.create("ann", "d", profile="stale")
        talk = await service.create_talk_session("ann", agent="d")
        await service.add_message("ann", talk, "go")
        await said(service, talk, "read")
        await all_done(service, [await service.tasks.send("ann", "d", str(number)) for number in range(2)])
        gate.append(True)
        await ended(service, talk)
        return await state_of(service)

    assert world({"stale": stale}, story) == {"n": 3}


@pytest.mark.parametrize("again", ["other", "log", "users"])
def test_what_a_talk_has_read_and_holds_is_changed_though_it_reads_on_in_between(world: World, again: str) -> None:
    gate: list[bool] = []

    async def holds(turn: Turn) -> AsyncIterator[str]:
        number, log = turn.state.get("n", 0), turn.state.setdefault("log", [])
        log.append(f"{turn.text} begins")
        users = turn.state.setdefault("users", {})
        users[f"{turn.text} begins"] = [1]
        if turn.kind == "talk":
            yield "read"
            while not gate:  # noqa: ASYNC110 — the story opens it
                await asyncio.sleep(0.005)
            turn.state.get(again)
        log.append(f"{turn.text} ends")
        users[f"{turn.text} begins"].append(2)
        users[f"{turn.text} ends"] = 3
        assert turn.state["users"][f"{turn.text} ends"] == 3
        turn.state["n"] = number + 1
        yield "!"

    async def story(service: AsyncAgentService) -> dict[str, Any]:
        await service.agents.create("ann", "d", profile="holds")
        talk = await service.create_talk_session("ann", agent="d")
        await service.add_message("ann", talk, "talk")
        await said(service, talk, "read")
        await all_done(service, [await service.tasks.send("ann", "d", "task")])
        gate.append(True)
        await ended(service, talk)
        return await state_of(service)

    kept = world({"holds": holds}, story)
    assert kept["n"] == 2
    assert sorted(kept["log"]) == ["talk begins", "talk ends", "task begins", "task ends"]
    assert kept["users"] == {"talk begins": [1, 2], "talk ends": 3, "task begins": [1, 2], "task ends": 3}


def merge(state: dict[str, Any]) -> None:
    state |= {"new": 1}


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "set": lambda state: operator.setitem(state, "new", 1),
    "update": lambda state: state.update(new=1),
    "merge": merge,
    "setdefault": lambda state: state.setdefault("new", 1),
    "delete": lambda state: operator.delitem(state, "n"),
    "pop": lambda state: state.pop("n"),
    "popitem": lambda state: state.popitem(),
    "clear": lambda state: state.clear(),
    "a list": lambda state: state["list"].append(1),
    "a list by get": lambda state: state.get("list", []).append(1),
    "a list by default": lambda state: state.setdefault("list", []).append(1),
    "values": lambda state: next(iter(state.values())).append(1),
    "items": lambda state: next(iter(state.items()))[1].append(1),
    "copy": lambda state: state.copy()["list"].append(1),
}


@pytest.mark.parametrize("how", CHANGES)
def test_another_talk_reads_each_change_however_it_was_made(how: str) -> None:
    recollection = AgentState(ThreadHost(), '{"list": [], "n": 1}', 10_000, lambda _: None)
    writer, reader = recollection.share("env_1"), recollection.share("env_2")
    CHANGES[how](writer)
    assert dict(reader) == writer.local() != {"list": [], "n": 1}


def test_a_turn_that_only_reads_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    recollection = AgentState(ThreadHost(), '{"n": 1}', 10_000, lambda _: None)
    states = [recollection.share(f"env_{number}") for number in range(3)]
    monkeypatch.setattr(SharedState, "local", None)
    assert [state["n"] for state in states] == [1, 1, 1]


def test_a_plain_brain_counts_too(tmp_path: Any) -> None:
    def counts(turn: Turn) -> Iterator[str]:
        for _ in range(50):
            turn.state["n"] = turn.state.get("n", 0) + 1
            yield "."

    with roost.open(f"sqlite:///{tmp_path}/plain.db", brains={"counts": counts}) as service:
        service.agents.create("ann", "d", profile="counts")
        talks = [service.create_talk_session("ann", agent="d") for _ in range(3)]
        for talk in talks:
            service.add_message("ann", talk, "go")
        tasks = [service.tasks.send("ann", "d", "go") for _ in range(2)]
        for task in tasks:
            service.tasks.wait("ann", task, timeout=20)
        for talk in talks:
            for _ in service.stream_messages("ann", talk):
                pass
        assert service.agents.inspect("ann", "d").turn_state == {"n": 250}


def test_a_replay_of_a_talk_is_given_what_it_read(world: World) -> None:
    gate: list[bool] = []

    async def tells(turn: Turn) -> AsyncIterator[str]:
        count(turn)
        if turn.kind == "talk":
            yield "first "
            while not gate:  # noqa: ASYNC110 — the story opens it
                await asyncio.sleep(0.005)
        yield str(turn.state["n"])

    async def story(service: AsyncAgentService) -> tuple[str, bool]:
        await service.agents.create("ann", "d", profile="tells")
        talk = await service.create_talk_session("ann", agent="d")
        await service.add_message("ann", talk, "go")
        await said(service, talk, "first")
        await all_done(service, [await service.tasks.send("ann", "d", str(number)) for number in range(3)])
        gate.append(True)
        words = (await ended(service, talk))[-1].content
        run = next(one for one in await service.runs.list("ann", talk=talk))
        replayed = await service.runs.replay("ann", run.run_id)
        return words, replayed.is_identical

    assert world({"tells": tells}, story) == ("first 4", True)


def test_an_edit_by_a_person_beside_a_turn_keeps_both(world: World) -> None:
    gate: list[bool] = []

    async def counts(turn: Turn) -> AsyncIterator[str]:
        while not gate:  # noqa: ASYNC110 — the story opens it
            await asyncio.sleep(0.005)
        turn.state["n"] = turn.state.get("n", 0) + 1
        yield "counted"

    async def story(service: AsyncAgentService) -> dict[str, Any]:
        await service.agents.create("ann", "d", profile="counts")
        task = await service.tasks.send("ann", "d", "go")
        await becomes(lambda: service.agents.inspect("ann", "d"), lambda seen: seen.running)
        await service.agents.set_state("ann", "d", {"n": 10})
        gate.append(True)
        await all_done(service, [task])
        return await state_of(service)

    assert world({"counts": counts}, story) == {"n": 11}
