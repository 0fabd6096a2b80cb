"""Token usage is recorded, counts towards the profile's limits, and is in facts and metrics."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import roost
from roost import Usage
from roost.brains.profiles import ProfileRegistry
from roost.service import AgentService
from roost.wiring import open_roost
from tests.conftest import QUICK, eventually, settled

HUNDRED = Usage(60, 40, 0.25, "some:model")


async def costly(turn: roost.Turn) -> AsyncIterator[str]:
    """Costs a hundred tokens a word."""
    for word in turn.text.split():
        turn.allowance()
        turn.spend(HUNDRED)
        yield word + " "


@contextmanager
def opened(path: Path, brain: roost.Brain = costly, **limits: float) -> Iterator[AgentService]:
    shelf = ProfileRegistry({"brain": brain}, [roost.Profile("costly", "brain", **limits)], "costly")  # type: ignore[arg-type]
    with AgentService(open_roost(f"sqlite:///{path / 'roost.db'}", shelf, QUICK)) as service:
        yield service


def said(service: AgentService, text: str) -> roost.Message:
    talk = service.create_talk_session("ann")
    service.add_message("ann", talk, text)
    return settled(service, "ann", talk)[-1]


def test_the_cost_of_a_run_is_on_its_record_and_in_its_facts_and_metrics(tmp_path: Path) -> None:
    with opened(tmp_path) as service:
        said(service, "one two")
        facts = eventually(lambda: [f for f in service.monitor.facts("ann").facts if f.name == "RunEnded"])
        used = {"input_tokens": 120, "output_tokens": 80, "model": "some:model", "cost": 0.5}
        assert used.items() <= dict(facts[0].data).items()
        eventually(lambda: service.monitor.metrics()["roost_runs_total"].value)  # counted after the commit
        metrics = service.monitor.metrics()
        assert metrics["roost_tokens_total"].values == {("costly", "input"): 120, ("costly", "output"): 80}
        assert metrics["roost_cost_dollars_total"].value == 0.5
    rows = sqlite3.connect(tmp_path / "roost.db").execute("SELECT model, input_tokens, output_tokens, cost FROM runs")
    assert rows.fetchall() == [("some:model", 120, 80, 0.5)]


def test_the_runs_of_an_agent_tell_what_they_cost(tmp_path: Path) -> None:
    with opened(tmp_path) as service:
        service.agents.create("ann", "d")
        task = service.tasks.send("ann", "d", "one two three")
        service.tasks.wait("ann", task, timeout=10)
        run = service.agents.inspect("ann", "d").runs[0]
        assert (run.input_tokens, run.output_tokens, run.cost, run.model) == (180, 120, 0.75, "some:model")


def test_a_run_that_has_used_up_its_tokens_fails_and_keeps_what_it_said(tmp_path: Path) -> None:
    with opened(tmp_path, tokens_per_run=150) as service:
        last = said(service, "one two three")
        assert (last.content, last.status) == ("one two ", "failed")
        assert "has used up its tokens; ask for less, or raise tokens_per_run" in str(last.error)
        assert said(service, "one").status == "complete"


def test_the_tokens_of_a_day_are_remembered_over_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path, tokens_per_day=250) as service:
        assert said(service, "one two").status == "complete"
    with opened(tmp_path, tokens_per_day=250) as service:
        assert said(service, "three").status == "complete"
        last = said(service, "four")
        assert (last.content, last.status) == ("", "failed")
        assert "used up its tokens for today; continue tomorrow" in str(last.error)


async def recording(turn: roost.Turn) -> AsyncIterator[str]:
    """Spend a hundred tokens a word, each in a recorded call of a model."""
    for word in turn.text.split():
        turn.allowance()
        async with turn.model_call("m", word) as call:
            turn.spend(HUNDRED)  # as the models of providers do, also of a recorded response
            call.response = word
        yield word + " "


def test_live_replays_use_the_tokens_of_the_day(tmp_path: Path) -> None:
    with opened(tmp_path, recording, tokens_per_day=350) as service:
        assert said(service, "one two").status == "complete"
        [run] = service.runs.list("ann")
        for _ in range(3):
            assert service.runs.replay("ann", run.run_id, live=True).is_identical  # without a live call
        replay = service.runs.replay("ann", run.run_id, until=1, live=True)
        assert (replay.error, replay.steps) == (None, ("model m", "model m (live)"))
        replay = service.runs.replay("ann", run.run_id, until=0, live=True)
        assert (replay.text, len(replay.steps)) == ("one ", 1)
        assert "350 are allowed" in str(replay.error)
        assert said(service, "three").status == "failed"
        assert service.runs.replay("ann", run.run_id).is_identical
    with opened(tmp_path, recording, tokens_per_day=350) as service:
        assert said(service, "four").status == "failed"


def test_a_run_that_takes_longer_than_it_may_fails_and_keeps_what_it_said(tmp_path: Path) -> None:
    async def slow(turn: roost.Turn) -> AsyncIterator[str]:
        yield "well "
        await asyncio.sleep(60)

    shelf = ProfileRegistry({"brain": slow}, [roost.Profile("slow", "brain", seconds_per_run=1.0)], "slow")
    with AgentService(open_roost(f"sqlite:///{tmp_path / 'roost.db'}", shelf, QUICK)) as service:
        last = said(service, "one")
        assert (last.content, last.status) == ("well ", "failed")
        assert "took longer than allowed" in str(last.error)


def test_a_blocking_brain_that_takes_longer_than_it_may_can_do_nothing_more(tmp_path: Path) -> None:
    stopped: list[str] = []

    def slow(turn: roost.PlainTurn) -> Iterator[str]:
        yield "well "
        try:
            turn.pause(30)
        except roost.TurnStopped as error:
            stopped.append(str(error))
            turn.mail("user:ann", "too late", "…")

    shelf = ProfileRegistry({"brain": slow}, [roost.Profile("slow", "brain", seconds_per_run=1.0)], "slow")
    with AgentService(open_roost(f"sqlite:///{tmp_path / 'roost.db'}", shelf, QUICK)) as service:
        last = said(service, "one")
        assert (last.content, last.status) == ("well ", "failed")
        assert "took longer than allowed" in str(last.error)
        assert service.mail.inbox("ann") == []
    assert len(stopped) == 1


def test_a_blocking_brain_that_takes_longer_than_it_may_is_asked_to_stop(tmp_path: Path) -> None:
    stopped = threading.Event()

    def slow(turn: roost.PlainTurn) -> Iterator[str]:
        yield "well "
        pause = threading.Event()
        while not turn.stopping:
            pause.wait(0.01)
        stopped.set()

    shelf = ProfileRegistry({"brain": slow}, [roost.Profile("slow", "brain", seconds_per_run=1.0)], "slow")
    with AgentService(open_roost(f"sqlite:///{tmp_path / 'roost.db'}", shelf, QUICK)) as service:
        assert said(service, "one").status == "failed"
        assert stopped.wait(10)


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        (Usage(), HUNDRED, HUNDRED),
        (HUNDRED, HUNDRED, Usage(120, 80, 0.5, "some:model")),
        (HUNDRED, Usage(1, 1), Usage(61, 41, None, "some:model")),
    ],
)
def test_costs_add_up_only_if_all_are_known(first: Usage, second: Usage, whole: Usage) -> None:
    assert first + second == whole


def test_advice_takes_the_place_of_the_usual_one(tmp_path: Path) -> None:
    async def limited(turn: roost.Turn) -> AsyncIterator[str]:
        yield ""
        raise roost.BrainFailed("429", kind="rate_limit", advice="try again in 20 seconds")

    with roost.open(f"sqlite:///{tmp_path / 'roost.db'}", brains={"limited": limited}) as roosted:
        error = str(said(roosted, "one").error)
        assert error.startswith("The model's rate limit is reached; try again in 20 seconds (reference ")
