"""A power cut at every commit boundary: what was acknowledged is there, once, and everything is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost import AsyncAgentService, Limits, Message, Turn
from roost.runtime.supervisor import Supervisor
from roost.testing import Crash, Simulation
from tests.runtime.conftest import ended, said

LIMITS = Limits(checkpoint_every=0.05)
WORDS = 12


async def teller(turn: Turn) -> AsyncIterator[str]:
    """Marks every word with its run, so that a text spliced from two runs shows."""
    for number in range(WORDS):
        yield f"[{turn.run_id} {number}]"
        await asyncio.sleep(0.02)


async def tell(service: AsyncAgentService, acknowledged: list[str]) -> None:
    """Three messages: one answered, one interrupted, one stopped and asked again; all by key."""
    talk = await service.create_talk_session("ann", profile="teller", title="crash")
    acknowledged.append(talk)
    await service.add_message("ann", talk, "first", key="1")
    acknowledged.append("first")
    await ended(service, talk)
    await service.add_message("ann", talk, "second", key="2")
    acknowledged.append("second")
    await said(service, talk, " 4]")
    await service.add_message("ann", talk, "third", key="3")
    acknowledged.append("third")
    await ended(service, talk)


def check(messages: list[Message], acknowledged: list[str]) -> None:
    assert [m.seq for m in messages] == list(range(1, len(messages) + 1))
    said_by_ann = [m.content for m in messages if m.sender == "user"]
    assert said_by_ann[: len(acknowledged)] == acknowledged
    assert len(said_by_ann) <= len(acknowledged) + 1, "a message that was never sent"
    assert all(m.status in ("complete", "interrupted") for m in messages)
    for answer in (m for m in messages if m.sender == "agent"):
        words = [f"[{answer.run_id} {n}]" for n in range(WORDS)]
        assert answer.content == "".join(words[: answer.content.count("[")]), "spliced"
        assert (answer.content.count("[") == WORDS) == (answer.status == "complete")
    if said_by_ann:
        assert messages[-1].sender == "agent", "the last message is unanswered"
        assert messages[-1].status == "complete"


def crash_and_return(folder: Path, seed: int, *, before: int | None = None, after: int | None = None) -> bool:
    """Return whether the crash came before the story had ended."""
    simulation = Simulation(folder, seed)
    acknowledged: list[str] = []
    service = simulation.start({"teller": teller}, LIMITS)
    assert simulation.database is not None
    simulation.database.crash_before, simulation.database.crash_after = before, after
    try:
        simulation.run(tell(service, acknowledged))
    except Crash:
        crashed = True
    else:
        crashed = False
        simulation.crash()
    service = simulation.start({"teller": teller}, LIMITS)

    async def look() -> list[list[Message]]:
        return [await ended(service, t.talk_session_id) for t in await service.list_sessions("ann")]

    talks = simulation.run(look())
    simulation.crash()
    assert len(talks) >= min(1, len(acknowledged))
    for messages in talks:
        check(messages, acknowledged[1:])
    return crashed


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_crash_at_any_commit_loses_nothing_and_doubles_nothing(tmp_path: Path, side: str) -> None:
    count = 0
    for commit in range(1, 200):
        folder = tmp_path / str(commit)
        folder.mkdir()
        before, after = (commit, None) if side == "before" else (None, commit)
        if not crash_and_return(folder, seed=commit, before=before, after=after):
            break
        count += 1
    assert count > 15, "the story has fewer commits than it should have"


@given(seed=st.integers(0, 10**6), commit=st.integers(1, 30), side=st.booleans())
def test_a_crash_at_any_commit_in_any_order_of_things(
    tmp_path_factory: pytest.TempPathFactory, seed: int, commit: int, side: bool
) -> None:
    folder = tmp_path_factory.mktemp("crash")
    before, after = (commit, None) if side else (None, commit)
    assert crash_and_return(folder, seed, before=before, after=after) in (True, False)


def test_the_same_seed_repeats_exactly(tmp_path: Path) -> None:
    def story(folder: Path) -> tuple[int, list[tuple[str, str]]]:
        folder.mkdir()
        simulation = Simulation(folder, seed=7)
        service = simulation.start({"teller": teller}, LIMITS)
        acknowledged: list[str] = []
        simulation.run(tell(service, acknowledged))
        host = simulation.host
        assert host is not None

        async def look() -> list[tuple[str, str]]:
            return [(m.content, m.created.isoformat()) for m in await ended(service, acknowledged[0])]

        messages = simulation.run(look())
        steps = host.steps
        simulation.crash()
        return steps, messages

    assert story(tmp_path / "a") == story(tmp_path / "b")


def test_a_store_that_fails_for_a_while_loses_nothing(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=3)
    service = simulation.start({"teller": teller}, LIMITS)
    database = simulation.database
    assert database is not None

    async def story() -> list[Message]:
        talk = await service.create_talk_session("ann", profile="teller")
        await service.add_message("ann", talk, "first")
        await said(service, talk, " 2]")
        start = database.commits
        database.failing = lambda commit: start < commit < start + 25
        return await ended(service, talk)

    messages = simulation.run(story())
    simulation.crash()
    assert [m.status for m in messages] == ["complete", "complete"]
    assert messages[1].content.count("[") == WORDS


def test_a_frozen_loop_is_abandoned_and_its_talks_continue_elsewhere(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, seed=5)
    service = simulation.start({"teller": teller}, LIMITS)

    async def story() -> list[Message]:
        talk = await service.create_talk_session("ann", profile="teller")
        await service.add_message("ann", talk, "first")
        await said(service, talk, " 2]")
        for worker in service.roost.placement.workers:
            worker.loop.freeze(60)  # type: ignore[attr-defined]
        return await ended(service, talk)

    messages = simulation.run(story())
    simulation.crash()
    assert [str(m.status) for m in messages] == ["complete", "interrupted", "complete"]
    assert messages[1].content.count("[") < WORDS
    check(messages, ["first"])


@pytest.mark.parametrize("busy", ["interrupt", "queue", "collect", "steer", "rollback"])
def test_a_message_that_comes_before_what_was_cut_off_is_found_is_answered_and_so_is_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: str
) -> None:
    async def answers(turn: Turn) -> AsyncIterator[str]:
        yield "I hear "
        await asyncio.sleep(0.5)
        yield " and ".join(message.content for message in turn.messages)

    async def finds_nothing(_: Supervisor) -> None:
        """As if it had not come that far."""

    simulation = Simulation(tmp_path, seed=5)
    service = simulation.start({"answers": answers}, LIMITS)

    async def begin() -> str:
        talk = await service.create_talk_session("ann", profile="answers")
        await service.add_message("ann", talk, "one")
        await said(service, talk, "I hear")
        return talk

    talk = simulation.run(begin())
    simulation.crash()
    monkeypatch.setattr(Supervisor, "_sweep", finds_nothing)
    again = simulation.start({"answers": answers}, LIMITS)

    async def go_on() -> list[tuple[str, str, str]]:
        await again.add_message("ann", talk, "two", busy=busy)
        await ended(again, talk)
        return [(m.sender, m.status, m.content) for m in (await again.get_messages("ann", talk)).messages]

    cut_off = ("agent", "withdrawn", "") if busy == "rollback" else ("agent", "interrupted", "I hear ")
    whole = "I hear two" if busy == "rollback" else "I hear one and two"
    assert simulation.run(go_on()) == [
        ("user", "complete", "one"),
        cut_off,
        ("user", "complete", "two"),
        ("agent", "complete", whole),
    ]
    simulation.crash()
