"""Agents of Roost that think with an agent of the ADK: tasks, mail, events."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.tools.tool_context import ToolContext
from google.genai import types

import roost
from roost.brains.adk import Adk
from tests.brains.adk import models
from tests.conftest import Open, eventually, settled


def count(tool_context: ToolContext) -> str:
    """Count."""
    state = tool_context.state
    state["n"], state["user:n"] = state.get("n", 0) + 1, state.get("user:n", 0) + 1
    return f"{state['n']}/{state['user:n']}"


@pytest.fixture
def one(service: Open) -> roost.AgentService:
    opened = service({"helper": Adk(models.agent(count))})
    opened.agents.create("ann", "d", profile="helper")
    return opened


def test_each_task_has_a_new_session_and_keeps_the_user_state(one: roost.AgentService, shown: list[Any]) -> None:
    for expected in ("1/1", "1/2"):
        task = one.tasks.send("ann", "d", "call count")
        assert one.tasks.wait("ann", task, timeout=10).result == f"the tool says {expected}"
    assert shown[-2] == ["user: call count"]


def test_mail_has_the_past_of_its_thread(one: roost.AgentService, shown: list[Any]) -> None:
    def answered() -> list[roost.Mail]:
        return [mail for mail in one.mail.inbox("ann") if mail.status == "unread"]

    one.mail.send("ann", "agent:d", "rope", "how long?", priority="urgent")
    reply = eventually(answered)[0]
    assert reply.body == "you said Mail from user:ann. Subject: rope\n\nhow long?"
    one.mail.reply("ann", reply.mail_id, "thanks")
    eventually(lambda: len(shown) == 2)
    assert [line.split(":")[0] for line in shown[-1]] == ["user", "model", "user"]
    assert shown[-1][0].endswith("how long?")


def test_an_event_is_shown_with_its_data(one: roost.AgentService, shown: list[Any]) -> None:
    one.agents.configure("ann", "d", subscriptions=["alarm.*"])
    one.events.publish("ann", "alarm.fire", {"floor": 2})
    eventually(lambda: shown)
    assert shown[-1] == ['user: Event alarm.fire: {"floor": 2}']


def test_it_recalls_what_the_agent_of_roost_remembers(service: Open) -> None:
    async def note(text: str, tool_context: ToolContext) -> str:
        """Remember."""
        content = types.Content(role="user", parts=[types.Part(text=text)])
        await tool_context.add_memory(memories=[MemoryEntry(content=content)])
        return "noted"

    async def find(text: str, tool_context: ToolContext) -> str:
        """Recall."""
        found = await tool_context.search_memory(text)
        return str([part.text for one in found.memories for part in one.content.parts or []])

    one = service({"helper": Adk(models.agent(note, find))})
    one.agents.create("ann", "d", profile="helper")
    for task, result in (("call note the door is green", "noted"), ("call find door", "['the door is green']")):
        sent = one.tasks.send("ann", "d", task)
        assert one.tasks.wait("ann", sent, timeout=20).result == f"the tool says {result}"
    assert [memory.text for memory in one.agents.memories("ann", "d")] == ["the door is green"]


def test_a_talk_with_an_agent_is_kept_and_deleted_with_it(one: roost.AgentService, shown: list[Any]) -> None:
    talk = one.create_talk_session("ann", agent="d")
    for expected in ("1/1", "2/2"):
        one.add_message("ann", talk, "call count")
        assert settled(one, "ann", talk)[-1].content == f"the tool says {expected}"
    one.agents.delete("ann", "d")
    with pytest.raises(roost.NotFound):
        one.get_messages("ann", talk)


def test_it_takes_part_in_a_meeting(one: roost.AgentService, shown: list[Any]) -> None:
    meeting = one.meetings.call("ann", "The roof", required=["agent:d"])
    eventually(lambda: one.meetings.view("ann", meeting).phase == "running")
    one.meetings.say("ann", meeting, "It leaks.")
    eventually(lambda: any("It leaks." in line for lines in shown for line in lines))
    words = eventually(lambda: [w for w in one.meetings.view("ann", meeting).words if w.sender == "agent:ann/d"])
    assert "you said" in words[-1].text
    assert all(len(lines) == 1 for lines in shown), "the history is in the prompt"
