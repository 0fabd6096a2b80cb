"""Lists of runs, on every store: each user's own, also of runs without a stored user."""

from __future__ import annotations

import pytest

from roost.core.agents.agent import AgentConfig
from roost.errors import NotFound
from roost.ports import Tx
from roost.stores.sql import run_history
from roost.stores.sql.run_history import RunFilter
from roost.stores.sql.tables import runs
from roost.stores.sql.talks import talks
from tests.contracts.conftest import Driven
from tests.contracts.plans import Plan


def listed(store: Driven, user_id: str, limit: int = 9, before: str = "z") -> list[str]:
    return [run.run_id for run in store.read(run_history.listed, user_id, RunFilter(), limit, before)]


AGENT = (
    "INSERT INTO agents (address, user_id, agent_id, config, state, paused, epoch, wants_load, errors, created,"
    f" last_active) VALUES ('ann/d', 'ann', 'd', '{AgentConfig().to_json()}', 'idle', 0, 0, 0, 0, 0, 0)"
)
TALK = (
    "INSERT INTO talks (talk_id, user_id, profile, busy, title, options, created, updated, last_seq, revision, epoch,"
    " waiting, answer_seq) VALUES ('talk_1', 'ann', 'echo', 'queue', '', '{}', 0, 0, 0, 0, 0, 0, 0)"
)


def steps_of_runs(steps: list[str]) -> list[str]:
    """Return the steps that find runs; there is none that sorts."""
    assert not any("TEMP B-TREE" in step for step in steps)
    return [step for step in steps if step.startswith(("SEARCH r ", "SCAN r"))]


@pytest.fixture
def lost(store: Driven) -> Driven:
    """With three lost runs of ann's talk, and two of bob's."""
    for user in ("ann", "bob"):
        store.write(talks.create, f"talk_{user}", user, "echo", "interrupt", "", "{}", 10)
    for number, user in enumerate(["ann", "bob", "ann", "bob", "ann"]):
        store.write(runs.record_lost, f"run_{number}", f"talk_{user}", 1, 1.0, 2.0)
    return store


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (RunFilter(), "runs_by_user (user_id=? AND run_id<?)"),
        (RunFilter(outcome="done"), "runs_by_user (user_id=? AND run_id<?)"),
        (RunFilter(outcome="failed"), "runs_by_user_and_outcome (user_id=? AND outcome=? AND run_id<?)"),
        (RunFilter(kind="mail"), "runs_by_user_and_kind (user_id=? AND kind=? AND run_id<?)"),
        (RunFilter(outcome="done", kind="mail"), "runs_by_user_and_kind (user_id=? AND kind=? AND run_id<?)"),
        (RunFilter(outcome="failed", kind="mail"), "runs_by_user_and_outcome (user_id=? AND outcome=? AND run_id<?)"),
    ],
)
def test_all_runs_of_a_user_are_read_in_the_order_of_an_index(plan: Plan, wanted: RunFilter, index: str) -> None:
    steps = plan(run_history.listed, "ann", wanted, 9, "z")
    assert steps_of_runs(steps) == [f"SEARCH r USING INDEX {index}"] * 2


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ({}, "runs_by_agent (address=? AND run_id<?)"),
        ({"outcome": "failed"}, "runs_by_agent_and_outcome (address=? AND outcome=? AND run_id<?)"),
        ({"kind": "mail"}, "runs_by_agent_and_kind (address=? AND kind=? AND run_id<?)"),
        (
            {"outcome": "failed", "kind": "mail"},
            "runs_by_agent_and_outcome (address=? AND outcome=? AND run_id<?)",
        ),
    ],
)
def test_runs_of_an_agent_are_read_in_the_order_of_an_index(plan: Plan, wanted: dict[str, str], index: str) -> None:
    steps = plan(run_history.listed, "ann", RunFilter(agent_id="d", **wanted), 9, "z", before=AGENT)
    assert steps_of_runs(steps) == [f"SEARCH r USING INDEX {index}"]


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ({}, "runs_and_usage_by_talk (talk_id=? AND run_id<?)"),
        ({"kind": "talk"}, "runs_and_usage_by_talk (talk_id=? AND run_id<?)"),
        ({"outcome": "failed"}, "runs_by_talk_and_outcome (talk_id=? AND outcome=? AND run_id<?)"),
    ],
)
def test_runs_of_a_talk_are_read_in_the_order_of_an_index(plan: Plan, wanted: dict[str, str], index: str) -> None:
    steps = plan(run_history.listed, "ann", RunFilter(talk_id="talk_1", **wanted), 9, "z", before=TALK)
    assert steps_of_runs(steps) == [f"SEARCH r USING INDEX {index}"]


def test_the_usage_of_a_talk_is_summed_up_without_reading_its_runs(plan: Plan) -> None:
    steps = plan(talks.usage, "ann", "talk_1", before=TALK)
    assert "SEARCH runs USING COVERING INDEX runs_and_usage_by_talk (talk_id=?)" in steps


def test_runs_are_filtered_by_outcome_and_kind_of_a_user_a_talk_and_an_agent(lost: Driven) -> None:
    def of_talk(**wanted: str) -> list[str]:
        return [run.run_id for run in lost.read(run_history.listed, "ann", RunFilter("talk_ann", **wanted), 9, "z")]

    def of_user(**wanted: str) -> list[str]:
        return [run.run_id for run in lost.read(run_history.listed, "ann", RunFilter(**wanted), 9, "z")]

    for found in (of_talk, of_user):
        assert found(outcome="lost") == found(kind="talk") == found() == ["run_4", "run_2", "run_0"]
        assert found(outcome="lost", kind="talk") == ["run_4", "run_2", "run_0"]
        assert found(outcome="failed") == found(outcome="done") == found(kind="mail") == []
        assert found(outcome="lost", kind="mail") == found(outcome="done", kind="talk") == []
    with pytest.raises(NotFound):
        lost.read(run_history.listed, "bob", RunFilter("talk_ann", kind="mail"), 9, "z")


def test_a_lost_run_has_the_user_of_its_talk(lost: Driven) -> None:
    assert listed(lost, "ann") == ["run_4", "run_2", "run_0"]
    assert lost.write(run_history.set_users, 9) == 0


def test_runs_that_older_programs_recorded_are_listed_and_get_their_user(lost: Driven) -> None:
    def forget(tx: Tx) -> None:
        tx.write("UPDATE runs SET user_id = NULL WHERE run_id <> 'run_3'")

    lost.write(forget)
    for completed in (3, 1, 0):
        assert listed(lost, "ann") == ["run_4", "run_2", "run_0"]
        assert listed(lost, "ann", 2) == ["run_4", "run_2"]
        assert listed(lost, "ann", 2, "run_2") == ["run_0"]
        assert listed(lost, "bob") == ["run_3", "run_1"]
        assert lost.write(run_history.set_users, 3) == completed
