"""T12: a worker that dies, or a brain that tries to take it along, harms no one else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

import roost
from roost.runtime.supervisor import Supervisor
from tests.brains_for_tests import Puppet
from tests.conftest import Open, eventually, everything, settled

ONE_WORKER = roost.Limits(drain=0.5, stop_patience=0.3, talk_workers=1)


def crash(service: roost.AgentService, number: int = 0) -> None:
    """Make a worker's thread die, and wait until it is dead."""

    def die() -> None:
        raise SystemExit("crashed by a test")

    worker = service.roost.placement.workers[number]
    worker.loop.call(die)
    eventually(lambda: worker.loop.over.done)


def streaming(service: roost.AgentService, talk: str, content: str = "begun ") -> None:
    eventually(lambda: service.get_messages("ann", talk).messages[-1].content == content)


@pytest.mark.usefixtures("no_polling")
def test_a_crashed_worker_is_back_and_its_talk_is_answered_with_all_that_was_said_kept(service: Open) -> None:
    puppet = Puppet()
    roosted = service({"puppet": puppet}, limits=ONE_WORKER)
    talk = roosted.create_talk_session("ann", profile="puppet")
    puppet.play(talk, "begun ", lambda: False)
    roosted.add_message("ann", talk, "hello")
    streaming(roosted, talk)
    crash(roosted)
    eventually(lambda: not roosted.get_messages("ann", talk).running)
    assert [(m.content, m.status) for m in everything(roosted, "ann", talk)] == [
        ("hello", "complete"),
        ("begun ", "interrupted"),
        ("heard hello", "complete"),
    ]
    assert (roosted.health().workers, roosted.health().restarts, roosted.health().problem) == (1, 1, None)


@pytest.mark.usefixtures("no_polling")
def test_a_crash_is_noticed_even_if_the_supervisor_is_late_to_hear_of_it(service: Open) -> None:
    puppet = Puppet()
    roosted = service({"puppet": puppet}, limits=ONE_WORKER)
    talk = roosted.create_talk_session("ann", profile="puppet")
    puppet.play(talk, "begun ", lambda: False)
    roosted.add_message("ann", talk, "hello")
    streaming(roosted, talk)
    late = threading.Event()
    roosted.roost.supervisor._loop.call(late.wait, 1.5)
    crash(roosted)
    late.set()
    eventually(lambda: not roosted.get_messages("ann", talk).running)
    assert [m.content for m in everything(roosted, "ann", talk)] == ["hello", "begun ", "heard hello"]


def test_the_talks_of_the_other_worker_do_not_notice_a_crash(service: Open) -> None:
    puppet, release = Puppet(), threading.Event()
    roosted = service({"puppet": puppet})
    talks = [roosted.create_talk_session("ann", profile="puppet") for _ in range(6)]
    for talk in talks:
        puppet.play(talk, "begun ", release.is_set, "ended")
        puppet.play(talk, "again")
        roosted.add_message("ann", talk, "hello")
        streaming(roosted, talk)
    doomed = set(roosted.roost.placement.workers[0].lanes)
    assert 0 < len(doomed) < 6
    crash(roosted)
    release.set()
    for talk in talks:
        answers = [(m.content, m.status) for m in settled(roosted, "ann", talk)][1:]
        spared, moved = [("begun ended", "complete")], [("begun ", "interrupted"), ("again", "complete")]
        assert answers == (moved if talk in doomed else spared)
    assert roosted.health().workers == 2


def test_a_turn_that_loses_its_worker_three_times_is_reported_as_failed(service: Open) -> None:
    puppet = Puppet()
    roosted = service({"puppet": puppet}, limits=ONE_WORKER)
    talk = roosted.create_talk_session("ann", profile="puppet")
    for number in range(3):
        puppet.play(talk, f"try {number}", lambda: False)
    roosted.add_message("ann", talk, "hello")
    for number in range(3):
        streaming(roosted, talk, f"try {number}")
        crash(roosted)
        eventually(lambda number=number: roosted.health().restarts == number + 1)  # type: ignore[misc]
    *_, last = settled(roosted, "ann", talk)
    assert last.status == "failed"
    assert "crashed several times" in (last.error or "")
    assert len(puppet.turns[talk]) == 3
    roosted.add_message("ann", talk, "and now?")
    assert settled(roosted, "ann", talk)[-1].content == "heard and now?"


