"""The search index is written in the background, and belongs to its talks."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import roost
from roost import AsyncAgentService, Turn
from roost.hosts.pending import drive
from roost.runtime import search_index
from tests.runtime.conftest import QUICK, World, becomes, ended


async def echo(turn: Turn) -> AsyncIterator[str]:
    yield f"You said {turn.text}"


def blocks(path: Path) -> list[tuple[str, int]]:
    with sqlite3.connect(path) as file:
        return file.execute("SELECT talk_id, last FROM search_blocks ORDER BY talk_id").fetchall()


def test_messages_are_found_before_and_after_they_are_indexed(world: World) -> None:
    async def scenario(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann")
        for number in range(3):
            await service.add_message("ann", talk, f"bird {number}")
            await ended(service, talk)
        for _ in range(2):
            page = await service.search("ann", "bird 1", limit=1)
            assert [hit.seq for hit in page.hits] == [4]
            page = await service.search("ann", "bird 1", limit=1, after=page.cursor)
            assert [hit.seq for hit in page.hits] == [3]
            assert page.cursor is None
            assert await service.roost.search_index.sweep() in (0, 1)
        assert await service.roost.search_index.sweep() == 0
        assert (await service.search("bob", "bird")).hits == ()
        with pytest.raises(roost.NotFound):
            await service.search("bob", "bird", talk_session_id=talk)
        await service.delete("ann", talk)
        assert (await service.search("ann", "bird")).hits == ()

    world({"echo": echo}, scenario)


def test_the_index_is_written_in_the_background(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "FIRST", 0.3)
    monkeypatch.setattr(search_index, "EVERY", 0.1)

    async def scenario(service: AsyncAgentService) -> None:
        for number in range(search_index.TALKS + 1):
            await service.add_message("ann", await service.create_talk_session("ann"), f"bird {number}")
        store = service.roost.context.store

        async def missing() -> bool:
            counts = await store.read(lambda tx: tx.read("SELECT (SELECT sum(last) FROM search_blocks)"))
            return bool(counts[0][0] != 2 * (search_index.TALKS + 1))

        await becomes(missing, lambda missing: not missing)
        assert len((await service.search("ann", "bird 7")).hits) == 2

    world({"echo": echo}, scenario)


def test_the_talks_of_a_deleted_agent_leave_nothing_in_the_index(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with roost.open(f"sqlite:///{path}", brains={"echo": echo}, limits=QUICK) as service:
        service.agents.create("ann", "d", profile="echo")
        talk = service.create_talk_session("ann", agent="d")
        service.add_message("ann", talk, "secret")
        list(service.stream_messages("ann", talk))
        drive(service.roost.search_index.sweep())
        assert blocks(path) == [(talk, 2)]
        service.agents.delete("ann", "d")
        assert blocks(path) == []
