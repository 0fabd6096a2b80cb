"""The contract of every brain: see `rigs` for those that take part."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.core.talks.side_channels import calls
from roost.runtime.execution.turn_execution import TurnExecution
from roost.service import AgentService
from tests.brains_for_tests import until
from tests.conftest import QUICK, eventually, everything, settled
from tests.contracts.rigs import FAULTS, RIGS, Call, Cut, Rig, Wait

SOON = 5.0
"""A stop takes some milliseconds; machines are slow at times. Abandoned brains are named, which none may be here."""


@pytest.fixture(params=list(RIGS))
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with ExitStack() as stack:
        yield RIGS[request.param](stack)


def those_with(part: str) -> pytest.MarkDecorator:
    """Run the test on the brains that have to do with this at all."""
    names = [name for name, rig in RIGS.items() if part not in rig.without]
    return pytest.mark.parametrize("rig", names, indirect=True)


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Event that a model waits for; set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def begun(rig: Rig, service: AgentService, text: str = "go") -> str:
    talk = service.create_talk_session("ann")
    service.add_message("ann", talk, text)
    eventually(lambda: rig.asked)
    return talk


def stopped(service: AgentService, talk: str) -> None:
    """Stop it: at once, and without leaving anything behind."""
    before = time.monotonic()
    receipt = service.stop("ann", talk, wait=SOON)
    assert receipt.quiesced is not None
    assert receipt.abandoned == ()
    assert time.monotonic() - before < SOON


def test_an_answer_is_seen_while_it_is_written_and_is_the_same_afterwards(
    rig: Rig, tmp_path: Path, held: threading.Event
) -> None:
    rig.play("Hello ", "there, ", Wait(held.is_set), "Ann. 🐦")
    service = rig.open(tmp_path)
    talk = begun(rig, service)
    eventually(lambda: everything(service, "ann", talk)[-1].content == "Hello there, ")
    held.set()
    last = settled(service, "ann", talk)[-1]
    assert (last.content, last.status) == ("Hello there, Ann. 🐦", "complete")


def test_it_is_stopped_before_its_first_word(rig: Rig, tmp_path: Path, held: threading.Event) -> None:
    rig.play(Wait(held.is_set), "never")
    service = rig.open(tmp_path)
    talk = begun(rig, service)
    stopped(service, talk)
    held.set()
    service.add_message("ann", talk, "and now?")
    assert "never" not in "".join(m.content for m in settled(service, "ann", talk))


def test_it_is_stopped_between_two_words_and_what_it_said_stays(
    rig: Rig, tmp_path: Path, held: threading.Event
) -> None:
    rig.play("one ", Wait(held.is_set), "two")
    service = rig.open(tmp_path)
    talk = begun(rig, service)
    eventually(lambda: everything(service, "ann", talk)[-1].content == "one ")
    stopped(service, talk)
    last = everything(service, "ann", talk)[-1]
    assert (last.content, last.status) == ("one ", "interrupted")


@pytest.mark.alone
def test_it_has_stopped_within_100_ms(rig: Rig, tmp_path: Path, held: threading.Event) -> None:
    """Before its first word, between two words, and in a tool. The best of some tries: machines are slow at times."""
    inside = threading.Event()

    @roost.tool
    async def dig() -> str:
        inside.set()
        await until(lambda: False)
        return "never"

    service = rig.open(tmp_path, tools=[dig])
    phases: list[tuple[tuple[Any, ...], Callable[[str], object]]] = [
        ((Wait(held.is_set), "never"), lambda _: True),
        (("one ", Wait(held.is_set)), lambda talk: everything(service, "ann", talk)[-1].content == "one "),
    ]
    if "tools" not in rig.without:
        phases.append((("Digging. ", Call("dig", {})), lambda _: inside.is_set()))

    def took(acts: tuple[Any, ...], begun: Callable[[str], object]) -> float:
        inside.clear()
        asked = len(rig.asked)
        rig.play(*acts)
        talk = service.create_talk_session("ann")
        service.add_message("ann", talk, "go")
        eventually(lambda: len(rig.asked) > asked and begun(talk))
        receipt = service.stop("ann", talk, wait=SOON)
        assert receipt.quiesced is not None
        return (receipt.quiesced - receipt.requested).total_seconds()

    for acts, begun in phases:
        assert any(took(acts, begun) <= 0.1 for _ in range(10))


@those_with("retry")
def test_it_is_stopped_while_it_waits_to_try_again(rig: Rig, tmp_path: Path) -> None:
    rig.fail("provider")
    service = rig.open(tmp_path)
    talk = begun(rig, service)
    stopped(service, talk)
    assert all(m.status != "failed" for m in everything(service, "ann", talk))


@those_with("retry")
@pytest.mark.alone
def test_it_has_stopped_within_100_ms_while_it_waits_to_try_again(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best of some tries: machines are slow at times."""
    waits, pause = threading.Event(), TurnExecution.pause

    async def told(self: TurnExecution, tries: int, at_least: float) -> None:
        waits.set()
        await pause(self, tries, at_least)

    monkeypatch.setattr("roost.runtime.execution.turn_execution.PAUSE", 60.0)
    monkeypatch.setattr(TurnExecution, "pause", told)
    service = rig.open(tmp_path)

    def took() -> float:
        waits.clear()
        rig.fail("provider")
        talk = service.create_talk_session("ann")
        service.add_message("ann", talk, "go")
        assert waits.wait(30)
        receipt = service.stop("ann", talk, wait=SOON)
        assert receipt.quiesced is not None
        return (receipt.quiesced - receipt.requested).total_seconds()

    assert any(took() <= 0.1 for _ in range(10))


