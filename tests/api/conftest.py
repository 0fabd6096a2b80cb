"""Fixtures of the API's tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import roost
from tests.api.serving import Served, serving
from tests.conftest import QUICK, Open


async def parrot(turn: roost.Turn) -> AsyncIterator[str]:
    for word in turn.text.split():
        yield word + " "


async def endless(turn: roost.Turn) -> AsyncIterator[str]:
    yield "part1 "
    await asyncio.sleep(3600)


async def slow(turn: roost.Turn) -> AsyncIterator[str]:
    for number in range(40):
        yield f"wört{number} 🐦 "
        await asyncio.sleep(0.005)


@roost.tool(approval=True)
async def deploy(what: str) -> str:
    """Needs a person's word."""
    return f"deployed {what}"


async def careful(turn: roost.Turn) -> AsyncIterator[str]:
    try:
        yield await turn.call_tool("deploy", {"what": turn.text})
    except roost.ToolFailed as error:
        yield str(error)


BRAINS: dict[str, roost.Brain] = {"parrot": parrot, "endless": endless, "slow": slow, "careful": careful}


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Server that the tests of a module share, for requests that change nothing: ann has an agent `d`, stopped."""
    path = tmp_path_factory.mktemp("unchanged") / "roost.db"
    with roost.open(f"sqlite:///{path}", brains=BRAINS, limits=QUICK, tools=[deploy]) as service:
        service.agents.create("ann", "d", start=False)
        with serving(service) as running:
            yield running


@pytest.fixture
def served(service: Open, request: pytest.FixtureRequest) -> Iterator[Served]:
    """A server; with `limited(…)` before a test it has other limits."""
    with serving(service(BRAINS, tools=[deploy]), limits=getattr(request, "param", {})) as running:
        yield running
