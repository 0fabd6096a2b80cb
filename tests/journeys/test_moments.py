"""Moments that are hard to meet: what happens between a commit and its being heard of."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.runtime.handlers.talks.talks import Talks
from roost.stores.engine import Engine
from roost.stores.sql.talks import answers
from tests.brains_for_tests import Puppet, until
from tests.conftest import Open, eventually, everything, settled


class SameBatch:
    """Holds the writer when a lane is about to be taken over, until something else is queued behind that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, other: str) -> None:
        self.claiming = threading.Event()
        self._queued = threading.Event()
        self._other = other
        self._write = Engine.write
        monkeypatch.setattr(Engine, "write", lambda *args, **more: self._queue(*args, **more))

    def _queue(self, engine: Engine, op: Callable[..., Any], *args: Any, **more: Any) -> Any:
        if op.__name__ == "claim" and not self.claiming.is_set():
            self._write(engine, lambda tx: self._queued.wait(10))
            pending = self._write(engine, op, *args, **more)
            self.claiming.set()
            return pending
        pending = self._write(engine, op, *args, **more)
        if op.__name__ == self._other:
            self._queued.set()
        return pending


def left_unfinished(service: Open, puppet: Puppet) -> str:
    """A talk whose answer was under way when the program ended."""
    roosted = service({"puppet": puppet}, limits=roost.Limits(drain=0.01, stop_patience=0.3))
    talk = roosted.create_talk_session("ann", profile="puppet", busy="queue")
    puppet.play(talk, "begun", lambda: False)
    roosted.add_message("ann", talk, "first")
    eventually(lambda: everything(roosted, "ann", talk)[-1].content == "begun")
    roosted.close()
    return talk


@pytest.mark.usefixtures("no_polling")
def test_a_message_committed_right_after_its_lane_was_taken_over_is_answered_too(
    service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    puppet = Puppet()
    talk = left_unfinished(service, puppet)
    moment = SameBatch(monkeypatch, "post")
    roosted = service({"puppet": puppet})
    assert moment.claiming.wait(20)
    roosted.add_message("ann", talk, "second")
    eventually(lambda: not roosted.get_messages("ann", talk).running)
    heard = [m.content for turn in puppet.turns[talk][1:] for m in turn.messages]
    assert heard == ["first", "second"]


def test_a_stop_committed_right_after_its_lane_was_taken_over_stops_it(
    service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    puppet = Puppet()
    talk = left_unfinished(service, puppet)
    moment = SameBatch(monkeypatch, "stop")
    roosted = service({"puppet": puppet})
    assert moment.claiming.wait(20)
    roosted.stop("ann", talk, wait=5)
    roosted.add_message("ann", talk, "second")
    whole = settled(roosted, "ann", talk)
    assert [m.content for m in whole] == ["first", "begun", "second", "heard second"]


def test_a_reader_who_finds_a_message_in_the_store_before_the_ram_has_it_is_shown_it(
    service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    roosted = service({"puppet": Puppet()})
    talk = roosted.create_talk_session("ann", profile="puppet")
    committed, read = threading.Event(), threading.Event()
    posted = Talks._posted

    def late(self: Talks, *args: Any) -> None:
        committed.set()
        read.wait(10)
        posted(self, *args)

    monkeypatch.setattr(Talks, "_posted", late)
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(roosted.add_message, "ann", talk, "hello")
        assert committed.wait(20)
        try:
            page = roosted.get_messages("ann", talk, before=10)
        finally:
            read.set()
    assert page.messages in ((), (sending.result(),))
    assert [m.content for m in settled(roosted, "ann", talk)] == ["hello", "heard hello"]


def test_an_interruption_just_before_a_steered_answer_is_split_leaves_what_was_read_as_it_was(
    service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    steer, queued = threading.Event(), {"post": threading.Event(), "split_answer": threading.Event()}
    write = Engine.write

    def watched(engine: Engine, op: Callable[..., Any], *args: Any, **more: Any) -> Any:
        pending = write(engine, op, *args, **more)
        if op.__name__ in queued:
            queued[op.__name__].set()
        return pending

    async def steered(turn: roost.Turn) -> AsyncIterator[str]:
        yield "before "
        await until(steer.is_set)
        turn.steered()
        yield "after"
        await until(lambda: False)

    roosted = service({"steered": steered})
    talk = roosted.create_talk_session("ann", profile="steered", busy="steer")
    roosted.add_message("ann", talk, "one")
    eventually(lambda: everything(roosted, "ann", talk)[-1].content == "before ")
    roosted.add_message("ann", talk, "two")
    monkeypatch.setattr(Engine, "write", watched)
    with ThreadPoolExecutor(1) as threads:
        roosted.roost.context.store.write(lambda tx: queued["split_answer"].wait(20))
        interrupting = threads.submit(roosted.add_message, "ann", talk, "three", busy="interrupt")
        assert queued["post"].wait(20)
        steer.set()
        interrupting.result(30)
    roosted.stop("ann", talk, wait=5)
    assert everything(roosted, "ann", talk)[1].content.startswith("before ")


def test_a_call_at_the_moment_of_closing_fails_and_does_not_hang(
    service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    roosted = service()
    talk = roosted.create_talk_session("ann", profile="echo")
    host, asked, closed = roosted.roost.context.host, threading.Event(), threading.Event()
    pending = host.pending

    def slow() -> Any:
        if threading.current_thread().name.startswith("asking"):
            asked.set()
            closed.wait(10)
        return pending()

    monkeypatch.setattr(host, "pending", slow)
    told: list[BaseException] = []

    def ask() -> None:
        try:
            roosted.rename("ann", talk, "too late")
        except roost.Unavailable as error:
            told.append(error)

    asking = threading.Thread(target=ask, name="asking", daemon=True)
    asking.start()
    assert asked.wait(20)
    roosted.close()
    closed.set()
    asking.join(20)
    assert [str(error) for error in told] == ["this Roost is closed"]


def test_a_checkpoint_that_could_not_be_written_leaves_no_hole_after_a_crash(
    service: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    puppet, step = Puppet(), [threading.Event() for _ in range(3)]
    roosted = service({"puppet": puppet}, limits=roost.Limits(drain=0.1, stop_patience=0.3, checkpoint_every=0.01))
    talk = roosted.create_talk_session("ann", profile="puppet")
    puppet.play(talk, "one ", step[0].is_set, "two ", step[1].is_set, "three ", step[2].is_set)
    saved, fails = list[str](), threading.Event()
    checkpoint = answers.checkpoint

    def unreliable(tx: Any, *args: Any) -> None:
        if fails.is_set():
            fails.clear()
            raise roost.Unavailable("the disk is full")
        checkpoint(tx, *args)
        saved.append(args[4])

    monkeypatch.setattr("roost.stores.sql.talks.answers.checkpoint", unreliable)
    roosted.add_message("ann", talk, "go")
    eventually(lambda: everything(roosted, "ann", talk)[-1].content == "one ")
    fails.set()
    step[0].set()
    eventually(lambda: not fails.is_set())
    step[1].set()
    eventually(lambda: "three " in "".join(saved))
    for ending in ("", "-wal"):
        (tmp_path / f"crashed.db{ending}").write_bytes((tmp_path / f"roost.db{ending}").read_bytes())
    again = service({"puppet": puppet}, name="crashed.db")
    kept = eventually(lambda: [m for m in everything(again, "ann", talk) if m.status == "interrupted"])
    assert "one two three ".startswith(kept[0].content), kept[0].content