def test_the_next_run_sees_all_that_was_said_and_that_it_was_interrupted(
    rig: Rig, tmp_path: Path, held: threading.Event
) -> None:
    rig.play("It is a cat.")
    rig.play("Its name is", Wait(held.is_set))
    service = rig.open(tmp_path)
    talk = begun(rig, service, "what is it?")
    settled(service, "ann", talk)
    service.add_message("ann", talk, "what is its name?")
    eventually(lambda: everything(service, "ann", talk)[-1].content == "Its name is")
    service.add_message("ann", talk, "never mind")
    settled(service, "ann", talk)
    shown = rig.asked[-1]
    for text in ("what is it?", "It is a cat.", "what is its name?", "Its name is", "interrupted", "never mind"):
        assert text in shown


def test_an_answer_that_breaks_off_fails_as_the_provider_and_keeps_what_it_said(rig: Rig, tmp_path: Path) -> None:
    rig.play("half of ", Cut())
    service = rig.open(tmp_path)
    talk = begun(rig, service)
    last = settled(service, "ann", talk)[-1]
    assert (last.content, last.status) == ("half of ", "failed")
    assert "could not be reached or took too long" in str(last.error)
    service.add_message("ann", talk, "again")
    assert settled(service, "ann", talk)[-1].status == "complete"


