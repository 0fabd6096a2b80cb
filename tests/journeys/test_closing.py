"""T13: closing ends in bounded time, keeps what was not done, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

import roost
from tests.brains_for_tests import Puppet, Stubborn
from tests.conftest import ENVIRONMENT, Open, eventually, everything, settled

LIMITS = roost.Limits(drain=0.3, stop_patience=0.3)


@pytest.fixture
def stubborn() -> Iterator[Stubborn]:
    brain = Stubborn()
    yield brain
    brain.gate.set()


def threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate())


def files() -> list[str]:
    """Return the open files of this process, without the folder listing itself."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue
    return sorted(f"{name.split(':')[0]}" for name in found)


def begun(service: roost.AgentService, talk: str, brain: Stubborn) -> None:
    service.add_message("ann", talk, "slow")
    eventually(lambda: service.get_messages("ann", talk).messages[-1].content == "part1")
    assert brain.inside.wait(10)


def seconds(act: Callable[[], object]) -> float:
    before = time.monotonic()
    act()
    return time.monotonic() - before


@pytest.mark.parametrize("kind", ["sleeping", "blocking", "swallowing", "nested", "tool", "looping"])
def test_closing_is_bounded_whatever_a_brain_does_and_its_turn_resumes_at_the_next_start(
    service: Open, stubborn: Stubborn, kind: str
) -> None:
    roosted = service({"slow": getattr(stubborn, kind)}, limits=LIMITS)
    talk = roosted.create_talk_session("ann", profile="slow")
    begun(roosted, talk, stubborn)
    assert seconds(roosted.close) < LIMITS.drain + LIMITS.stop_patience + 5
    puppet = Puppet()
    again = service({"slow": puppet}, limits=LIMITS)
    assert [(m.content, m.status) for m in settled(again, "ann", talk)] == [
        ("slow", "complete"),
        ("part1", "interrupted"),
        ("heard slow", "complete"),
    ]


def test_an_answer_that_ends_in_time_is_whole(service: Open) -> None:
    puppet, release = Puppet(), threading.Event()
    roosted = service({"puppet": puppet}, limits=roost.Limits(drain=30))
    talk = roosted.create_talk_session("ann", profile="puppet")
    puppet.play(talk, "part1 ", release.is_set, "part2")
    roosted.add_message("ann", talk, "hello")
    eventually(lambda: everything(roosted, "ann", talk)[-1].content == "part1 ")
    closing = threading.Thread(target=roosted.close)
    closing.start()
    eventually(lambda: _refuses(roosted, talk))
    release.set()
    closing.join(29)
    assert not closing.is_alive()
    assert [m.content for m in everything(service({"puppet": puppet}), "ann", talk)] == ["hello", "part1 part2"]


def _refuses(service: roost.AgentService, talk: str) -> bool:
    """Return whether it takes no more messages, and says so clearly."""
    if not service.roost.talks.closing:
        return False
    with pytest.raises(roost.Unavailable, match="is closing: send the message again"):
        service.add_message("ann", talk, "too late")
    return True


def test_a_closing_service_refuses_new_messages_and_a_closed_one_everything_else(service: Open) -> None:
    roosted = service()
    talk = roosted.create_talk_session("ann", profile="echo")
    roosted.close()
    calls: list[Callable[[], object]] = [
        lambda: roosted.add_message("ann", talk, "hello"),
        lambda: roosted.create_talk_session("ann"),
        lambda: roosted.rename("ann", talk, "x"),
        lambda: roosted.list_sessions("ann"),
        lambda: roosted.stop("ann", talk),
        lambda: roosted.delete("ann", talk),
    ]
    for call in calls:
        with pytest.raises(roost.Unavailable, match="clos"):
            call()
    roosted.close()  # once more does no harm
    assert everything(service(), "ann", talk) == ()


def test_a_stream_that_waits_ends_when_the_service_is_closed(service: Open) -> None:
    puppet = Puppet()
    roosted = service({"puppet": puppet}, limits=LIMITS)
    talk = roosted.create_talk_session("ann", profile="puppet")
    seen: list[str] = []
    reader = threading.Thread(
        target=lambda: seen.extend(c.text for c in roosted.stream_messages("ann", talk, follow=True))
    )
    reader.start()
    roosted.add_message("ann", talk, "hello")
    eventually(lambda: "".join(seen) == "helloheard hello")
    roosted.close()
    reader.join(20)
    assert not reader.is_alive()


