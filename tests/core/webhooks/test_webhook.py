"""Webhooks: which facts they choose, and when a delivery is tried again."""

from __future__ import annotations

import json

import pytest

from roost.core.monitoring.facts import FactRow, Name
from roost.core.webhooks.webhook import ChosenFacts, body_of, checked_events, delay_after
from roost.errors import Invalid


def a_fact(name: Name = Name.TASK_DONE, **data: object) -> FactRow:
    return name, 1.5, None, "ann/d", data, "root_1"


@pytest.mark.parametrize(
    ("events", "name", "chosen"),
    [
        (["*"], Name.TASK_DONE, True),
        (["Task*"], Name.TASK_DONE, True),
        (["TaskFailed", "TaskDone"], Name.TASK_DONE, True),
        (["Task*"], Name.AGENT_WOKE, False),
        (["*"], Name.FACTS_MISSED, False),
    ],
)
def test_facts_are_chosen_by_name_or_pattern(events: list[str], name: Name, chosen: bool) -> None:
    assert ChosenFacts("webhook_1", checked_events(events)).has(a_fact(name)) is chosen


def test_facts_about_a_webhook_are_posted_to_others_only() -> None:
    fact = a_fact(Name.WEBHOOK_PAUSED, webhook_id="webhook_1")
    assert not ChosenFacts("webhook_1", ("*",)).has(fact)
    assert ChosenFacts("webhook_2", ("*",)).has(fact)


@pytest.mark.parametrize(
    "events",
    [[], "Task*", ["TaskDome"], ["task*"], [""], [7], None, ["Task* Agent*"], ["FactsMissed"], ["*"] * 51 + ["a"]],
)
def test_events_that_fit_no_fact_are_refused(events: object) -> None:
    with pytest.raises(Invalid):
        checked_events(events)


def test_a_message_has_the_fact_and_no_id_of_a_person_as_its_subject() -> None:
    told = json.loads(body_of(a_fact(task_id="task_1")))
    assert told == {
        "type": "TaskDone",
        "timestamp": "1970-01-01T00:00:01.500000Z",
        "user": "ann",
        "about": "ann/d",
        "data": {"task_id": "task_1"},
        "root": "root_1",
    }
    assert json.loads(body_of((Name.MAIL_SENT, 1.0, None, "ann/", {}, "")))["about"] is None


def test_eight_attempts_take_about_a_day() -> None:
    delays = [delay_after(attempts, 0.5) for attempts in range(1, 8)]
    assert delays == [5, 30, 180, 1080, 6480, 38880, 43200]
    assert 0.75 < sum(delays) / 86_400 < 1.25
    assert (delay_after(1, 0.0), delay_after(1, 1.0)) == pytest.approx((4.0, 6.0))
    assert delay_after(10_000, 0.5) == 43200
