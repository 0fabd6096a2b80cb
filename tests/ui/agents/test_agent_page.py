"""The page of one agent: its overview, its sections, and the buttons that act on it."""

from __future__ import annotations

import pytest

import roost
from roost.errors import NotFound
from roost.ui.agents import agent_page
from roost.ui.shell.navigation import Route
from tests.ui.agents.conftest import NASTY, USER, AgentScreen, hold, stored


@pytest.fixture
def agent(service: roost.AgentService, screen: AgentScreen) -> str:
    return service.agents.create(USER, "d", profile="brain").agent_id


def test_an_agent_that_does_not_exist_is_said_to_be_missing(screen: AgentScreen) -> None:
    screen.open("never")
    [notice] = screen.notices
    assert "never" in notice


def test_the_overview_shows_what_it_does_and_what_comes_next(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    hold(service, agent)
    service.tasks.send(USER, agent, "later")
    service.schedules.create(USER, agent, "each morning", cron="0 9 * * *")
    service.agents.remember(USER, agent, "a note")
    facts = screen.open(agent).facts
    assert facts["Working on"] == "Task: hold on"
    assert facts["Waiting in its inbox"] == "1"
    assert facts["Next by schedule"].endswith("each morning")
    assert facts["Notes"] == "1"
    assert facts["Profile"] == "brain, 1 task at once"
    assert "Next wake" not in facts


def test_the_timeline_has_states_and_runs_that_open_the_run(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    service.tasks.wait(USER, service.tasks.send(USER, agent, "work"), timeout=20)
    service.tasks.wait(USER, service.tasks.send(USER, agent, "fail", max_attempts=1), timeout=20)
    lanes = screen.open(agent).given("timeline")["lanes"]
    states, runs = lanes[0]["bars"], lanes[1]["bars"]
    assert {"idle", "active"} <= {bar["text"] for bar in states}
    newest = {run.run_id: run for run in service.runs.list(USER, agent=agent)}
    assert {bar["href"] for bar in runs} == {f"/runs?run={run_id}" for run_id in newest}
    assert [bar["tone"] for bar in runs] == ["good", "bad"]


@pytest.mark.parametrize("tab", agent_page.TABS)
def test_every_section_shows_texts_as_they_are(
    service: roost.AgentService, screen: AgentScreen, agent: str, tab: str
) -> None:
    service.agents.configure(USER, agent, description=NASTY)
    service.agents.remember(USER, agent, NASTY, key=NASTY)
    service.agents.set_state(USER, agent, {NASTY: NASTY})
    service.schedules.create(USER, agent, NASTY, every=60, name=NASTY)
    service.tasks.wait(USER, service.tasks.send(USER, agent, NASTY), timeout=20)
    service.agents.wake(USER, agent, NASTY)
    screen.open(agent, tab)
    assert screen.notices == []
    assert "<img src=x" not in screen.written
    assert "**bold**" not in "\n".join(one.value for one in screen.app.markdown)


def test_a_section_is_chosen_by_its_url_and_by_its_name(screen: AgentScreen, agent: str) -> None:
    screen.open(agent, "history")
    assert screen.table("history")[-1][1:] == ["idle", "created", "you"]
    screen.app.segmented_control(key="agent_tab").set_value("Tasks").run()
    assert not screen.app.exception
    assert screen.app.query_params["tab"] == "tasks"
    assert "No tasks yet. Give it one above." in [one.value for one in screen.app.caption]


def test_the_inbox_is_listed_in_order_with_what_runs(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    hold(service, agent)
    for prompt, priority in (("second", "normal"), ("first", "urgent")):
        service.tasks.send(USER, agent, prompt, priority=priority)
    service.mail.send(USER, f"agent:{agent}", NASTY, "text", priority="low")
    rows = {row[0]: row[1:4] + row[5:] for row in screen.open(agent, "inbox").table("inbox")}
    assert rows["hold on"] == ["Task", "you", "normal", "running"]
    assert rows["first"] == ["Task", "you", "urgent", "waits"]
    assert rows[" ".join(NASTY.split())][0] == "Mail"
    names = [row[0] for row in screen.table("inbox")]
    assert names.index("first") < names.index("second")


def test_an_agent_is_paused_stopped_started_and_woken_by_one_click_each(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    screen.open(agent).click("agent_pause")
    assert stored(service, agent).paused
    screen.click("agent_resume").click("agent_stop")
    assert stored(service, agent).state == "stopped"
    assert not screen.has("open_sleep")
    screen.click("agent_start")
    service.agents.sleep(USER, agent, seconds=600)
    screen.look().click("agent_wake")
    assert stored(service, agent).state == "idle"


def test_talking_with_an_agent_opens_a_new_talk(service: roost.AgentService, screen: AgentScreen, agent: str) -> None:
    screen.open(agent).click("agent_talk")
    [talk] = [one for one in service.list_sessions(USER) if one.agent == f"agent:{USER}/{agent}"]
    assert screen.app.query_params["talk"] in (talk.talk_session_id, [talk.talk_session_id])


def test_a_double_click_on_talk_begins_one_talk(service: roost.AgentService, screen: AgentScreen, agent: str) -> None:
    before = len(service.list_sessions(USER))
    screen.open(agent).double_click("agent_talk")
    assert len(service.list_sessions(USER)) == before + 1


def test_an_agent_is_deleted_after_a_question(service: roost.AgentService, screen: AgentScreen, agent: str) -> None:
    screen.open(agent).click("agent_delete")
    assert not stored(service, agent).paused
    screen.click("delete_really")
    with pytest.raises(NotFound):
        stored(service, agent)
    assert screen.go(Route.AGENTS).table("agents") == []


def test_a_name_in_a_notice_reads_as_it_is(service: roost.AgentService, screen: AgentScreen) -> None:
    service.agents.create(USER, "__init__")
    screen.open("__init__").click("agent_delete").click("delete_really")
    assert [one.value for one in screen.app.toast] == [r"Deleted \_\_init\_\_\."]


def test_tasks_are_listed_opened_and_cancelled(service: roost.AgentService, screen: AgentScreen, agent: str) -> None:
    done = service.tasks.send(USER, agent, "work")
    service.tasks.wait(USER, done, timeout=20)
    running, waiting = hold(service, agent), service.tasks.send(USER, agent, "later")
    screen.open(agent, "tasks")
    assert [row[:3] for row in screen.table("tasks")] == [
        ["later", "queued", ""],
        ["hold on", "running", ""],
        ["work", "done", "Answer to work"],
    ]
    screen.act_on("tasks", "Cancel", running, waiting)
    assert {service.tasks.get(USER, one).status for one in (running, waiting)} == {"cancelled"}
    assert [row[0] for row in screen.open(agent, "tasks", status="done").table("tasks")] == ["work"]
    screen.open(agent, "tasks", task=done)
    assert "Answer to work" in screen.written
    facts = {row[0]: row[1] for row in screen.table("of_task")}
    assert facts["Status"] == "done"
    assert facts["Attempt 1"].startswith("done, ")


def test_schedules_show_their_next_times_and_are_paused_and_deleted(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    made = service.schedules.create(USER, agent, "look", cron="30 9 * * *", name="morning")
    screen.open(agent, "schedules")
    assert "**morning**" in screen.written
    [next_times] = [one.value for one in screen.app.caption if one.value.startswith("Next")]
    assert next_times.count("09") == 3
    screen.click(f"pause_{made.schedule_id}")
    assert service.schedules.get(USER, made.schedule_id).paused
    screen.click(f"resume_{made.schedule_id}").click(f"delete_{made.schedule_id}")
    assert service.schedules.list(USER, agent=agent) == []


@pytest.mark.parametrize("key", ["agent_pause", "agent_stop", "agent_talk"])
def test_a_click_that_arrives_when_another_agent_is_shown_is_for_the_first_one(
    service: roost.AgentService, screen: AgentScreen, agent: str, key: str
) -> None:
    other = service.agents.create(USER, "other", profile="brain")
    before = stored(service, agent), service.list_sessions(USER)
    screen.open(agent)
    late = screen.press(key)
    screen.open("other").app._run(late)
    assert (stored(service, agent), service.list_sessions(USER)) != before
    assert stored(service, "other") == other
    assert {talk.agent for talk in service.list_sessions(USER)} <= {f"agent:{USER}/{agent}"}


@pytest.mark.parametrize("key", ["agent_delete", "open_task", "open_mail", "open_sleep", "edit_state", "add_note"])
def test_a_late_click_opens_no_form_for_another_agent(
    service: roost.AgentService, screen: AgentScreen, agent: str, key: str
) -> None:
    service.agents.create(USER, "other", profile="brain")
    screen.open(agent, "memory")
    late = screen.press(key)
    screen.open("other", "memory").app._run(late)
    assert not any(screen.has(button) for button in ("delete_really", "task_send", "mail_send", "sleep_really"))
    assert not any(screen.has(button) for button in ("state_save", "note_add"))


def test_a_note_is_not_forgotten_by_a_click_that_was_for_another_agent(
    service: roost.AgentService, screen: AgentScreen, agent: str
) -> None:
    service.agents.create(USER, "other", profile="brain")
    for name in (agent, "other"):
        service.agents.remember(USER, name, "words", key="tea")
    late = screen.open(agent, "memory").app._tree
    screen.open("other", "memory").app._tree = late
    screen.act_on("memories_d", "Forget", "tea")
    assert [[one.key for one in service.agents.memories(USER, name)] for name in (agent, "other")] == [["tea"]] * 2
