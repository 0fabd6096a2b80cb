"""T3: what a new message does to a talk that is being answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

import roost
from roost.core.talks.messages import Page
from roost.runtime.talks.live_talk import LiveTalk
from tests.brains_for_tests import Puppet, counter, until
from tests.conftest import Open, eventually, everything, settled


class Scene:
    """A talk whose first answer has said *part1*, and says *part2* when it is released."""

    def __init__(self, service: Open, busy: str = "interrupt") -> None:
        self.puppet, self.go_on = Puppet(), threading.Event()
        self.service = service({"puppet": self.puppet})
        self.talk = self.service.create_talk_session("ann", profile="puppet", busy=busy)
        self.puppet.play(self.talk, "part1", self.go_on.is_set, "part2")
        self.service.add_message("ann", self.talk, "first")
        eventually(lambda: self.log()[-1] == ("part1", "streaming"))

    def send(self, text: str, busy: str | None = None) -> roost.Message:
        return self.service.add_message("ann", self.talk, text, busy=busy)

    def log(self) -> list[tuple[str, str]]:
        return [(m.content, m.status.value) for m in everything(self.service, "ann", self.talk)]

    def ended(self) -> list[tuple[str, str]]:
        settled(self.service, "ann", self.talk)
        return self.log()


@pytest.mark.parametrize("per_message", [False, True])
def test_interrupt_keeps_what_was_said_and_answers_the_new_message(service: Open, per_message: bool) -> None:
    scene = Scene(service, "queue" if per_message else "interrupt")
    scene.send("second", "interrupt" if per_message else None)
    assert scene.ended() == [
        ("first", "complete"),
        ("part1", "interrupted"),
        ("second", "complete"),
        ("heard second", "complete"),
    ]


@pytest.mark.parametrize("per_message", [False, True])
def test_queue_lets_the_answer_end_and_then_answers_all_that_waited_in_one_run(
    service: Open, per_message: bool
) -> None:
    scene = Scene(service, "interrupt" if per_message else "queue")
    for text in ("second", "third"):
        scene.send(text, "queue" if per_message else None)
    scene.go_on.set()
    assert scene.ended() == [
        ("first", "complete"),
        ("part1part2", "complete"),
        ("second", "complete"),
        ("third", "complete"),
        ("heard second\nthird", "complete"),
    ]
    assert [m.content for m in scene.puppet.turns[scene.talk][1].messages] == ["second", "third"]


@pytest.mark.parametrize("per_message", [False, True])
def test_reject_refuses_while_an_answer_is_written_and_disturbs_nothing(service: Open, per_message: bool) -> None:
    scene = Scene(service, "interrupt" if per_message else "reject")
    with pytest.raises(roost.Busy, match="still answering"):
        scene.send("second", "reject" if per_message else None)
    scene.go_on.set()
    assert scene.ended() == [("first", "complete"), ("part1part2", "complete")]
    scene.send("second", "reject")
    assert scene.ended()[-1] == ("heard second", "complete")


@pytest.mark.parametrize("per_message", [False, True])
def test_rollback_withdraws_what_was_said_from_people_and_brains_and_keeps_its_number(
    service: Open, per_message: bool
) -> None:
    scene = Scene(service, "interrupt" if per_message else "rollback")
    scene.send("second", "rollback" if per_message else None)
    assert scene.ended() == [
        ("first", "complete"),
        ("", "withdrawn"),
        ("second", "complete"),
        ("heard second", "complete"),
    ]
    heard = scene.puppet.turns[scene.talk][1]
    assert [m.content for m in (*heard.history, *heard.messages)] == ["first", "second"]


@pytest.mark.parametrize("per_message", [False, True])
def test_collect_waits_for_a_quiet_moment_and_answers_all_at_once(service: Open, per_message: bool) -> None:
    puppet = Puppet()
    roosted = service({"puppet": puppet})
    talk = roosted.create_talk_session("ann", profile="puppet", busy="queue" if per_message else "collect")
    for text in ("one", "two", "three"):
        roosted.add_message("ann", talk, text, busy="collect" if per_message else None)
    whole = settled(roosted, "ann", talk)
    assert [m.content for m in whole] == ["one", "two", "three", "heard one\ntwo\nthree"]
    assert len(puppet.turns[talk]) == 1


def test_collect_during_an_answer_lets_it_end_first(service: Open) -> None:
    scene = Scene(service, "collect")
    for text in ("second", "third"):
        scene.send(text)
    scene.go_on.set()
    assert scene.ended()[1:] == [
        ("part1part2", "complete"),
        ("second", "complete"),
        ("third", "complete"),
        ("heard second\nthird", "complete"),
    ]


async def steerable(turn: roost.Turn) -> AsyncIterator[str]:
    """Says what it is asked to think about, until `enough`."""
    yield f"thinking of {turn.text}"
    while True:
        for message in turn.steered():
            yield f"now {message.content}"
            if message.content == "enough":
                return
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("per_message", [False, True])
def test_steering_continues_the_answer_in_a_new_message(service: Open, per_message: bool) -> None:
    roosted = service({"steerable": steerable})
    talk = roosted.create_talk_session("ann", profile="steerable", busy="interrupt" if per_message else "steer")
    roosted.add_message("ann", talk, "birds")
    for text, before in [("owls", "thinking of birds"), ("enough", "now owls")]:
        eventually(lambda before=before: everything(roosted, "ann", talk)[-1].content == before)  # type: ignore[misc]
        roosted.add_message("ann", talk, text, busy="steer" if per_message else None)
    whole = settled(roosted, "ann", talk)
    assert [m.content for m in whole] == ["birds", "thinking of birds", "owls", "now owls", "enough", "now enough"]
    assert {m.status for m in whole} == {"complete"}
    assert len({m.run_id for m in whole if m.sender == "agent"}) == 1


def test_steering_that_no_brain_takes_is_answered_by_the_next_run(service: Open) -> None:
    scene = Scene(service, "steer")
    scene.send("second")
    scene.send("third")
    scene.go_on.set()
    assert scene.ended()[1:] == [
        ("part1part2", "complete"),
        ("second", "complete"),
        ("third", "complete"),
        ("heard second\nthird", "complete"),
    ]


def test_a_reader_of_a_steered_answer_never_sees_the_words_of_one_message_in_another(
    service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, seen = threading.Event(), set[tuple[int, str]]()
    opened = LiveTalk.opened

    def look(live: LiveTalk, *args: Any) -> None:
        """Record what a reader finds at the very moment a message is opened."""
        opened(live, *args)
        seen.update((m.seq, m.content) for m in (live.newest(1) or Page((), "", False)).messages)

    async def hasty(turn: roost.Turn) -> AsyncIterator[str]:
        await until(release.is_set)
        yield "before"
        turn.steered()
        yield "after"
        await asyncio.sleep(0.01)

    monkeypatch.setattr(LiveTalk, "opened", look)
    roosted = service({"hasty": hasty})
    talk = roosted.create_talk_session("ann", profile="hasty", busy="steer")
    for text in ("one", "two"):
        roosted.add_message("ann", talk, text)
        eventually(lambda: any(w.lanes[talk].run for w in roosted.roost.placement.workers if talk in w.lanes))
    release.set()
    whole = settled(roosted, "ann", talk)
    final = {m.seq: m.content for m in whole}
    assert [m.content for m in whole] == ["one", "two", "before", "after"]
    assert all(final[seq].startswith(content) for seq, content in seen), seen


def test_many_quick_messages_lead_to_one_answer_that_has_heard_all_and_to_no_empty_ones(service: Open) -> None:
    puppet = Puppet()
    roosted = service({"puppet": puppet})
    talk = roosted.create_talk_session("ann", profile="puppet")
    texts = [f"message {n}" for n in range(50)]
    for text in texts:
        roosted.add_message("ann", talk, text)
    whole = settled(roosted, "ann", talk)
    last = puppet.turns[talk][-1]
    heard = [m.content for m in (*last.history, *last.messages) if m.sender == "user"]
    assert heard == texts
    assert all(m.content for m in whole)
    assert (whole[-1].sender, whole[-1].status) == ("agent", "complete")


def test_what_a_brain_keeps_in_its_state_is_there_in_the_next_turn_and_after_reopening(service: Open) -> None:
    roosted = service({"counter": counter})
    talk = roosted.create_talk_session("ann", profile="counter")
    for expected in ("1", "2", "3"):
        roosted.add_message("ann", talk, "again")
        assert settled(roosted, "ann", talk)[-1].content == expected
    roosted.close()
    roosted = service({"counter": counter})
    roosted.add_message("ann", talk, "again")
    assert settled(roosted, "ann", talk)[-1].content == "4"
