"""A database that another program has taken over: the first one is not ready, writes nothing and shows nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import roost
from roost.api import readiness
from tests.api.serving import serving
from tests.conftest import QUICK, eventually, everything
from tests.contracts.test_owners import cut
from tests.faults.test_readiness import probe
from tests.servers import fresh_store

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(postgres: str) -> Iterator[str]:
    with fresh_store(postgres) as made:
        yield made


async def endless(turn: roost.Turn) -> AsyncIterator[str]:
    for number in range(100_000):
        yield f"{number} "
        await asyncio.sleep(0.01)


def test_a_process_whose_database_was_taken_over_is_not_ready_and_shows_no_answer(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "EVERY", 0.05)
    with (
        roost.open(url, brains={"endless": endless}, limits=QUICK) as first,
        serving(first, limits=QUICK) as served,
    ):
        talk = first.create_talk_session("ann", profile="endless")
        first.add_message("ann", talk, "go")
        eventually(lambda: everything(first, "ann", talk)[-1].status == "streaming")
        assert probe(served)[0] == 200
        second = _taken_over(url)
        try:
            eventually(lambda: probe(served)[0] == 503)
            eventually(lambda: "is in use by another Roost" in probe(served)[1])
            with served.browser("ann") as ann:
                eventually(lambda: ann.get(f"/api/v1/talks/{talk}/messages").status_code == 503)
                assert ann.post("/api/v1/talks", json={"profile": "echo"}).status_code == 503
            assert len(second.list_sessions("ann")) == 1
        finally:
            second.close()


def _taken_over(url: str) -> roost.AgentService:
    """Cut all connections of the first one, until another one gets in before it comes back."""

    def attempt() -> roost.AgentService | None:
        assert cut(url) >= 0
        try:
            return roost.open(url, brains={"endless": endless}, limits=QUICK)
        except roost.Unavailable:
            return None

    found = eventually(attempt, 40)
    assert found is not None
    return found
