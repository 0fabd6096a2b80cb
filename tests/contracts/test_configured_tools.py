"""B3: what a person writes into `roost.toml` decides which tools a brain is offered, whatever thinks in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import roost
from roost.service import AgentService
from roost.testing.provider import Call
from tests.conftest import eventually
from tests.contracts.rigs import RIGS

TOOLS = """
import roost


@roost.tool
def price(sku: str) -> float:
    '''Return the price.'''
    return 4.25


@roost.tool
def order(sku: str) -> str:
    '''Order it.'''
    return "ordered"
"""
FUNCTION = """
import json


async def clerk(turn):
    for name, arguments in json.loads(turn.text):
        yield await turn.call_tool(name, arguments) + " "
    yield "offered: " + " ".join(tool.name for tool in turn.tools)
"""
ALLOWED = ["price", "mail.*", "meeting.call", "schedule", "publish", "remember", "recall", "sleep"]
OFFERED = {
    "price",
    "mail.send",
    "mail.check",
    "mail.read",
    "mail.reply",
    "mail.archive",
    "meeting.call",
    "schedule",
    "publish",
    "remember",
    "recall",
    "sleep",
}
CALLS = [
    Call("price", {"sku": "tea"}, "c1"),
    Call("mail__send", {"to": "user:ann", "subject": "Tea", "body": "It costs 4.25."}, "c2"),
    Call("remember", {"text": "tea costs 4.25", "key": "tea"}, "c3"),
    Call("schedule", {"prompt": "buy tea", "every": 3600, "name": "tea"}, "c4"),
    Call("publish", {"name": "tea.priced", "data": {"euros": 4.25}}, "c5"),
    Call("meeting__call", {"topic": "Tea", "required": ["user:ann"]}, "c6"),
    Call("sleep", {"mail": "urgent"}, "c7"),
]
THOSE = ["llm-openai", "gguf", "adk"]
"""Each kind of brain that asks a model; see below for functions."""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def opened(stack: ExitStack, folder: Path, profile: str) -> AgentService:
    """A Roost as a person sets it up: a file, and modules beside it."""
    (folder / "house_tools.py").write_text(TOOLS)
    named = ", ".join(f'"{name}"' for name in ALLOWED)
    (folder / "roost.toml").write_text(
        f'store = "sqlite:///{folder}/roost.db"\ntools = ["house_tools:price", "house_tools:order"]\n'
        f"[profiles.clerk]\n{profile}\ntools = [{named}]\n"
        '[profiles.bare]\nbrain = "echo"\ntools = []\n'
    )
    stack.callback(sys.modules.pop, "house_tools", None)
    before = list(sys.path)
    stack.callback(lambda: sys.path.__setitem__(slice(None), before))
    return stack.enter_context(roost.open(config=folder / "roost.toml"))


def did(service: AgentService, prompt: str = "see to the tea") -> str | None:
    """Have the clerk do it; it listens to no events itself, but another does."""
    service.agents.create("ann", "clerk", profile="clerk", max_attempts=1)
    service.agents.create("ann", "ears", profile="bare", subscriptions=["tea.*"])
    return service.tasks.wait("ann", service.tasks.send("ann", "clerk", prompt), timeout=20).result


def has_acted(service: AgentService) -> None:
    """All that was called has happened."""
    [mail] = service.mail.inbox("ann")
    assert (mail.sender, mail.subject, mail.body) == ("agent:ann/clerk", "Tea", "It costs 4.25.")
    assert [memory.text for memory in service.agents.memories("ann", "clerk")] == ["tea costs 4.25"]
    assert [(one.name, one.prompt) for one in service.schedules.list("ann")] == [("tea", "buy tea")]
    assert [event.name for event in service.events.history("ann") if event.name.startswith("tea")] == ["tea.priced"]
    assert [meeting.topic for meeting in service.meetings.list("ann")] == ["Tea"]
    eventually(lambda: service.agents.get("ann", "clerk").state == "sleeping")


@pytest.mark.parametrize("name", THOSE)
def test_an_agent_is_offered_what_its_profile_names_and_acts_by_it(name: str, tmp_path: Path, stack: ExitStack) -> None:
    rig = RIGS[name](stack)
    service = opened(stack, tmp_path, rig.set_up(tmp_path))
    rig.play(*CALLS)
    rig.play("The tea costs 4.25.")
    assert did(service) == "The tea costs 4.25."
    assert {one.replace("__", ".") for one in rig.offered} == OFFERED
    has_acted(service)
    assert "4.25" in rig.asked[1]


def test_a_function_is_offered_what_its_profile_names_and_acts_by_it(tmp_path: Path, stack: ExitStack) -> None:
    (tmp_path / "house_brains.py").write_text(FUNCTION)
    stack.callback(sys.modules.pop, "house_brains", None)
    service = opened(stack, tmp_path, 'brain = "house_brains:clerk"')
    said = did(service, json.dumps([(one.tool.replace("__", "."), one.arguments) for one in CALLS])) or ""
    assert set(said.partition("offered: ")[2].split()) == OFFERED
    has_acted(service)
    task = service.tasks.send("ann", "clerk", '[["forget", {"key": "tea"}]]')
    service.agents.wake("ann", "clerk")
    failed = service.tasks.wait("ann", task, timeout=20)
    assert failed.status == "failed"