def test_after_too_many_crashes_the_workers_stay_down_say_so_and_nothing_is_lost(service: Open) -> None:
    puppet = Puppet()
    limits = roost.Limits(drain=0.5, stop_patience=0.3, crashes=2)
    roosted = service({"puppet": puppet}, limits=limits)
    talk = roosted.create_talk_session("ann", profile="puppet")
    for alive in (2, 2, 1, 0):
        crash(roosted)
        eventually(lambda alive=alive: roosted.health().workers == alive)  # type: ignore[misc]
    eventually(lambda: "will be answered when Roost is restarted" in str(roosted.health().problem))
    assert "stay down" in str(roosted.health().problem)
    message = roosted.add_message("ann", talk, "is anyone there?")
    assert everything(roosted, "ann", talk) == (message,)
    roosted.close()
    roosted = service({"puppet": puppet})
    assert [m.content for m in settled(roosted, "ann", talk)] == ["is anyone there?", "heard is anyone there?"]
    assert roosted.health().problem is None


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_brain_that_asks_the_program_to_end_fails_only_its_own_turn(
    service: Open, error: type[BaseException]
) -> None:
    puppet, release = Puppet(), threading.Event()
    roosted = service({"puppet": puppet}, limits=ONE_WORKER)
    other = roosted.create_talk_session("ann", profile="puppet")
    puppet.play(other, "begun ", release.is_set, "ended")
    roosted.add_message("ann", other, "hello")
    streaming(roosted, other)
    talk = roosted.create_talk_session("ann", profile="puppet")
    puppet.play(talk, "half", error())
    roosted.add_message("ann", talk, "hello")
    last = settled(roosted, "ann", talk)[-1]
    assert (last.content, last.status) == ("half", "failed")
    release.set()
    assert settled(roosted, "ann", other)[-1].content == "begun ended"
    assert roosted.health().restarts == 0


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_the_same_of_a_blocking_brain(service: Open, error: type[BaseException]) -> None:
    def exits(turn: roost.Turn) -> Iterator[str]:
        yield "half"
        raise error

    roosted = service({"exits": exits}, limits=ONE_WORKER)
    talk = roosted.create_talk_session("ann", profile="exits")
    roosted.add_message("ann", talk, "hello")
    last = settled(roosted, "ann", talk)[-1]
    assert (last.content, last.status) == ("half", "failed")
    assert roosted.health().restarts == 0


def test_a_loop_that_answers_at_once_is_not_silent(service: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = service().roost.placement.workers[0].loop
    monkeypatch.setattr(loop, "call", lambda act, *args: act(*args))
    for _ in range(3):
        assert 0 <= loop.silence() < 1


def test_the_supervisor_continues_after_an_exception(service: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    watch, failed = Supervisor._watch, threading.Event()

    def fail_once(supervisor: Supervisor) -> None:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("a mishap")
        watch(supervisor)

    monkeypatch.setattr(Supervisor, "_watch", fail_once)
    roosted = service(limits=ONE_WORKER)
    assert failed.wait(20)
    crash(roosted)
    eventually(lambda: roosted.health().restarts == 1)
    talk = roosted.create_talk_session("ann", profile="echo")
    roosted.add_message("ann", talk, "hello")
    assert settled(roosted, "ann", talk)[-1].content == "hello"


def test_loops_that_brains_block_are_replaced_however_many_they_are(service: Open) -> None:
    release = threading.Event()

    async def blocks(turn: roost.Turn) -> AsyncIterator[str]:
        yield "begun"
        release.wait(20)

    roosted = service({"blocks": blocks}, limits=replace(ONE_WORKER, silent_loop=0.5, crashes=1))
    try:
        for _ in range(4):
            talk = roosted.create_talk_session("ann", profile="blocks")
            roosted.add_message("ann", talk, "hello")
            last = settled(roosted, "ann", talk)[-1]
            assert (last.content, last.status) == ("begun", "failed")
        assert roosted.health().problem is None
        talk = roosted.create_talk_session("ann", profile="echo")
        roosted.add_message("ann", talk, "still there?")
        assert settled(roosted, "ann", talk)[-1].content == "still there?"
    finally:
        release.set()


def test_too_many_blocked_loops_are_a_problem_until_they_return(service: Open) -> None:
    release = threading.Event()

    async def blocks(turn: roost.Turn) -> AsyncIterator[str]:
        yield "begun"
        release.wait(20)

    roosted = service({"blocks": blocks}, limits=replace(ONE_WORKER, silent_loop=0.5, blocked_loops=1))
    for _ in range(2):
        talk = roosted.create_talk_session("ann", profile="blocks")
        roosted.add_message("ann", talk, "hello")
        eventually(lambda talk=talk: roosted.get_messages("ann", talk).messages[-1].status == "failed")  # type: ignore[misc]
    assert "blocked" in (eventually(lambda: roosted.health().problem) or "")
    release.set()
    eventually(lambda: roosted.health().problem is None)
    talk = roosted.create_talk_session("ann", profile="echo")
    roosted.add_message("ann", talk, "still there?")
    assert settled(roosted, "ann", talk)[-1].content == "still there?"


def test_a_brain_that_cancels_everything_on_its_loop_fails_alone(service: Open) -> None:
    async def vandal(turn: roost.Turn) -> AsyncIterator[str]:
        yield "begun"
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(0)
        yield "ended"

    puppet, release = Puppet(), threading.Event()
    roosted = service({"puppet": puppet, "vandal": vandal}, limits=ONE_WORKER)
    other = roosted.create_talk_session("ann", profile="puppet")
    puppet.play(other, "begun ", release.is_set, "ended")
    roosted.add_message("ann", other, "hello")
    streaming(roosted, other)
    talk = roosted.create_talk_session("ann", profile="vandal")
    roosted.add_message("ann", talk, "hello")
    eventually(lambda: not roosted.get_messages("ann", talk).running)
    assert everything(roosted, "ann", talk)[-1].status == "failed"
    release.set()
    eventually(lambda: not roosted.get_messages("ann", other).running)
    assert everything(roosted, "ann", other)[-1].status == "complete"
    assert roosted.health().problem is None
