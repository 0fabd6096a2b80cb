"""Lists of runs, on every store: each user's own, also of runs without a stored user."""

from __future__ import annotations

import pytest

from roost.ports import Tx
from roost.stores.sql import run_history
from roost.stores.sql.run_history import RunFilter
from roost.stores.sql.tables import runs
from roost.stores.sql.talks import talks
from tests.contracts.conftest import Driven
from tests.contracts.plans import Plan


def listed(store: Driven, user_id: str, limit: int = 9, before: str = "z") -> list[str]:
    return [run.run_id for run in store.read(run_history.listed, user_id, RunFilter(), limit, before)]


@pytest.fixture
def lost(store: Driven) -> Driven:
    """With three lost runs of ann's talk, and two of bob's."""
    for user in ("ann", "bob"):
        store.write(talks.create, f"talk_{user}", user, "echo", "interrupt", "", "{}", 10)
    for number, user in enumerate(["ann", "bob", "ann", "bob", "ann"]):
        store.write(runs.record_lost, f"run_{number}", f"talk_{user}", 1, 1.0, 2.0)
    return store


@pytest.mark.parametrize("outcome", [None, "done", "failed"])
def test_all_runs_of_a_user_are_read_in_the_order_of_an_index(plan: Plan, outcome: str | None) -> None:
    steps = plan(run_history.listed, "ann", RunFilter(outcome=outcome, kind="talk"), 9, "z")
    found = [step for step in steps if step.startswith(("SEARCH r ", "SCAN r"))]
    assert len(found) == 2
    index = "runs_by_user_and_outcome" if outcome == "failed" else "runs_by_user"
    assert all(f"{index} (user_id=?" in step for step in found)
    assert not any("TEMP B-TREE" in step for step in steps)


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
