"""B3 on every store: people are asked about steps and decide once; then the suspended run continues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from roost.core.envelopes.effects import Publish, SendMail, SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.journal.approvals import Approval, ApprovalRequest, Decision, Question
from roost.core.journal.steps import Attempt, StepKind, StepOutcome
from roost.core.runs import AnswerEnd, Closing, Verdict
from roost.core.talks.messages import at
from roost.core.talks.runs import TalkUpdate
from roost.core.values.priority import Priority
from roost.errors import Conflict, NotFound
from roost.stores.sql import run_history, settlement, tasks
from roost.stores.sql.journal import approvals, run_inputs, steps
from roost.stores.sql.sending import effects
from roost.stores.sql.talks import messages, talks
from tests.contracts.conftest import Driven
from tests.contracts.plans import Plan
from tests.contracts.sql.test_events import LAST, create, take

D = "ann/d"


@pytest.fixture(autouse=True)
def mine(store: Driven) -> Attempt:
    """A try of a task that an agent works on."""
    create(store, "d")
    task = Envelope("task_1", D, Kind.TASK, "task_1", Priority.NORMAL, "user:ann", "pay", 1.0, 1.0, recorded=True)
    store.write(effects.post, SendTask(task))
    return Attempt("task_1", D, False, take(store, D).epoch, "run_1", "ann", "d", turn_input={"attempt": 1})


def asks(store: Driven, place: Attempt, name: str, number: int = 1) -> None:
    talk = place.holder if place.is_talk else None
    approval = Approval(
        name, "ann", place.agent_id, talk, place.run_id, number, Question.CALL, "pay", {"euros": 5}, at(2.0)
    )
    begun = (StepKind.TOOL, "pay", f"key {number}", "{}", StepOutcome.ASKED, 2.0, ApprovalRequest(approval, None))
    assert store.write(steps.begin, place, number, *begun)


def closing(store: Driven, place: Attempt, verdict: Verdict, **more: Any) -> Closing:
    [envelope] = take(store, D).envelopes or [None]
    assert envelope is not None
    return Closing(place.run_id, envelope, store.read(epoch), verdict, "", 1.0, 3.0, journaled=True, **more)


def epoch(tx: Any) -> int:
    return int(tx.one("SELECT epoch FROM agents WHERE address = 'ann/d'")[0])


def test_an_approval_is_decided_once_by_its_owner(store: Driven, mine: Attempt) -> None:
    asks(store, mine, "approval_1")
    for user, name in (("bob", "approval_1"), ("ann", "approval_9")):
        with pytest.raises(NotFound, match="no approval"):
            store.write(approvals.decide, user, name, Decision.APPROVED, None, 3.0)
    decided = store.write(approvals.decide, "ann", "approval_1", Decision.DECLINED, "too dear", 3.0)
    assert (decided.approval.decision, decided.approval.note, decided.was_parked) == ("declined", "too dear", False)
    again = store.write(approvals.decide, "ann", "approval_1", Decision.DECLINED, "too dear", 4.0)
    assert again.approval.decided == at(3.0), "the same again is the same"
    with pytest.raises(Conflict, match="was declined already"):
        store.write(approvals.decide, "ann", "approval_1", Decision.APPROVED, None, 4.0)


def test_pending_approvals_are_found_beside_many_decided_ones(plan: Plan) -> None:
    assert any("approvals_pending" in step for step in plan(approvals.listed, "ann", False, 9, LAST))
    assert any("approvals_by_user" in step for step in plan(approvals.listed, "ann", True, 9, LAST))


def test_of_a_step_the_newest_question_counts(store: Driven, mine: Attempt) -> None:
    assert store.read(approvals.of_step, "task_1", 1) is None
    asks(store, mine, "approval_1")
    store.write(approvals.decide, "ann", "approval_1", Decision.APPROVED, None, 3.0)
    newer = Approval("approval_2", "ann", "d", None, "run_2", 1, Question.UNKNOWN, "pay", {}, at(4.0))
    assert store.write(
        steps.begin_again, replace(mine, run_id="run_2"), 1, StepOutcome.ASKED, 4.0, ApprovalRequest(newer, None)
    )
    assert store.read(approvals.of_step, "task_1", 1).approval_id == "approval_2"
    assert store.read(approvals.of_step, "task_1", 2) is None
    assert [one.approval_id for one in store.read(approvals.listed, "ann", False, 10, LAST)] == ["approval_2"]
    assert len(store.read(approvals.listed, "ann", True, 10, LAST)) == 2
    assert store.write(tasks.cancel, "ann", "task_1", 5.0).status == "cancelled"
    assert store.read(approvals.listed, "ann", False, 10, LAST) == []
    with pytest.raises(Conflict, match="no run waits"):
        store.write(approvals.decide, "ann", "approval_2", Decision.APPROVED, None, 6.0)


def test_a_parked_envelope_is_resumed_after_the_decision(store: Driven, mine: Attempt) -> None:
    asks(store, mine, "approval_1")
    assert store.write(settlement.settle, (closing(store, mine, Verdict.WAITING),))[0].taken
    assert not take(store, D).envelopes, "it waits for a person"
    decided = store.write(approvals.decide, "ann", "approval_1", Decision.APPROVED, None, 5.0)
    assert decided.was_parked
    assert [e.envelope_id for e in take(store, D).envelopes] == ["task_1"]


def ended(store: Driven, c: Closing) -> TalkUpdate:
    [settled] = store.write(settlement.settle, (c,))
    assert isinstance(settled.talk, TalkUpdate)
    return settled.talk


def test_the_run_of_a_talk_is_parked_until_the_decision(store: Driven) -> None:
    store.write(talks.create, "t", "ann", "echo", "queue", "", "{}", 10)
    posted = store.write(messages.post, "ann", "t", "pay", None, None, "title", "e-1", 1.0, 10)
    place = Attempt("e-1", "t", True, posted.epoch, "run_t", "ann", None)
    asks(store, place, "approval_1")
    waiting = (posted.epoch, Verdict.WAITING, "half", 1.0, 2.0)
    waits = Closing("run_t", posted.envelope, *waiting, answer=AnswerEnd())
    settled = ended(store, waits)
    assert (settled.parked, settled.left) == (True, ())
    decided = store.write(approvals.decide, "ann", "approval_1", Decision.APPROVED, None, 5.0)
    assert (decided.was_parked, decided.talker) == (True, "ann")
    asks(store, replace(place, run_id="run_u"), "approval_2", 2)
    store.write(approvals.decide, "ann", "approval_2", Decision.APPROVED, None, 6.0)
    settled = ended(store, replace(waits, run_id="run_u"))
    assert not settled.parked
    assert [e.envelope_id for e in settled.left] == ["e-1"], "they have decided meanwhile: it is run again at once"
    assert ended(store, replace(waits, envelope=replace(posted.envelope, lane="nowhere"))).gone


def test_after_a_failure_what_failed_is_not_used_again(store: Driven, mine: Attempt) -> None:
    store.write(steps.open, mine, 2.0)
    for number, (kind, outcome) in enumerate(
        [("model", "done"), ("tool", "done"), ("tool", "failed"), ("model", "done")], start=1
    ):
        store.write(steps.record, mine, number, kind, "x", "{}", '"r"', StepOutcome(outcome), 2.0)
    store.write(steps.prepare_retry, "task_1")
    found = {one.number: one.outcome for one in store.read(steps.recorded, ["task_1"]) if one.kind != StepKind.GIVEN}
    assert found == {1: "done", 2: "done", 3: "retried", 4: "stale"}, "nothing was done on what the model said last"
    assert store.read(steps.recorded, ["task_1"])[0].kind == StepKind.GIVEN


def test_of_a_try_that_has_done_nothing_nothing_is_used_again(store: Driven, mine: Attempt) -> None:
    store.write(steps.open, mine, 2.0)
    store.write(steps.record, mine, 1, "tool", "x", "{}", '"no"', StepOutcome.FAILED, 2.0)
    store.write(steps.prepare_retry, "task_1")
    assert [(one.kind, one.outcome) for one in store.read(steps.recorded, ["task_1"])] == [("tool", "retried")]


def test_a_try_that_may_not_notes_nothing(store: Driven, mine: Attempt) -> None:
    store.write(steps.record, replace(mine, epoch=99), 1, "tool", "x", "{}", '"r"', StepOutcome.DONE, 2.0)
    assert store.read(steps.recorded, ["task_1"]) == ()


def test_the_traceback_of_a_failed_try_is_kept_with_its_run(store: Driven, mine: Attempt) -> None:
    failed = closing(store, mine, Verdict.DEAD, reason="It failed.", fault="internal", traceback="at ä.py:3")
    assert store.write(settlement.settle, (failed,))[0].taken
    assert store.read(run_history.entry, "ann", "run_1").traceback == "at ä.py:3"


def test_a_run_is_read_by_its_owner_with_its_steps_and_what_it_was_about(store: Driven, mine: Attempt) -> None:
    store.write(steps.record, mine, 1, "tool", "pay", '{"euros": 5}', '"paid"', StepOutcome.DONE, 2.0)
    done = closing(store, mine, Verdict.DONE, turn_input='{"profile": "p"}')
    assert store.write(settlement.settle, (replace(done, text="5 paid"),))[0].taken
    logged = store.read(run_history.entry, "ann", "run_1")
    assert (logged.text, logged.is_whole, logged.turn_input) == ("5 paid", True, '{"profile": "p"}')
    assert [(step.name, step.request, step.result) for step in logged.steps] == [("pay", {"euros": 5}, "paid")]
    replayed = store.read(run_history.entry, "ann", "run_1", True)
    assert ([step.name for step in replayed.recorded], replayed.steps, logged.recorded) == (["pay"], (), ())
    assert store.read(run_inputs.source, logged.run, "task_1") == '{"sender": "user:ann", "text": "pay"}'
    assert store.read(run_inputs.source, logged.run, "task_gone") is None
    for user, run in (("bob", "run_1"), ("ann", "run_9")):
        with pytest.raises(NotFound, match="no run"):
            store.read(run_history.entry, user, run)


def test_what_runs_of_mails_and_events_were_about_is_found_while_it_is_kept(store: Driven, mine: Attempt) -> None:
    letter = SendMail(
        "mail_1", None, "user:ann", f"agent:{D}", "news", "well", Priority.NORMAL, 1.0, None, None, None, None
    )
    store.write(effects.post, letter)
    store.write(effects.post, Publish("event_1", "ann", "alarm", {"n": 1}, Priority.NORMAL, "user:ann", 1.0))
    done = closing(store, mine, Verdict.DONE)
    assert store.write(settlement.settle, (done,))[0].taken
    run = store.read(run_history.entry, "ann", "run_1").run
    about = {kind: store.read(run_inputs.source, replace(run, kind=kind), name) for kind, name in KEPT}
    assert about == {
        "mail": '{"sender": "user:ann", "text": "well", "subject": "news"}',
        "event": '{"sender": "user:ann", "text": "alarm", "data": {"n": 1}}',
    }


KEPT = (("mail", "mail_1"), ("event", f"event_1:{D}"))