@those_with("faults")
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_distinguished(rig: Rig, tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.runtime.execution.turn_execution.PAUSE", 0.01)
    rig.fail(fault)
    service = rig.open(tmp_path)
    talk = begun(rig, service)
    last = settled(service, "ann", talk)[-1]
    assert last.status == "failed"
    facts = eventually(lambda: [f for f in service.monitor.facts("ann").facts if f.name == "RunEnded"])
    assert facts[-1].data["fault"] == fault


@those_with("tools")
def test_it_calls_a_tool_and_the_next_run_sees_what_came_of_it(rig: Rig, tmp_path: Path) -> None:
    @roost.tool
    async def price(sku: str) -> float:
        """Return the price."""
        return 4.25 if sku == "tea" else 0.0

    rig.play("Let me see.", Call("price", {"sku": "tea"}))
    rig.play("It costs 4.25.")
    service = rig.open(tmp_path, tools=[price])
    talk = begun(rig, service, "what is tea?")
    last = settled(service, "ann", talk)[-1]
    assert last.status == "complete"
    assert last.content.startswith("Let me see.")
    assert last.content.endswith("It costs 4.25.")
    [call] = [call for note in last.notes if note.channel == "tools" for call in calls(note.text)]
    assert (call.tool, call.arguments, call.result) == ("price", {"sku": "tea"}, "4.25")
    assert call.seconds is not None
    assert "4.25" in rig.asked[1]
    service.add_message("ann", talk, "sure?")
    settled(service, "ann", talk)
    for text in ("price", "tea", "4.25", "sure?"):
        assert text in rig.asked[2]


@those_with("tools")
def test_runs_of_talks_and_meetings_are_replayed_and_ask_neither_model_nor_tool(rig: Rig, tmp_path: Path) -> None:
    called = []

    @roost.tool
    async def price(sku: str) -> float:
        """Return the price."""
        called.append(sku)
        return 4.25

    for _ in range(2):
        rig.play("Let me see. ", Call("price", {"sku": "tea"}))
        rig.play("It costs 4.25.")
    service = rig.open(tmp_path, tools=[price])
    settled(service, "ann", begun(rig, service, "what is tea?"))
    service.agents.create("ann", "d")
    meeting = service.meetings.call("ann", "Tea", required=["agent:d"])
    eventually(lambda: service.meetings.view("ann", meeting).phase == "running")
    service.meetings.say("ann", meeting, "what is tea?")
    eventually(lambda: service.runs.list("ann", agent="d"))
    asked, runs = len(rig.asked), service.runs.list("ann")
    assert [(run.kind, run.outcome) for run in runs] == [("meeting", "done"), ("talk", "done")]
    for run in runs:
        replay = service.runs.replay("ann", run.run_id)
        assert replay.recorded_text.endswith("It costs 4.25.")
        assert (replay.diff, replay.text) == ("", replay.recorded_text)
        assert "tool price" in replay.steps
    assert (called, len(rig.asked)) == (["tea", "tea"], asked)


@those_with("tools")
def test_it_is_stopped_in_a_tool_which_hears_of_it_and_the_call_is_stated_as_interrupted(
    rig: Rig, tmp_path: Path
) -> None:
    inside, left = threading.Event(), threading.Event()

    @roost.tool
    async def dig() -> str:
        inside.set()
        try:
            await until(lambda: False)
        finally:
            left.set()
        return "never"

    rig.play("Digging. ", Call("dig", {}))
    service = rig.open(tmp_path, tools=[dig])
    talk = begun(rig, service, "dig")
    assert inside.wait(10)
    stopped(service, talk)
    assert left.wait(10)
    last = everything(service, "ann", talk)[-1]
    assert (last.content, last.status) == ("Digging. ", "interrupted")
    service.add_message("ann", talk, "and?")
    assert settled(service, "ann", talk)[-1].status == "complete"
    assert "dig" in rig.asked[-1]
    assert "is not known" in rig.asked[-1], "the call has a result, which says so"


@those_with("tools")
def test_a_run_is_suspended_for_an_approval_and_continues_where_it_was(rig: Rig, tmp_path: Path) -> None:
    acted = []

    @roost.tool(approval=True)
    async def order(sku: str) -> str:
        """Order it."""
        acted.append(sku)
        return "ordered"

    rig.play("Let me see. ", Call("order", {"sku": "tea"}))
    rig.play("It is done.")
    service = rig.open(tmp_path, tools=[order], limits=replace(QUICK, rest_after=0.05))
    talk = begun(rig, service, "order tea")
    [asked] = eventually(lambda: service.approvals.list("ann"))
    eventually(lambda: service.runs.list("ann", talk=talk))
    assert [run.outcome for run in service.runs.list("ann", talk=talk)] == ["waiting"]
    assert everything(service, "ann", talk)[-1].content == "Let me see. "
    service.add_message("ann", talk, "and milk?", busy="queue")
    service.approvals.approve("ann", asked.approval_id)
    said = [m.content for m in settled(service, "ann", talk) if m.status != "withdrawn"]
    assert said[:2] == ["order tea", "and milk?"]
    assert said[2].startswith("Let me see. ")
    assert said[2].endswith("It is done.")
    assert said[3:] == ["ok"]
    assert len(rig.asked) == 3, "no model is asked twice"
    assert "milk" not in rig.asked[1]
    assert acted == ["tea"]


def test_it_never_blocks_the_loop(rig: Rig, tmp_path: Path) -> None:
    """Many of them share two workers; while they write, a loop that they block would be given up."""
    for _ in range(12):
        rig.play(*["word "] * 50)
    service = rig.open(tmp_path)
    talks = [service.create_talk_session("ann") for _ in range(12)]
    for talk in talks:
        service.add_message("ann", talk, "go")
    for talk in talks:
        assert settled(service, "ann", talk)[-1].content == "word " * 50
    assert service.health().restarts == 0


@those_with("prompt")
def test_it_plays_in_a_meeting_by_what_it_says(rig: Rig, tmp_path: Path) -> None:
    rig.play("I take ", "5.")
    service = rig.open(tmp_path)
    service.agents.create("ann", "d")
    players = ["agent:d", "user:ann"]
    game = service.meetings.call(
        "ann", "A game", required=players[:1], game="tic-tac-toe", setting={"players": players}
    )
    eventually(lambda: service.meetings.view("ann", game).words)
    moved = service.meetings.view("ann", game)
    assert moved.board.startswith(" 1 | 2 | 3\n---+---+---\n 4 | X | 6")
    assert [(word.sender, word.text) for word in moved.words] == [("agent:ann/d", "I take 5.")]
    for text in ("A game", " 4 | 5 | 6", "You play X. Say the number of the cell you take"):
        assert text in rig.asked[0]
    rig.play("1")
    service.meetings.move("ann", game, {"cell": 9})
    eventually(lambda: service.meetings.view("ann", game).moves == 3)
    assert rig.asked[-1].count("I take 5.") == 1
