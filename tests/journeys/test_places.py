"""T1: where the service is used: in a notebook, in a server, by two programs at once."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

import roost
from tests.brains_for_tests import parrot
from tests.conftest import ENVIRONMENT, QUICK, Open, everything, settled
from tests.forks import run


def test_the_plain_methods_work_inside_a_running_event_loop(service: Open) -> None:
    async def cell() -> list[str]:
        roosted = service({"parrot": parrot})
        talk = roosted.create_talk_session("ann", profile="parrot")
        roosted.add_message("ann", talk, "hello there")
        pieces = [c.text for c in roosted.stream_messages("ann", talk) if c.message.sender == "agent"]
        assert roosted.stop("ann", talk, wait=1).quiesced is not None
        assert roosted.rename("ann", talk, "in a notebook").title == "in a notebook"
        assert [t.talk_session_id for t in roosted.list_sessions("ann")] == [talk]
        roosted.delete("ann", talk)
        roosted.close()
        return pieces

    assert "".join(asyncio.run(cell())) == "hello there "


def test_a_stream_left_half_read_inside_a_running_loop_does_no_harm(service: Open) -> None:
    async def cell() -> None:
        roosted = service({"parrot": parrot})
        talk = roosted.create_talk_session("ann", profile="parrot")
        roosted.add_message("ann", talk, "hello there")
        next(iter(roosted.stream_messages("ann", talk)))
        await asyncio.sleep(0)
        assert settled(roosted, "ann", talk)[-1].content == "hello there "

    asyncio.run(cell(), debug=True)


def test_aopen_gives_the_same_methods_as_coroutines(tmp_path: Path) -> None:
    async def server() -> None:
        url = f"sqlite:///{tmp_path / 'roost.db'}"
        async with await roost.aopen(url, brains={"parrot": parrot}, limits=QUICK) as service:
            talk = await service.create_talk_session("ann", profile="parrot")
            message = await service.add_message("ann", talk, "hello there", key="k")
            assert await service.add_message("ann", talk, "hello there", key="k") == message
            streamed = {c.message.seq: c.message async for c in service.stream_messages("ann", talk)}
            page = await service.get_messages("ann", talk)
            assert tuple(streamed.values()) == page.messages
            assert [m.content for m in page.messages] == ["hello there", "hello there "]
            assert (await service.get_messages("ann", talk, after=page.cursor)).messages == ()
            assert (await service.rename("ann", talk, "b")).title == "b"
            assert (await service.configure("ann", talk, busy="queue")).busy == "queue"
            assert (await service.stop("ann", talk, wait=1)).quiesced is not None
            assert [t.title for t in await service.list_sessions("ann")] == ["b"]
            await service.delete("ann", talk)
            with pytest.raises(roost.NotFound):
                await service.get_session("ann", talk)

    asyncio.run(server())
    assert [path.name for path in tmp_path.iterdir()] == ["roost.db"]


def test_many_coroutines_wait_for_their_answers_side_by_side(tmp_path: Path) -> None:
    async def converse(service: roost.AsyncAgentService, number: int) -> str:
        talk = await service.create_talk_session(f"user{number}", profile="parrot")
        await service.add_message(f"user{number}", talk, f"number {number}")
        return [c.message async for c in service.stream_messages(f"user{number}", talk)][-1].content

    async def server() -> list[str]:
        async with await roost.aopen(f"sqlite:///{tmp_path / 'roost.db'}", brains={"parrot": parrot}) as service:
            return await asyncio.gather(*(converse(service, n) for n in range(100)))

    assert asyncio.run(server()) == [f"number {n} " for n in range(100)]


def test_a_waiting_coroutine_can_be_cancelled_and_the_service_continues(tmp_path: Path) -> None:
    async def server() -> None:
        async with await roost.aopen(f"sqlite:///{tmp_path / 'roost.db'}", brains={"parrot": parrot}) as service:
            talk = await service.create_talk_session("ann", profile="parrot")

            async def follow() -> None:
                async for _ in service.stream_messages("ann", talk, follow=True):
                    pass

            with pytest.raises(TimeoutError):
                await asyncio.wait_for(follow(), 0.05)
            await service.add_message("ann", talk, "hello")
            assert [c.message async for c in service.stream_messages("ann", talk)][-1].content == "hello "

    asyncio.run(server())


def test_a_second_process_on_the_same_file_is_refused_with_the_owner(service: Open, tmp_path: Path) -> None:
    roosted = service({"parrot": parrot})
    talk = roosted.create_talk_session("ann", profile="parrot")
    script = f"import roost\ntry:\n    roost.open('sqlite:///{tmp_path / 'roost.db'}')\n"
    script += "except roost.Unavailable as error:\n    print(error)\n"
    second = run(
        [sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True, timeout=20, check=True
    )
    assert f"is in use by process {os.getpid()}: if it is just starting or ending, try again" in second.stdout
    roosted.add_message("ann", talk, "undisturbed")
    assert settled(roosted, "ann", talk)[-1].content == "undisturbed "


def test_a_second_service_in_the_same_process_is_refused_and_the_first_continues(service: Open) -> None:
    roosted = service({"parrot": parrot})
    for _ in range(2):
        with pytest.raises(roost.Unavailable, match=f"in use by process {os.getpid()}"):
            service({"parrot": parrot})
    talk = roosted.create_talk_session("ann", profile="parrot")
    roosted.add_message("ann", talk, "hello")
    settled(roosted, "ann", talk)
    roosted.close()
    assert len(everything(service({"parrot": parrot}), "ann", talk)) == 2


def test_the_file_of_a_killed_process_is_free_at_once(service: Open, tmp_path: Path) -> None:
    script = f"import os, roost\nroost.open('sqlite:///{tmp_path / 'roost.db'}')\nos.kill(os.getpid(), 9)\n"
    assert run([sys.executable, "-c", script], env=ENVIRONMENT, timeout=20, check=False).returncode == -9
    assert (tmp_path / "roost.db.lock").exists()
    assert service().list_sessions("ann") == []
