"""A11: whatever turns run side by side, and wherever the power is cut, the sums in `turn.state` are exact."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

import roost
from roost import AsyncAgentService, Turn
from roost.testing import Crash, Simulation
from tests.runtime.conftest import QUICK

Op = tuple[str, str]
"""Next act of a turn: `wait`, `ask`, or count a name; a count `across` reads before a wait and writes after it."""


async def counts(turn: Turn) -> AsyncIterator[str]:
    """Does what it is given, and speaks after each part."""
    for act, name in json.loads(turn.text):
        if act == "wait":
            await asyncio.sleep(0.1)
        elif act == "ask" and turn.kind == "task":
            await turn.ask("agent:e", name)
        elif act == "nested":
            turn.state.setdefault("nested", {}).setdefault(name, 0)
            turn.state["nested"][name] += 1
        elif act == "across":
            before = turn.state.get(name, 0)
            await asyncio.sleep(0.05)
            turn.state[name] = before + 1
        elif act == "count":
            turn.state[name] = turn.state.get(name, 0) + 1
        yield "."


async def echo(turn: Turn) -> AsyncIterator[str]:
    yield turn.text


def expected(turns: list[list[Op]]) -> dict[str, Any]:
    plain = Counter(name for ops in turns for act, name in ops if act in ("count", "across"))
    nested = Counter(name for ops in turns for act, name in ops if act == "nested")
    return {**plain, **({"nested": dict(nested)} if nested else {})}


async def story(service: AsyncAgentService, tasks: list[list[Op]], talks: list[list[Op]]) -> None:
    """As a program that may be started again: what it sends has keys."""
    with contextlib.suppress(roost.Conflict):
        await service.agents.create("ann", "d", profile="counts")
    with contextlib.suppress(roost.Conflict):
        await service.agents.create("ann", "e", profile="echo")
    titles = {talk.title: talk.talk_session_id for talk in await service.list_sessions("ann")}
    for number, ops in enumerate(talks):
        title = f"talk {number}"
        talk = titles.get(title) or await service.create_talk_session("ann", agent="d", title=title)
        await service.add_message("ann", talk, json.dumps(ops), key="go")
    sent = [await service.tasks.send("ann", "d", json.dumps(ops), key=str(number)) for number, ops in enumerate(tasks)]
    for task in sent:
        assert (await service.tasks.wait("ann", task, timeout=300)).status == "done"
    for one in await service.list_sessions("ann"):
        async for _ in service.stream_messages("ann", one.talk_session_id):
            pass


names = st.sampled_from("xy")
ops = st.lists(
    st.tuples(st.sampled_from(["wait", "ask", "count", "count", "nested", "across"]), names), min_size=1, max_size=4
)


@settings(max_examples=40, deadline=None)
@given(
    tasks=st.lists(ops, min_size=1, max_size=5),
    talks=st.lists(ops, max_size=2),
    crash=st.integers(0, 60),
    side=st.sampled_from(["before", "after"]),
    seed=st.integers(0, 1_000),
)
@example(
    tasks=[[("ask", "x"), ("count", "x")]] * 5,
    talks=[[("count", "x"), ("wait", "x"), ("wait", "x")]],
    crash=25,
    side="after",
    seed=1,
)
def test_increments_by_turns_that_wait_in_the_middle_add_up(
    tasks: list[list[Op]], talks: list[list[Op]], crash: int, side: str, seed: int
) -> None:
    brains = {"counts": counts, "echo": echo}
    with Simulation(seed=seed) as simulation:
        service = simulation.start(brains, QUICK)
        assert simulation.database is not None
        if crash:
            setattr(simulation.database, f"crash_{side}", crash)
        try:
            simulation.run(story(service, tasks, talks))
        except Crash:
            simulation.play(lambda service: story(service, tasks, talks), brains, QUICK)
        else:
            simulation.rest()
        [[kept]] = simulation.rows("SELECT memory FROM agents WHERE address = 'ann/d'")
        assert json.loads(kept or "{}") == expected(tasks + talks)
        seen = simulation.run(simulation.service.agents.inspect("ann", "d"))
        assert seen.turn_state == expected(tasks + talks)
