"""Standing permissions on every store: given with a decision, for one owner, agent or profile, and tool."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.journal.approvals import Approval, ApprovalRequest, Decision, Permission, Question
from roost.core.journal.steps import Attempt, StepKind, StepOutcome
from roost.core.talks.messages import at
from roost.core.values.priority import Priority
from roost.errors import Conflict, Invalid, NotFound
from roost.stores.sql.agents import lifecycle
from roost.stores.sql.journal import approvals, permissions, steps
from roost.stores.sql.sending import effects
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import create, take

D = "ann/d"
CALL = Approval("approval_1", "ann", "d", None, "run_1", 1, Question.CALL, "pay", {}, at(2.0), profile="payer")


@pytest.fixture
def mine(store: Driven) -> Attempt:
    create(store, "d")
    task = Envelope("task_1", D, Kind.TASK, "task_1", Priority.NORMAL, "user:ann", "pay", 1.0, 1.0, recorded=True)
    store.write(effects.post, SendTask(task))
    return Attempt("task_1", D, False, take(store, D).epoch, "run_1", "ann", "d")


def ask(store: Driven, place: Attempt, asked: Approval, outcome: StepOutcome = StepOutcome.ASKED) -> None:
    request = ApprovalRequest(asked, None)
    begun = (StepKind.TOOL, asked.tool, f"key {asked.step}", "{}", outcome, 2.0, request)
    assert store.write(steps.begin, place, asked.step, *begun)


def test_a_permission_covers_one_tool_of_one_agent_of_its_owner_until_it_is_revoked(
    store: Driven, mine: Attempt
) -> None:
    ask(store, mine, CALL)
    assert not store.read(permissions.allows, CALL)
    with pytest.raises(NotFound):
        store.write(permissions.allow, "bob", "approval_1", 3.0)
    decided = store.write(permissions.allow, "ann", "approval_1", 3.0)
    assert (decided.approval.decision, decided.approval.profile, decided.is_new) == ("allowed", "payer", True)
    assert store.read(permissions.listed, "ann", 9) == [Permission("ann", "pay", "d", None, at(3.0))]
    assert store.read(permissions.listed, "bob", 9) == []
    assert store.read(permissions.allows, replace(CALL, profile="other")), "an agent may change its profile"
    of_profile = replace(CALL, agent_id=None)
    for other in (replace(CALL, user_id="bob"), replace(CALL, agent_id="e"), replace(CALL, tool="PAY"), of_profile):
        assert not store.read(permissions.allows, other)
    for tool, agent, profile in (("pay", "e", None), ("pay", None, "payer"), ("PAY", "d", None)):
        with pytest.raises(NotFound, match="no permission"):
            store.write(permissions.revoke, "ann", tool, agent, profile)
    store.write(permissions.revoke, "ann", "pay", "d", None)
    assert not store.read(permissions.allows, CALL)
    assert not store.write(permissions.allow, "ann", "approval_1", 9.0).is_new
    assert store.read(permissions.listed, "ann", 9) == [], "the same decision again gives no permission again"


def test_only_a_call_that_is_waited_for_can_be_allowed(store: Driven, mine: Attempt) -> None:
    ask(store, mine, replace(CALL, approval_id="approval_2", step=2, kind=Question.UNKNOWN))
    with pytest.raises(Invalid, match="only a tool call"):
        store.write(permissions.allow, "ann", "approval_2", 3.0)
    ask(store, mine, CALL)
    store.write(approvals.decide, "ann", "approval_1", Decision.APPROVED, None, 3.0)
    with pytest.raises(Conflict, match="approved already"):
        store.write(permissions.allow, "ann", "approval_1", 4.0)
    assert store.read(permissions.listed, "ann", 9) == []


def test_a_call_that_a_permission_allows_is_recorded_as_decided(store: Driven, mine: Attempt) -> None:
    ask(store, mine, replace(CALL, decision=Decision.ALLOWED, decided=at(2.0)), StepOutcome.BEGUN)
    found = store.read(approvals.get, "ann", "approval_1")
    assert (found.decision, found.decided) == ("allowed", at(2.0))


def test_the_permissions_of_an_agent_go_with_it(store: Driven, mine: Attempt) -> None:
    ask(store, mine, CALL)
    store.write(permissions.allow, "ann", "approval_1", 3.0)
    store.write(lifecycle.delete, "ann", "d")
    assert store.read(permissions.listed, "ann", 9) == []
