"""T3, T4: a run can be stopped wherever it sits; what it said stays, what it would have said never comes."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

import roost
from roost.runtime.talks.lane import TalkLane
from tests.brains_for_tests import Puppet, Stubborn
from tests.conftest import Open, eventually, everything, settled

KINDS = ["sleeping", "blocking", "swallowing", "nested", "tool", "looping"]
SLOW = roost.Limits(drain=0.5, stop_patience=0.3)
PATIENT = replace(SLOW, stop_patience=5.0)
"""For brains that stop when they are asked to."""


@pytest.fixture
def stubborn() -> Iterator[Stubborn]:
    brain = Stubborn()
    yield brain
    brain.gate.set()  # release brains that still wait


def begun(service: roost.AgentService, talk: str, brain: Stubborn) -> None:
    """Ask for the slow answer, and wait until its first part can be read and its brain sits."""
    service.add_message("ann", talk, "slow")
    eventually(lambda: service.get_messages("ann", talk).messages[-1].content == "part1")
    assert brain.inside.wait(10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_message_keeps_part1_as_interrupted_never_shows_part2_and_is_answered(
    service: Open, stubborn: Stubborn, kind: str
) -> None:
    roosted = service({"slow": getattr(stubborn, kind)}, limits=SLOW)
    talk = roosted.create_talk_session("ann", profile="slow")
    begun(roosted, talk, stubborn)
    roosted.add_message("ann", talk, "second")
    whole = settled(roosted, "ann", talk)
    assert [(m.content, m.status) for m in whole] == [
        ("slow", "complete"),
        ("part1", "interrupted"),
        ("second", "complete"),
        ("answer to second", "complete"),
    ]
    stubborn.gate.set()
    roosted.add_message("ann", talk, "third")
    assert settled(roosted, "ann", talk)[: len(whole)] == whole


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "looping"])
def test_a_stop_is_receipted_and_names_what_had_to_be_abandoned(service: Open, stubborn: Stubborn, kind: str) -> None:
    is_abandoned = kind in ("blocking", "swallowing")
    limits = SLOW if is_abandoned else PATIENT
    roosted = service({"slow": getattr(stubborn, kind)}, limits=limits)
    talk = roosted.create_talk_session("ann", profile="slow")
    begun(roosted, talk, stubborn)
    receipt = roosted.stop("ann", talk, wait=5)
    assert receipt.acknowledged is not None
    assert receipt.quiesced is not None
    assert receipt.requested <= receipt.acknowledged <= receipt.quiesced
    assert receipt.abandoned == (("brain slow",) if is_abandoned else ())
    assert [(m.content, m.status) for m in everything(roosted, "ann", talk)][1:] == [("part1", "interrupted")]
    assert not roosted.get_messages("ann", talk).running


def test_a_stop_of_what_is_being_interrupted_already_is_receipted_in_order(service: Open, stubborn: Stubborn) -> None:
    roosted = service({"slow": stubborn.swallowing}, limits=SLOW)
    talk = roosted.create_talk_session("ann", profile="slow")
    begun(roosted, talk, stubborn)
    roosted.add_message("ann", talk, "second")
    eventually(lambda: [w for w in roosted.roost.placement.workers if talk in w.lanes and _told(w.lanes[talk])])
    receipt = roosted.stop("ann", talk, wait=5)
    assert receipt.acknowledged is not None
    assert receipt.quiesced is not None
    assert receipt.requested <= receipt.acknowledged <= receipt.quiesced
    assert [m.content for m in everything(roosted, "ann", talk)] == ["slow", "part1", "second"]


def _told(lane: TalkLane) -> bool:
    """Return whether its run has acknowledged the stop."""
    return lane.run is not None and lane.run.acknowledged is not None


def test_what_an_abandoned_brain_says_later_reaches_no_one(service: Open, stubborn: Stubborn) -> None:
    roosted = service({"slow": stubborn.blocking}, limits=SLOW)
    talk = roosted.create_talk_session("ann", profile="slow")
    begun(roosted, talk, stubborn)
    roosted.stop("ann", talk, wait=5)
    before = roosted.get_messages("ann", talk)
    stubborn.gate.set()
    eventually(lambda: not [t for t in threading.enumerate() if t.name == "roost-brain-slow"])
    assert roosted.get_messages("ann", talk) == before


def test_a_stopped_tool_leaves_no_process_behind(service: Open, stubborn: Stubborn) -> None:
    roosted = service({"slow": stubborn.tool}, limits=PATIENT)
    talk = roosted.create_talk_session("ann", profile="slow")
    begun(roosted, talk, stubborn)
    assert roosted.stop("ann", talk, wait=5).abandoned == ()
    own = ["ps", "--no-headers", "-o", "args,stat", "--ppid", str(os.getpid())]
    eventually(
        lambda: (
            not [
                line
                for line in subprocess.run(own, capture_output=True, text=True, check=False).stdout.splitlines()
                if line.startswith("sleep 60")
            ]
        )
    )


def test_a_brain_that_blocks_its_loop_is_given_up_and_the_others_there_are_answered_elsewhere(
    service: Open, stubborn: Stubborn
) -> None:
    puppet, release = Puppet(), threading.Event()
    limits = roost.Limits(drain=0.5, stop_patience=0.3, talk_workers=1)
    roosted = service({"slow": stubborn.looping, "puppet": puppet}, limits=limits)
    others = [roosted.create_talk_session("bob", profile="puppet") for _ in range(5)]
    for other in others:
        puppet.play(other, "begun ", release.is_set, "and ended")
        puppet.play(other, f"whole for {other}")
        roosted.add_message("bob", other, "hello")
        eventually(lambda other=other: len(roosted.get_messages("bob", other).messages) == 2)  # type: ignore[misc]
    talk = roosted.create_talk_session("ann", profile="slow")
    begun(roosted, talk, stubborn)
    [_, failed] = settled(roosted, "ann", talk)
    assert (failed.content, failed.status) == ("part1", "failed")
    assert "blocked its thread" in (failed.error or "")
    for other in others:
        contents = [(m.content, m.status) for m in settled(roosted, "bob", other)]
        assert contents == [("hello", "complete"), ("begun ", "interrupted"), (f"whole for {other}", "complete")]
    assert roosted.health().workers == 1
    assert roosted.health().restarts == 1


def test_a_loop_that_comes_back_after_it_was_given_up_changes_nothing(service: Open, stubborn: Stubborn) -> None:
    roosted = service({"slow": stubborn.looping}, limits=SLOW)
    talk = roosted.create_talk_session("ann", profile="slow")
    begun(roosted, talk, stubborn)
    whole = settled(roosted, "ann", talk)
    names = {worker.loop.name for worker in roosted.roost.placement.workers}
    stubborn.gate.set()
    eventually(lambda: {t.name for t in threading.enumerate() if t.name.startswith("roost-worker")} == names)
    assert everything(roosted, "ann", talk) == whole
    roosted.add_message("ann", talk, "next")
    assert settled(roosted, "ann", talk)[-1].content == "answer to next"