def test_closing_leaves_no_thread_no_lock_and_no_open_file(tmp_path: Path) -> None:
    def one_life() -> None:
        with roost.open(f"sqlite:///{tmp_path / 'roost.db'}", limits=LIMITS) as service:
            talk = service.create_talk_session("ann", profile="echo")
            service.add_message("ann", talk, "hello")
            settled(service, "ann", talk)

    one_life()  # what the interpreter opens once and for all is open now
    before = Counter(threads() + files())
    for _ in range(3):
        one_life()
    # What an earlier test has left may end meanwhile; on a busy machine a thread may end later than it is waited for.
    eventually(lambda: not Counter(threads() + files()) - before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["roost.db"]


def test_only_an_abandoned_thread_is_left_and_it_is_named(tmp_path: Path, stubborn: Stubborn) -> None:
    before = set(threading.enumerate())

    def left() -> set[str]:
        """Names of the threads that this test has started; threads of earlier tests may have the same name."""
        return {thread.name for thread in threading.enumerate() if thread not in before}

    service = roost.open(f"sqlite:///{tmp_path / 'roost.db'}", brains={"slow": stubborn.blocking}, limits=LIMITS)
    talk = service.create_talk_session("ann", profile="slow")
    begun(service, talk, stubborn)
    service.close()
    sampler = "roost-switch-interval"  # runs while any thread of a brain does
    eventually(lambda: left() - {sampler} == {"roost-brain-slow"})
    stubborn.gate.set()
    eventually(lambda: not left())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["roost.db"]


SCRIPT = """
    import asyncio, roost, signal, sys

    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background

    async def endless(turn):
        yield "part1"
        while True:
            await asyncio.sleep(0.01)

    service = roost.open("sqlite:///script.db", brains={"endless": endless},
                         limits=roost.Limits(drain=0.3, stop_patience=0.3))
    talk = service.create_talk_session("ann", profile="endless")
    service.add_message("ann", talk, "hello")
    for change in service.stream_messages("ann", talk):
        if change.text == "part1":
            print("ready", flush=True)
            if sys.argv[1] == "forget":
                break
"""


@pytest.mark.parametrize("how", ["forget", "interrupt"])
def test_a_script_that_forgets_to_close_or_gets_a_ctrl_c_ends_by_itself_and_keeps_its_turn(
    tmp_path: Path, service: Open, how: str
) -> None:
    script = textwrap.dedent(SCRIPT)
    with subprocess.Popen(
        [sys.executable, "-c", script, how],
        cwd=tmp_path,
        env=ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        if how == "interrupt":
            child.send_signal(signal.SIGINT)
        _, problem = child.communicate(timeout=60)
    assert child.returncode == (0 if how == "forget" else -signal.SIGINT), problem
    assert ("KeyboardInterrupt" in problem) == (how == "interrupt")
    assert "Exception ignored" not in problem
    assert "destroyed" not in problem
    assert [path.name for path in tmp_path.iterdir()] == ["script.db"]
    again = service({"endless": Puppet()}, name="script.db")
    [talk] = again.list_sessions("ann")
    assert [(m.content, m.status) for m in settled(again, "ann", talk.talk_session_id)] == [
        ("hello", "complete"),
        ("part1", "interrupted"),
        ("heard hello", "complete"),
    ]


def test_a_turn_may_be_drained_any_number_of_times_and_is_still_answered(service: Open) -> None:
    puppet, patience = Puppet(), roost.Limits(drain=0.01, stop_patience=0.3)

    def drained(talk: str | None, words: str) -> str:
        """One life of the program, in which the answer gets as far as these words."""
        roosted = service({"puppet": puppet}, limits=patience)
        if talk is None:
            talk = roosted.create_talk_session("ann", profile="puppet")
            roosted.add_message("ann", talk, "hello")
        eventually(lambda: everything(roosted, "ann", talk or "")[-1].content == words)
        roosted.close()
        return talk

    puppet.rest = ("started", lambda: False)
    talk = drained(None, "started")
    for number in range(5):
        puppet.play(talk, str(number), lambda: False)
        drained(talk, str(number))
    puppet.rest = ()
    last = settled(service({"puppet": puppet}), "ann", talk)[-1]
    assert (last.content, last.status) == ("heard hello", "complete")


def test_talks_and_agents_come_to_their_ends_beside_each_other(service: Open) -> None:
    begun = threading.Semaphore(0)

    async def waits(turn: roost.Turn) -> AsyncIterator[str]:
        begun.release()
        await asyncio.sleep(60)
        yield "never"

    home = service({"waits": waits}, limits=roost.Limits(drain=3.0, stop_patience=0.3))
    home.agents.create("ann", "d", profile="waits")
    home.tasks.send("ann", "d", "wait")
    home.add_message("ann", home.create_talk_session("ann", profile="waits"), "wait")
    assert begun.acquire(timeout=10)
    assert begun.acquire(timeout=10)
    assert 2.9 < seconds(home.close) < 5.8


def test_what_is_sent_just_before_closing_is_not_counted_as_tried(service: Open) -> None:
    """As when one command after the other opens the file, sends, and is gone."""

    async def tells(turn: roost.Turn) -> AsyncIterator[str]:
        await asyncio.sleep(0.01)
        yield f"told {turn.text}"

    with service({"tells": tells}) as home:
        home.agents.create("ann", "d", profile="tells", max_attempts=1, max_concurrent_tasks=20)
    sent: list[str] = []
    for number in range(8):
        with service({"tells": tells}) as home:
            sent.append(home.tasks.send("ann", "d", str(number)))
    with service({"tells": tells}) as home:
        ended = [home.tasks.wait("ann", task, timeout=20) for task in sent]
        assert [(task.status, task.result) for task in ended] == [("done", f"told {n}") for n in range(8)]
        assert home.dead_letters.list("ann") == []
