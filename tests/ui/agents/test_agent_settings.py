"""Settings of an agent, and the form for a new one."""

from __future__ import annotations

from zlib import crc32

import pytest

import roost
from roost.core.agents.agent import AgentConfig, Subscription
from roost.ui.agents.forms.config_fields import FIELDS
from roost.ui.agents.templates import TEMPLATES
from tests.ui.agents.conftest import USER, AgentScreen, stored


def prefix(service: roost.AgentService, agent_id: str) -> str:
    agent = stored(service, agent_id)
    return f"set_{crc32(f'{agent_id} {agent.config.to_json()}'.encode())}"


def test_all_settings_are_on_the_form() -> None:
    assert {field.name for field in FIELDS} | {"profile"} == set(AgentConfig.__dataclass_fields__)


def test_settings_are_shown_and_saved(service: roost.AgentService, screen: AgentScreen) -> None:
    events = ["alerts.*", {"event": "doors", "fields": {"open": True}}]
    service.agents.create(USER, "d", profile="brain", subscriptions=events, groups=["day"], task_expiry=5_400)
    of = prefix(service, "d")
    screen.open("d", "settings")
    assert screen.app.text_area(key=f"{of}_subscriptions").value == 'alerts.*\ndoors {"open": true}'
    assert screen.app.text_input(key=f"{of}_task_expiry").value == "1h30m"
    screen.fill(f"{of}_profile", "other").fill(f"{of}_max_concurrent_tasks", 3).fill(f"{of}_groups", "day, night")
    screen.fill(f"{of}_task_expiry", "never").fill(f"{of}_shared", True).click("settings_save")
    config = stored(service, "d").config
    assert (config.profile, config.max_concurrent_tasks, config.groups) == ("other", 3, ("day", "night"))
    assert (config.task_expiry, config.shared) == (None, True)
    assert config.subscriptions == (Subscription("alerts.*"), Subscription("doors", {"open": True}))
    assert screen.toasts == ["Saved."]
    assert screen.notices == []


def test_each_bad_setting_has_its_problem_beside_it_and_nothing_is_saved(
    service: roost.AgentService, screen: AgentScreen
) -> None:
    service.agents.create(USER, "d")
    of = prefix(service, "d")
    screen.open("d", "settings").fill(f"{of}_max_attempts", 0).fill(f"{of}_retry_delay", "soon")
    screen.fill(f"{of}_description", "new").fill(f"{of}_subscriptions", f"doors {'[' * 100_000}").click("settings_save")
    problems = [one.value for one in screen.app.markdown if one.value.startswith(":red[")]
    assert len(problems) == 3
    assert "nested too deeply" in "".join(problems)
    assert "whole number from 1 to 1" in "".join(problems)
    assert screen.notices == ["Nothing is saved yet: see the problems below."]
    assert stored(service, "d").config == AgentConfig()
    screen.fill(f"{of}_subscriptions", "").fill(f"{of}_max_attempts", 5).fill(f"{of}_retry_delay", "5s").click(
        "settings_save"
    )
    assert stored(service, "d").config.max_attempts == 5
    assert screen.notices == []


@pytest.mark.parametrize("template", TEMPLATES)
def test_an_agent_is_created_from_each_template(
    service: roost.AgentService, screen: AgentScreen, template: str
) -> None:
    screen.show(new="1", template=template).fill(f"new_{template}_name", "mine").click("create")
    assert screen.notices == []
    assert dict(screen.app.query_params) == {"agent": "mine"}
    agent, wanted = stored(service, "mine"), TEMPLATES[template]
    assert agent.config == wanted.config
    assert agent.state == "idle"
    assert [one.prompt for one in service.schedules.list(USER, agent="mine")] == [wanted.prompt] * bool(wanted.cron)


def test_a_name_that_cannot_be_used_is_refused_beside_its_field(
    service: roost.AgentService, screen: AgentScreen
) -> None:
    screen.show(new="1").fill("new_assistant_name", "no spaces").click("create")
    [problem] = [one.value for one in screen.app.markdown if one.value.startswith(":red[")]
    assert "agent id" in problem
    service.agents.create(USER, "taken")
    screen.fill("new_assistant_name", "taken").click("create")
    assert screen.notices[0].startswith("There is an agent 'taken' already")
    assert [agent.agent_id for agent in service.agents.list(USER)] == ["taken"]


def test_an_agent_is_not_created_with_a_schedule_that_cannot_be_set(
    service: roost.AgentService, screen: AgentScreen
) -> None:
    screen.show(new="1", template="rounds").fill("new_rounds_cron", "at night").click("create")
    assert screen.notices[0].startswith("Cron 'at night' cannot be read")
    assert service.agents.list(USER) == []


def test_an_agent_can_be_created_without_being_started(service: roost.AgentService, screen: AgentScreen) -> None:
    screen.show().click("new_agent").fill("new_assistant_start", False).click("create")
    assert stored(service, "assistant").state == "stopped"
