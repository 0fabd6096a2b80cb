"""Buttons of the Guide: each builds one real thing for the user, and says what it is."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import roost
from roost.brains.guide.offers import OFFERS, offer_for
from roost.demos import first_steps
from roost.demos.brains import notebook
from roost.demos.first_steps import AGENT, CRON, PROMPT, SCHEDULE, STEPS
from roost.testing import Simulation
from tests.ui.conftest import USER, Tab

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def guided(tab: Tab) -> Tab:
    return tab.open(tab.service.create_talk_session(USER, profile="guide"))


def told(tab: Tab) -> str:
    return " ".join(text.value for text in tab.app.markdown)


def test_a_pressed_button_builds_once_says_what_and_leads_to_it(guided: Tab) -> None:
    service = guided.service
    assert "You now have an agent" in told(guided.click("step_agent"))
    assert "You already have an agent" in told(guided.click("step_agent"))
    assert "You now have a schedule" in told(guided.click("step_schedule"))
    assert "at 9:00 (UTC)" in told(guided.click("step_schedule"))
    guided.click("step_meeting")
    guided.click("step_meeting")
    [schedule] = service.schedules.list(USER)
    [meeting] = service.meetings.list(USER, participant="agent:demo-owl")
    assert {agent.agent_id for agent in service.agents.list(USER)} >= {AGENT, "demo-crow", "demo-finch", "demo-owl"}
    assert (schedule.prompt, schedule.next is not None) == ("Good morning", True)
    [link] = [one for one in guided.app.get("page_link") if one.proto.label == "Watch the game"]
    assert (link.proto.page, link.proto.query_string) == ("meetings", f"meeting={meeting.meeting_id}")
    guided.click("step_agent").click("talk_with")
    assert guided.talk_id is None
    assert r"first\-agent" in [one.label for one in guided.app.button if (one.key or "").startswith("choose_agent_")]
    guided.say("remember the milk")
    assert "made a note" in guided.settle()[-1].content
    assert f"agent:{USER}/{AGENT}" in {talk.agent for talk in service.list_sessions(USER)}


def test_only_talks_with_the_guide_have_buttons(tab: Tab) -> None:
    for talk_id in (
        tab.service.create_talk_session(USER, profile="brain", title="guide"),
        tab.service.create_talk_session(USER, profile="echo"),
    ):
        assert not [one.key for one in tab.open(talk_id).app.button if (one.key or "").startswith("step_")]


def test_a_step_that_is_refused_is_one_sentence(guided: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise roost.LimitReached("you have 100 agents, and 100 are allowed")

    monkeypatch.setattr(type(guided.service.agents), "create", refuse)
    guided.click("step_agent")
    assert guided.notices == ["You have 100 agents, and 100 are allowed."]
    assert "You now have" not in told(guided)


def test_a_name_taken_by_another_agent_is_said(service: roost.AgentService) -> None:
    service.agents.create("bob", AGENT, profile="echo")
    with pytest.raises(roost.Conflict, match="another agent with the name 'first-agent'"):
        first_steps.create_agent(service, "bob", BERLIN)
    with pytest.raises(roost.Conflict):
        first_steps.schedule_task(service, "bob", BERLIN)
    assert service.schedules.list("bob") == []


def test_the_first_agent_mails_its_notes_each_morning(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    service = simulation.start({"demo-notebook": notebook})

    async def set_up() -> None:
        await service.agents.create("ann", AGENT, profile="demo-notebook")
        talk = await service.create_talk_session("ann", agent=AGENT)
        await service.add_message("ann", talk, "remember the milk")
        await service.schedules.create("ann", AGENT, PROMPT, cron=CRON, zone=BERLIN.key, name=SCHEDULE)

    simulation.run(set_up())
    simulation.advance(2.5 * 86_400)
    found = simulation.run(service.mail.inbox("ann"))
    assert [mail.subject for mail in found] == [PROMPT, PROMPT]
    assert "the milk" in found[0].body
    assert found[0].created.astimezone(BERLIN).hour == 9
    simulation.run(service.close())


def test_the_page_and_the_guide_offer_the_same() -> None:
    assert {offer.button for offer in OFFERS} == {step.label for step in STEPS.values()}
    for offer in OFFERS:
        assert offer_for(offer.button) is offer


@pytest.mark.parametrize("said", ["What is Roost?", "stop", "agent", "how do agents sleep?", "", "x" * 5_000])
def test_nothing_is_offered_where_it_does_not_fit(said: str) -> None:
    assert offer_for(said) is None
