"""Forms that act on an agent: tasks, mail, sleep, schedules, memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import roost
from roost.core.agents import wake
from roost.core.agents.wake import AllOf, AnyOf, At, OnEvent, OnLoad, OnMail
from roost.errors import Invalid
from roost.ui.agents.forms.durations import duration, formatted
from tests.ui.agents.conftest import USER, AgentScreen, stored


@pytest.fixture
def agent(service: roost.AgentService, screen: AgentScreen) -> str:
    service.agents.create(USER, "d", profile="brain")
    return service.agents.pause(USER, "d").agent_id


def test_a_task_is_given(service: roost.AgentService, screen: AgentScreen, agent: str) -> None:
    screen.open(agent).click("open_task")
    screen.fill("task_prompt", "water the plants").fill("task_priority", "high").fill("task_expiry", "1h30m")
    screen.click("task_send")
    [task] = service.tasks.list(USER, agent=agent)
    assert (task.prompt, task.priority) == ("water the plants", "high")
    assert task.expires is not None
    assert task.expires - task.created == timedelta(minutes=90)
    assert screen.toasts == ["The task is in its inbox."]
    assert not screen.has("task_send")


def test_a_form_with_a_problem_stays_open_with_what_was_typed(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    screen.open(agent).click("open_task")
    screen.fill("task_prompt", "water the plants").fill("task_expiry", "soon").click("task_send")
    assert screen.notices == ["The time to start must be a duration such as 45s, 30m, 1h30m or 2d, not 'soon'."]
    assert service.tasks.list(USER, agent=agent) == []
    screen.look()
    assert screen.app.text_area(key="task_prompt_d").value == "water the plants"
    screen.fill("task_expiry", "").click("task_send")
    assert screen.notices == []
    assert len(service.tasks.list(USER, agent=agent)) == 1


def test_mail_is_sent(service: roost.AgentService, screen: AgentScreen, agent: str) -> None:
    screen.open(agent).click("open_mail").fill("mail_subject", "news").fill("mail_body", "it rains").click("mail_send")
    [mail] = service.mail.inbox(USER, f"agent:{agent}")
    assert (mail.subject, mail.body, mail.sender) == ("news", "it rains", f"user:{USER}")


def test_a_double_click_sends_a_form_once(service: roost.AgentService, screen: AgentScreen, agent: str) -> None:
    screen.open(agent).click("open_task").fill("task_prompt", "once").double_click("task_send")
    screen.click("open_mail").fill("mail_subject", "once").fill("mail_body", "it rains").double_click("mail_send")
    screen.click("open_schedule").fill("schedule_prompt", "once").fill("schedule_cron", "0 9 * * *")
    screen.double_click("schedule_really")
    assert [task.prompt for task in service.tasks.list(USER, agent=agent)] == ["once"]
    assert [mail.subject for mail in service.mail.inbox(USER, f"agent:{agent}")] == ["once"]
    assert [schedule.prompt for schedule in service.schedules.list(USER, agent=agent)] == ["once"]
    assert screen.notices == []


def sleep(screen: AgentScreen, agent: str, **fields: object) -> AgentScreen:
    screen.open(agent).click("open_sleep")
    for name, value in fields.items():
        screen.fill(f"sleep_{name}", value)
    return screen.click("sleep_really")


def test_an_agent_sleeps_until_any_of_all_kinds_of_conditions(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    sleep(screen, agent, mail="high", events="alerts.*, done", cpu=50, awake=3, **{"for": "2h"})
    condition = stored(service, agent).wake_condition
    assert isinstance(condition, AnyOf)
    assert [type(one) for one in condition.conditions] == [At, OnMail, OnEvent, OnEvent, OnLoad]
    assert condition.conditions[1:] == (
        wake.mail("high"),
        wake.event("alerts.*"),
        wake.event("done"),
        wake.load_below(cpu=0.5, awake=3),
    )


def test_an_agent_sleeps_until_a_time_in_the_future(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    later = (datetime.now(UTC) + timedelta(days=2)).replace(tzinfo=None, second=0, microsecond=0)
    sleep(screen, agent, until=later)
    assert stored(service, agent).sleep_until == later.replace(tzinfo=UTC)
    sleep(screen, agent, until=later - timedelta(days=10))
    assert screen.notices == ["The time to sleep until is in the past: choose a later one."]


def test_an_agent_sleeps_until_all_conditions_are_met_or_without_any_until_mail(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    sleep(screen, agent, mail="urgent", events="dawn", when="all of these have happened")
    assert isinstance(stored(service, agent).wake_condition, AllOf)
    assert screen.facts["Next wake"] == "only by hand while it is paused"
    service.agents.resume(USER, agent)
    assert screen.look().facts["Next wake"] == "mail of at least urgent and event dawn"
    sleep(screen, agent)
    assert stored(service, agent).wake_condition == wake.mail("normal")


def test_a_schedule_is_set_and_changed(service: roost.AgentService, screen: AgentScreen, agent: str) -> None:
    screen.open(agent, "schedules").click("open_schedule")
    screen.fill("schedule_prompt", "look").fill("schedule_cron", "0 9 * * 1-5").fill("schedule_overlap", "queue_one")
    screen.fill("schedule_zone", "Europe/Berlin").click("schedule_really")
    [made] = service.schedules.list(USER, agent=agent)
    assert (made.rule.expression, made.rule.zone, made.overlap) == ("0 9 * * 1-5", "Europe/Berlin", "queue_one")  # type: ignore[union-attr]
    screen.click(f"change_{made.schedule_id}")
    assert screen.app.text_input(key=f"schedule_cron_{made.schedule_id}").value == "0 9 * * 1-5"
    screen.fill("schedule_prompt", "look again").click("schedule_save")
    changed = service.schedules.get(USER, made.schedule_id)
    assert (changed.prompt, changed.rule, changed.next) == ("look again", made.rule, made.next)
    screen.click(f"change_{made.schedule_id}")
    screen.fill("schedule_when", "every").fill("schedule_every", "2h").click("schedule_save")
    assert service.schedules.get(USER, made.schedule_id).rule.seconds == 7_200  # type: ignore[union-attr]


def test_the_state_is_edited_as_json(service: roost.AgentService, screen: AgentScreen, agent: str) -> None:
    service.agents.set_state(USER, agent, {"seen": 1})
    screen.open(agent, "memory").click("edit_state")
    for bad, problem in (
        ("{", "The state is no valid JSON"),
        ("[" * 100_000, "The state is no valid JSON: it is nested too deeply"),
        ("[1]", "The state must be a JSON object"),
    ):
        screen.fill("state_text", bad).click("state_save")
        assert screen.notices[0].startswith(problem)
    screen.fill("state_text", '{"seen": 2}').click("state_save")
    assert service.agents.inspect(USER, agent).turn_state == {"seen": 2}


def test_a_state_that_changed_meanwhile_is_replaced_only_by_a_second_click(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    screen.open(agent, "memory").click("edit_state")
    service.agents.set_state(USER, agent, {"seen": 7})
    screen.fill("state_text", '{"seen": 0}').click("state_save")
    assert "has changed its state meanwhile" in screen.notices[0]
    assert service.agents.inspect(USER, agent).turn_state == {"seen": 7}
    assert screen.app.text_area(key="state_text_d").value == '{"seen": 0}'
    screen.click("state_save")
    assert service.agents.inspect(USER, agent).turn_state == {"seen": 0}


def test_notes_are_added_found_and_forgotten(service: roost.AgentService, screen: AgentScreen, agent: str) -> None:
    screen.open(agent, "memory").click("add_note").fill("note_text", "Ann likes green tea").fill("note_key", "tea")
    screen.click("note_add")
    service.agents.remember(USER, agent, "it rained", key="rain")
    assert [row[1] for row in screen.open(agent, "memory", find="green").table("memories_d")] == ["tea"]
    screen.act_on("memories_d", "Forget", "tea")
    assert [one.key for one in service.agents.memories(USER, agent)] == ["rain"]


def test_a_note_that_is_refused_does_not_stop_the_others(
    service: roost.AgentService, screen: AgentScreen, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("a", "b"):
        service.agents.remember(USER, agent, "words", key=key)
    forget = service.agents.forget

    def refused(user: str, agent_id: str, key: str) -> object:
        if key == "a":
            raise Invalid("this note stays")
        return forget(user, agent_id, key)

    monkeypatch.setattr(service.agents, "forget", refused)
    screen.open(agent, "memory").act_on("memories_d", "Forget", "a", "b")
    assert screen.notices == ["Forgot 1 note. 1 refused: this note stays."]
    assert [note.key for note in service.agents.memories(USER, agent)] == ["a"]


def test_a_form_of_one_agent_is_not_shown_for_another(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    service.agents.create(USER, "other")
    screen.open(agent).click("open_task")
    assert not screen.open("other").has("task_send")
    assert screen.open(agent).has("task_send")


@pytest.mark.parametrize("opened", ["open_task", "open_mail", "open_sleep", "open_schedule"])
def test_a_form_has_other_fields_for_another_agent(
    service: roost.AgentService, screen: AgentScreen, agent: str, opened: str
) -> None:
    service.agents.create(USER, "other")
    fields = []
    for name in (agent, "other"):
        screen.open(name).click(opened)
        found = [one for kind in ("text_input", "text_area", "selectbox", "button") for one in screen.app.get(kind)]
        fields.append({str(one.key) for one in found if not str(one.key).startswith("choice_")})
    assert fields[0]
    assert fields[0].isdisjoint(fields[1])


@pytest.mark.parametrize(
    ("text", "seconds"), [("45", 45), ("30m", 1_800), ("1h30m", 5_400), ("2 d", 172_800), ("0.5s", 0.5)]
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert duration(text, "it") == seconds
    assert duration(formatted(seconds), "it") == seconds


@pytest.mark.parametrize("text", ["", "soon", "1x", "-5m", "9999999w"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="it must be"):
        duration(text, "it")
