"""Two worlds for the same tests: real threads with real time, and the simulation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from roost import AsyncAgentService, Brain, Limits, Message, Tool, Turn, aopen
from roost.testing import Simulation
from tests.servers import fresh_store, new_store

T = TypeVar("T")
Scenario = Callable[[AsyncAgentService], Awaitable[T]]

QUICK = Limits(drain=0.3, stop_patience=1.0, collect_quiet=0.1)


class World(Protocol):
    def __call__(
        self, brains: Mapping[str, Brain], scenario: Scenario[T], limits: Limits = QUICK, tools: Sequence[Tool] = ()
    ) -> T:
        """Open a Roost on the world's one file, run the scenario, close it; what the scenario gives."""
        ...


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Simulate a test with one seed, or with three if it is marked `order`; `make soak` runs the others."""
    ordered = metafunc.definition.get_closest_marker("order") is not None
    more = () if ordered else (pytest.mark.soak,)
    if "world" in metafunc.fixturenames:
        simulated = ["simulated-1", *(pytest.param(f"simulated-{seed}", marks=more) for seed in (2, 3))]
        worlds = ["threads", pytest.param("postgres", marks=pytest.mark.postgres), *simulated]
        metafunc.parametrize("world", worlds, indirect=True)
    if "simulated" in metafunc.fixturenames:
        seeds = [1, *(pytest.param(seed, marks=more) for seed in (2, 3))]
        metafunc.parametrize("simulated", seeds, indirect=True)


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    kind, _, seed = request.param.partition("-")
    if kind == "postgres":
        with fresh_store(request.getfixturevalue("postgres")) as url:
            yield _threads(url)
    elif kind == "threads":
        yield _threads(new_store(tmp_path / "threads.db"))
    else:
        yield _simulated(tmp_path, int(seed))


@pytest.fixture
def simulated(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """For stories that would take their time: here it passes by itself."""
    return _simulated(tmp_path, request.param)


def _threads(url: str) -> World:
    def run(
        brains: Mapping[str, Brain], scenario: Scenario[T], limits: Limits = QUICK, tools: Sequence[Tool] = ()
    ) -> T:
        async def main() -> T:
            async with await aopen(url, brains=brains, limits=limits, tools=tools) as service:
                return await scenario(service)

        return asyncio.run(main())

    return run


def _simulated(folder: Path, seed: int) -> World:
    simulation = Simulation(folder, seed)
    new_store(simulation.path)

    def run(
        brains: Mapping[str, Brain], scenario: Scenario[T], limits: Limits = QUICK, tools: Sequence[Tool] = ()
    ) -> T:
        service = simulation.start(brains, limits, tools)

        async def main() -> T:
            async with service:
                return await scenario(service)

        return simulation.run(main())

    return run


async def said(service: AsyncAgentService, talk: str, words: str) -> None:
    """Wait until the agent has said so much in its newest message."""
    async for change in service.stream_messages("ann", talk, follow=True):
        if change.message.sender == "agent" and words in change.message.content:
            return


async def ended(service: AsyncAgentService, talk: str) -> list[Message]:
    """Wait until nothing runs; all messages."""
    async for _ in service.stream_messages("ann", talk):
        pass
    return list((await service.get_messages("ann", talk)).messages)


async def becomes(look: Callable[[], Awaitable[T]], so: Callable[[T], object] = bool) -> T:
    """Look again and again until what is seen is so; that. The worlds' clocks move meanwhile."""
    seen = await look()
    for _ in range(6_000):
        if so(seen):
            return seen
        await asyncio.sleep(0.005)
        seen = await look()
    raise AssertionError(f"it has not become so: {seen!r:.500}")


async def until(so: Callable[[], object]) -> None:
    async def look() -> object:
        return so()

    await becomes(look)


def short(messages: list[Message]) -> list[tuple[str, str, str]]:
    return [(str(m.sender), m.content, str(m.status)) for m in messages]


async def slow(turn: Turn) -> AsyncIterator[str]:
    """Says part1, waits long, says part2; what is not `first` is answered at once."""
    if turn.messages[-1].content != "first":
        yield f"answer to {turn.text}"
        return
    yield "part1"
    await asyncio.sleep(30)
    yield "part2"
