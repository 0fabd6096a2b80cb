"""Approvals of a talk on every store: each belongs to the answer that asked, also in a branch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.core.journal.approvals import Approval, ApprovalRequest, Decision, Question
from roost.core.journal.steps import Attempt, StepKind, StepOutcome
from roost.core.runs import AnswerEnd, Closing, Verdict
from roost.core.talks.branches import BranchAction, NewBranch
from roost.core.talks.messages import at
from roost.errors import NotFound
from roost.stores.sql import settlement
from roost.stores.sql.journal import approvals, steps
from roost.stores.sql.talks import answers, branches, messages, runs, talk_approvals, talks
from tests.contracts.conftest import Driven


@pytest.fixture
def run(store: Driven) -> Closing:
    """A run of the talk `t` that has answered nothing yet."""
    store.write(talks.create, "t", "ann", "echo", "queue", "", "{}", 10)
    posted = store.write(messages.post, "ann", "t", "pay", None, None, "title", "e-1", 1.0, 10)
    return Closing("run_1", posted.envelope, posted.epoch, Verdict.WAITING, "half", 1.0, 2.0, answer=AnswerEnd())


def place_of(run: Closing) -> Attempt:
    return Attempt("e-1", "t", True, run.epoch, run.run_id, "ann", None)


def ask(store: Driven, run: Closing, name: str, step: int = 1) -> None:
    asked = Approval(name, "ann", None, "t", run.run_id, step, Question.CALL, "pay", {}, at(2.0))
    begun = (StepKind.TOOL, "pay", f"key {step}", "{}", StepOutcome.ASKED, 2.0, ApprovalRequest(asked, None))
    assert store.write(steps.begin, place_of(run), step, *begun)


def shown(store: Driven, talk: str = "t") -> list[tuple[str, int | None, bool]]:
    found = store.read(talk_approvals.listed, "ann", talk, 10)
    return [(one.approval.approval_id, one.seq, one.is_pending) for one in found]


def test_an_approval_is_at_the_answer_of_the_run_that_continues_a_parked_one(store: Driven, run: Closing) -> None:
    ask(store, run, "approval_1")
    assert shown(store) == [("approval_1", None, True)], "there is no answer yet"
    store.write(answers.open_answer, "t", "run_1", run.epoch, "half")
    assert shown(store) == [("approval_1", 2, True)]
    store.write(approvals.decide, "ann", "approval_1", Decision.APPROVED, None, 3.0)
    store.write(steps.begin_again, place_of(run), 1, StepOutcome.BEGUN, 3.0)
    ask(store, run, "approval_2", 2)
    assert shown(store) == [("approval_1", 2, False), ("approval_2", 2, True)]
    store.write(settlement.settle, (run,))
    assert shown(store)[1] == ("approval_2", 2, True), "it is parked, with its answer"
    store.write(approvals.decide, "ann", "approval_2", Decision.DECLINED, "no", 3.0)
    claimed = store.write(runs.claim, "t")
    again = replace(run, run_id="run_2", epoch=claimed.epoch, verdict=Verdict.DONE, text="whole")
    store.write(settlement.settle, (again,))
    assert shown(store) == [("approval_1", 3, False), ("approval_2", 3, False)], "the answer was written anew"
    store.write(branches.create, "ann", "t", NewBranch("u", BranchAction.FORK, None, "e-2"), 10, 0.0)
    assert shown(store, "u") == shown(store)
    for user, talk in (("bob", "t"), ("ann", "nowhere")):
        with pytest.raises(NotFound):
            store.read(talk_approvals.listed, user, talk, 10)


def test_what_nobody_decided_stays_at_the_message_if_its_run_was_stopped(store: Driven, run: Closing) -> None:
    ask(store, run, "approval_1")
    store.write(runs.stop, "ann", "t")
    assert shown(store) == [("approval_1", 1, False)]
