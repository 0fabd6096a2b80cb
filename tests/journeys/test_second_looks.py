"""Second times: a worker that wakes, a cursor used again, another stop, another name for a file."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import roost
from roost.testing import Simulation
from tests.conftest import QUICK, Open, eventually, everything, settled


async def echo(turn: roost.Turn) -> AsyncIterator[str]:
    yield turn.text


def test_a_worker_that_was_given_up_runs_nothing_when_it_wakes(service: Open) -> None:
    blocks, hold, runs = threading.Event(), threading.Event(), Counter[str]()

    async def blocker(turn: roost.Turn) -> AsyncIterator[str]:
        yield "x"
        blocks.set()
        hold.wait(20)

    async def counted(turn: roost.Turn) -> AsyncIterator[str]:
        runs[turn.talk_session_id] += 1
        yield "begun "
        await asyncio.sleep(0.2)
        yield "done"

    limits = roost.Limits(silent_loop=1.5, drain=0.5, stop_patience=0.3)
    home = service({"blocker": blocker, "counted": counted}, limits=limits)
    home.add_message("ann", home.create_talk_session("ann", profile="blocker"), "block")
    assert blocks.wait(20), "nothing else has begun on its loop"
    talks = [home.create_talk_session("ann", profile="counted") for _ in range(10)]
    for talk in talks:
        home.add_message("ann", talk, "hello")
    eventually(lambda: home.health().restarts == 1)
    hold.set()
    answers = [settled(home, "ann", talk)[-1] for talk in talks]
    assert {(str(a.status), a.content) for a in answers} == {("complete", "begun done")}
    assert set(runs.values()) == {1}


def test_a_cursor_from_the_middle_of_a_page_gives_the_rest_once_and_then_nothing(service: Open) -> None:
    home = service({"echo": echo})
    talk = home.create_talk_session("ann", profile="echo")
    start = home.get_messages("ann", talk).cursor
    for word in ("a", "b", "c"):
        home.add_message("ann", talk, word)
        settled(home, "ann", talk)
    cursor = next(iter(home.stream_messages("ann", talk, after=start))).cursor
    home.add_message("ann", talk, "new")
    settled(home, "ann", talk)
    rest = list(home.stream_messages("ann", talk, after=str(cursor)))
    assert [change.message.seq for change in rest] == [2, 3, 4, 5, 6, 7, 8]
    assert list(home.stream_messages("ann", talk, after=str(rest[-1].cursor))) == []


def test_a_second_stop_waits_for_the_same_run_as_the_first(service: Open) -> None:
    release = threading.Event()

    def stuck(turn: roost.Turn) -> Iterator[str]:
        yield "part1"
        release.wait(20)

    home = service({"stuck": stuck})
    talk = home.create_talk_session("ann", profile="stuck")
    home.add_message("ann", talk, "go")
    eventually(lambda: "part1" in everything(home, "ann", talk)[-1].content)
    home.stop("ann", talk)
    again = home.stop("ann", talk, wait=10)
    release.set()
    assert again.abandoned == ("brain stuck",)
    assert everything(home, "ann", talk)[-1].status == "interrupted"


def test_a_file_has_one_owner_by_whatever_name(tmp_path: Path) -> None:
    with roost.open(f"sqlite:///{tmp_path}/real.db", limits=QUICK):
        (tmp_path / "other.db").symlink_to(tmp_path / "real.db")
        with pytest.raises(roost.Unavailable, match="in use by"):
            roost.open(f"sqlite:///{tmp_path}/other.db")


def test_state_that_cannot_be_kept_fails_the_turn_once(service: Open) -> None:
    async def deep(turn: roost.Turn) -> AsyncIterator[str]:
        nested: list[object] = []
        for _ in range(100_000):
            nested = [nested]
        turn.state["deep"] = nested
        yield "said"

    home = service({"deep": deep})
    talk = home.create_talk_session("ann", profile="deep")
    home.add_message("ann", talk, "go")
    assert [(m.content, str(m.status)) for m in settled(home, "ann", talk)] == [("go", "complete"), ("said", "failed")]


def test_a_clock_set_back_does_not_hold_up_what_is_collected(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    service = simulation.start({"echo": echo})

    async def story() -> float:
        talk = await service.create_talk_session("ann", profile="echo", busy="collect")
        await service.add_message("ann", talk, "hello")
        simulation.clock.shift = -3600.0
        async for _ in service.stream_messages("ann", talk):
            pass
        return simulation.clock.monotonic()

    assert simulation.run(story()) < 3
    simulation.crash()


@pytest.mark.parametrize(
    "url", ["postgresql://ann:canary%zzPW@localhost:1/db", "postgresql://ann:canary@[::1/db", "redis://:canary@x/0"]
)
def test_the_error_of_a_store_that_cannot_be_opened_has_no_password(url: str) -> None:
    with pytest.raises(roost.RoostError) as refused:
        roost.open(url)
    assert "canary" not in str(refused.value)
    assert refused.value.__cause__ is None or "canary" not in str(refused.value.__cause__)
