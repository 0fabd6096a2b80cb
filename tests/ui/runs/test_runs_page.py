"""The pages of runs: a list with filters in the URL, and one run with its steps, its input and its output."""

from __future__ import annotations

from itertools import count

import pytest

import roost
from roost.core.journal.run_history import Run
from roost.ui.runs import run_list
from roost.ui.shell.navigation import Route
from tests.conftest import eventually
from tests.ui.conftest import USER, Screen

_names = map("runs.a{}".format, count())


@pytest.fixture
def agent(service: roost.AgentService) -> str:
    """An agent of its own, without a second attempt."""
    return service.agents.create(USER, next(_names), profile="brain", max_attempts=1).agent_id


@pytest.fixture
def screen(service: roost.AgentService) -> Screen:
    return Screen().look()


def work(service: roost.AgentService, agent: str, text: str) -> Run:
    """Give an agent a task; return its run."""
    service.tasks.wait(USER, service.tasks.send(USER, agent, text))
    return service.runs.list(USER, agent=agent, limit=1)[0]


def shown(screen: Screen) -> str:
    """Return all that the page says outside of its elements."""
    app = screen.app
    boxes = [*app.header, *app.subheader, *app.caption, *app.markdown, *app.code]
    return "\n".join([*(str(box.value) for box in boxes), *(html.proto.body for html in app.get("html"))])


def links(screen: Screen) -> dict[str, str]:
    """Return the queries of the links on the page, by their labels."""
    return {link.proto.label: link.proto.query_string for link in screen.app.get("page_link")}


def test_runs_are_listed_newest_first_and_filtered_by_the_url(
    service: roost.AgentService, screen: Screen, agent: str
) -> None:
    work(service, agent, "one")
    work(service, agent, "fail two")
    rows = screen.go(Route.RUNS, agent=agent).table("runs")
    assert [(row[1], row[2], row[3]) for row in rows] == [(agent, "Task", "Failed"), (agent, "Task", "Done")]
    assert "internal error" in rows[0][8]
    assert [row[3] for row in screen.go(Route.RUNS, agent=agent, outcome="failed").table("runs")] == ["Failed"]
    assert screen.app.selectbox(key="choice_outcome").value == "failed"
    assert screen.go(Route.RUNS, agent=agent, kind="mail").table("runs") == []
    assert "No runs match." in shown(screen)


def test_a_filter_goes_to_the_url_and_starts_at_the_newest_run(
    service: roost.AgentService, screen: Screen, agent: str
) -> None:
    run = work(service, agent, "one")
    screen.go(Route.RUNS, agent=agent, before=run.run_id)
    assert screen.table("runs") == []
    screen.app.selectbox(key="choice_kind").select("task").run()
    assert (screen.app.query_params["kind"], "before" in screen.app.query_params) == ("task", False)
    assert len(screen.table("runs")) == 1
    screen.app.text_input[0].set_value("").run()
    assert "agent" not in screen.app.query_params


def test_another_agent_ends_the_filter_by_talk(service: roost.AgentService, screen: Screen, agent: str) -> None:
    work(service, agent, "one")
    screen.go(Route.RUNS, talk="talk_1", kind="task")
    screen.app.text_input[0].set_value(f" {agent} ").run()
    asked = screen.app.query_params
    assert (asked["agent"], asked["kind"], "talk" in asked) == (agent, "task", False)
    assert len(screen.table("runs")) == 1


def test_each_run_of_the_page_sends_the_filters_of_the_url(screen: Screen, agent: str) -> None:
    screen.go(Route.RUNS, agent=agent, outcome="failed")
    for _ in range(2):  # the browser may not have received the first one
        [field], status = screen.app.text_input, screen.app.selectbox(key="choice_outcome")
        assert field.proto.default == agent
        assert (status.proto.set_value, status.proto.raw_value) == (True, "Failed")
        screen.look()


def test_older_runs_are_on_further_pages(
    service: roost.AgentService, screen: Screen, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_list, "PAGE", 2)
    runs = [work(service, agent, f"work {number}") for number in range(3)]
    assert len(screen.go(Route.RUNS, agent=agent).table("runs")) == 2
    assert links(screen)["Older"] == f"agent={agent}&before={runs[1].run_id}"
    screen.go(Route.RUNS, agent=agent, before=runs[1].run_id)
    assert len(screen.table("runs")) == 1
    assert "Older" not in links(screen)
    assert links(screen)["Newest"] == f"agent={agent}"


def test_an_unknown_agent_is_a_notice(screen: Screen) -> None:
    assert "no agent" in screen.go(Route.RUNS, agent="nobody").notices[0]


def test_what_runs_now_is_shown_with_what_it_works_on(service: roost.AgentService, screen: Screen, agent: str) -> None:
    task = service.tasks.send(USER, agent, "hold **this**")
    try:
        eventually(lambda: service.tasks.get(USER, task).status == "running")
        assert [agent, "hold **this**"] in [[row[0], row[3]] for row in screen.go(Route.RUNS).table("running")]
    finally:
        service.tasks.cancel(USER, task)


def test_a_run_shows_its_steps_over_time(service: roost.AgentService, screen: Screen, agent: str) -> None:
    helper = service.agents.create(USER, next(_names), profile="brain").agent_id
    run = work(service, agent, f"steps {helper} fail")
    screen.go(Route.RUNS, run=run.run_id)
    lanes = screen.given("timeline")["lanes"]
    assert [lane["label"] for lane in lanes] == [
        "This run",
        "1. Model call m1 <i>",
        "2. Tool price",
        "3. Tool price",
        "4. Step count",
        f"5. Question to {helper}",
    ]
    assert [lane["bars"][0]["tone"] for lane in lanes] == ["bad", "good", "good", "bad", "good", "good"]
    assert "310 in, 25 out" in lanes[1]["bars"][0]["text"]
    assert "internal error" in screen.notices[0]
    assert links(screen)[agent.replace(".", "\\.")] == f"agent={agent}"


def test_a_step_that_is_opened_shows_what_went_in_and_came_out(
    service: roost.AgentService, screen: Screen, agent: str
) -> None:
    helper = service.agents.create(USER, next(_names), profile="brain").agent_id
    run = work(service, agent, f"steps {helper}")
    screen.go(Route.RUNS, run=run.run_id).report("timeline", "open", f"/runs?run={run.run_id}&step=2")
    assert screen.app.query_params["step"] == "2"
    texts = [code.value for code in screen.app.code]
    assert '{\n  "sku": "tea"\n}' in texts
    assert f"<b>4</b> {'x' * 2_000}" in texts
    assert any(one.label.startswith("Output: 2,009 characters") for one in screen.app.expander)
    screen.go(Route.RUNS, run=run.run_id, step="5")
    [answered] = service.runs.list(USER, agent=helper)
    assert links(screen)["Run that answered"] == f"run={answered.run_id}"


def test_a_run_shows_its_input_and_its_output_as_text(service: roost.AgentService, screen: Screen, agent: str) -> None:
    nasty = "![x](http://x.example) <script>1</script> :material/home:"
    run = work(service, agent, nasty)
    screen.go(Route.RUNS, run=run.run_id)
    texts = [code.value for code in screen.app.code]
    assert nasty in texts
    assert f"Answer to {nasty}" in texts
    assert not any("<script>1" in str(box.value) for box in (*screen.app.markdown, *screen.app.caption))


def test_a_run_that_does_not_exist_is_a_notice(screen: Screen) -> None:
    assert "no run" in screen.go(Route.RUNS, run="run_never").notices[0]
