"""A11 on every store: only a try that still may asks others, and puts steps on record; what came of one is true."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.requests import Answered, Request, request_name
from roost.core.journal.steps import Attempt, Recorded, StepKind, StepOutcome
from roost.core.values.priority import Priority
from roost.stores.sql.journal import steps
from roost.stores.sql.sending import effects, requests
from roost.stores.sql.sending import requests as requests_sql
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import create

D, E = "ann/d", "ann/e"


@pytest.fixture(autouse=True)
def agents(store: Driven) -> None:
    """Two of them; the first has a task."""
    for name in ("d", "e"):
        create(store, name)
    store.write(effects.post, SendTask(envelope("task_1", D)))


def envelope(name: str, address: str, ask: str | None = None) -> Envelope:
    return Envelope(name, address, Kind.TASK, name, Priority.NORMAL, f"agent:{D}", "what?", 1.0, 1.0, ask=ask)


def request(number: int, *, epoch: int = 0, task: str = "task_1", to: str = E) -> Request:
    return Request(task, D, epoch, number, envelope(f"env_{number}", to, request_name(D, task, number)))


def waiting(store: Driven) -> list[str]:
    rows = store.read(lambda tx: tx.read("SELECT envelope_id FROM inbox WHERE ask IS NOT NULL ORDER BY 1"))
    return [row[0] for row in rows]


def test_only_a_turn_that_still_may_asks(store: Driven) -> None:
    asked = (request(1), request(2, epoch=7), request(3, task="task_gone"), request(4, to="ann/nobody"))
    assert store.write(requests_sql.ask, asked) == (True, None, None, False)
    assert waiting(store) == ["env_1"]
    assert [one.number for one in recorded(store)] == [1]


def test_an_answer_is_given_once_and_what_was_given_up_stays_so(store: Driven) -> None:
    store.write(requests_sql.ask, (request(1), request(2)))
    assert store.write(requests_sql.answer_to, "task_1", 1, False) is None
    assert store.write(requests_sql.answer_to, "task_1", 1, True) == '{"timeout": true}'
    names = [request_name(D, "task_1", number) for number in (1, 2)]
    given = store.write(requests.set_answers, [Answered(name, {"text": "yes"}) for name in names])
    assert given == {names[1]}, "nobody waits for the other any more"
    assert store.write(requests_sql.answer_to, "task_1", 1, True) == '{"timeout": true}'
    assert store.write(requests_sql.answer_to, "task_1", 2, True) == '{"text": "yes"}'


def test_a_withdrawn_request_is_answered_as_cancelled(store: Driven) -> None:
    store.write(requests_sql.ask, (request(1), request(2)))
    place = Attempt("task_1", D, False, 0, "run_1", "ann", "d")
    assert store.write(requests_sql.withdraw, place, [(1, E)], 2.0) == ((E, "env_1"),)
    assert store.write(requests_sql.answer_to, "task_1", 1, False) == '{"cancelled": true}'
    assert store.write(requests_sql.answer_to, "task_1", 2, False) is None
    store.write(lambda tx: tx.write("UPDATE agents SET state = 'sleeping' WHERE address = :e", {"e": E}))
    assert store.write(requests_sql.withdraw, place, [(2, E)], 2.0) == ()
    assert waiting(store) == ["env_1"], "one that sleeps has nothing in memory, so its envelope is removed"


def recorded(store: Driven) -> tuple[Recorded, ...]:
    found: tuple[Recorded, ...] = store.read(steps.recorded, ["task_1"])
    return found


def test_only_a_try_that_still_may_puts_steps_on_record(store: Driven) -> None:
    mine = Attempt("task_1", D, False, 0, "run_1", "ann", "d", turn_input={"attempt": 1})
    begun = (StepKind.TOOL, "pay", "key", "{}", StepOutcome.BEGUN, 2.0)
    for other in (replace(mine, epoch=7), replace(mine, envelope_id="task_gone")):
        assert store.write(steps.open, other, 2.0) is False
        assert store.write(steps.begin, other, 1, *begun) is False
        assert store.write(steps.begin_again, other, 1, StepOutcome.BEGUN, 2.0) is False
    assert recorded(store) == ()
    assert store.write(steps.begin, mine, 1, *begun)
    store.write(steps.end, replace(mine, run_id="run_2"), 1, StepOutcome.DONE, '"another\'s"', 3.0)
    assert [(one.outcome, one.result) for one in recorded(store)] == [("begun", None)]
    store.write(steps.end, replace(mine, epoch=7), 1, StepOutcome.DONE, '"paid"', 3.0)  # superseded, and it is done
    store.write(steps.end, mine, 1, StepOutcome.FAILED, '"too late"', 4.0)
    assert [(one.outcome, one.result) for one in recorded(store)] == [("done", '"paid"')]
