"""B3: what a tool of the ADK wants from a person goes through approvals, and waits over restarts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.get_user_choice_tool import get_user_choice_tool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext

import roost
from roost.brains.adk import Adk
from tests.brains.adk import models
from tests.conftest import QUICK, eventually, settled

done: list[Any] = []


def book(tool_context: ToolContext, days: str = "3") -> dict[str, Any]:
    """Book, once somebody has confirmed for how many days."""
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        done.append("asked")
        tool_context.state["asked"] = "yes"
        tool_context.request_confirmation(hint="for how many days?", payload={"days": int(days)})
        return {"status": "pending"}
    if not confirmation.confirmed:
        done.append("refused")
        return {"status": "refused"}
    payload: Any = confirmation.payload
    done.append(payload)
    return {"status": f"booked for {payload['days']}, asked: {tool_context.state['asked']}"}


def order(what: str = "bread") -> dict[str, str]:
    """Order something, which takes days to be approved."""
    done.append(what)
    return {"ticket": "7", "status": "pending"}


@pytest.fixture
def restarted(tmp_path: Path) -> Callable[..., tuple[str, Any]]:
    """A turn that asks a person; the program is closed and opened before they decide."""
    done.clear()

    def run(tool: Any, text: str, decide: Callable[[roost.AgentService, str], Any]) -> tuple[str, Any]:
        def opened() -> roost.AgentService:
            brain = Adk(models.agent(tool))
            return roost.open(f"sqlite:///{tmp_path}/roost.db", brains={"helper": brain}, limits=QUICK)

        with opened() as service:
            talk = service.create_talk_session("ann", profile="helper")
            service.add_message("ann", talk, text)
            eventually(partial(service.approvals.list, "ann"))
        with opened() as service:
            asked = service.approvals.list("ann")[0]
            decide(service, asked.approval_id)
            last = settled(service, "ann", talk)[-1]
            assert last.status == "complete", last.error
            service.add_message("ann", talk, "hello")
            assert settled(service, "ann", talk)[-1].content == "you said hello"
        return last.content, asked

    return run


def approve(service: roost.AgentService, approval: str) -> None:
    service.approvals.approve("ann", approval)


def decline(service: roost.AgentService, approval: str) -> None:
    service.approvals.decline("ann", approval)


def answer(text: str) -> Callable[[roost.AgentService, str], Any]:
    return lambda service, approval: service.approvals.answer("ann", approval, text)


@pytest.mark.parametrize(
    ("decide", "said", "effects"),
    [
        (approve, "the tool says booked for 3, asked: yes", ["asked", {"days": 3}]),
        (decline, "the tool says refused", ["asked", "refused"]),
        (answer('{"days": 5}'), "the tool says booked for 5, asked: yes", ["asked", {"days": 5}]),
    ],
)
def test_a_tool_that_requests_confirmation_is_called_again_with_the_decision(
    restarted: Any, decide: Any, said: str, effects: list[Any]
) -> None:
    content, asked = restarted(FunctionTool(book), "call book days=3", decide)
    assert (content, done) == (said, effects)
    assert (asked.tool, dict(asked.arguments)) == (
        "book",
        {"days": "3", "confirm": "for how many days?", "payload": {"days": 3}},
    )


@pytest.mark.parametrize(
    ("decide", "said"),
    [
        (answer("delivered"), "the tool says delivered"),
        (answer("approved"), "the tool says approved"),
        (answer('{"status": "delivered"}'), "the tool says delivered"),
        (approve, "the tool says 7"),
        (decline, "the tool says a person has declined order"),
    ],
)
def test_a_long_running_tool_waits_for_its_result(restarted: Any, decide: Any, said: str) -> None:
    content, asked = restarted(LongRunningFunctionTool(order), "call order what=milk", decide)
    assert (content, done) == (said, ["milk"])
    assert dict(asked.arguments) == {"what": "milk", "begun": {"ticket": "7", "status": "pending"}}


def test_a_choice_of_a_person_is_what_they_answer(restarted: Any) -> None:
    content, asked = restarted(get_user_choice_tool, "call get_user_choice options=red,blue", answer("blue"))
    assert (content, asked.tool, dict(asked.arguments)) == (
        "the tool says blue",
        "get_user_choice",
        {"options": "red,blue"},
    )


@pytest.mark.parametrize("given", ['{"price": 5}', "5", '"five"', "[5]", "null", "five"])
def test_whatever_is_answered_in_place_of_a_call_is_its_result(restarted: Any, given: str) -> None:
    async def price(of: str = "") -> str:
        """Price."""
        raise AssertionError("somebody has answered instead")

    content, _ = restarted(FunctionTool(price, require_confirmation=True), "call price of=tea", answer(given))
    assert content == {
        '{"price": 5}': "the tool says 5",
        "[5]": "the tool says [5]",
    }.get(given, f"the tool says {given}")
