"""A11, B3: what models answered and what tools did is on record, and a turn that is run again does nothing twice."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

import roost
from roost.brains.adk import Adk
from tests.brains.adk import models
from tests.conftest import QUICK, eventually, settled


class World:
    """Counts what is done outside, and keeps the store as it is at a moment: as if the power failed then."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: list[str] = []
        self.kept: dict[str, list[str]] = {}
        self.cut = False

    def moment(self, name: str) -> None:
        if not self.cut and name not in self.kept:
            self.kept[name] = list(self.done)
            copied = self.folder / name
            copied.mkdir()
            for file in self.folder.glob("roost.db*"):
                if not file.name.endswith(".lock"):
                    shutil.copy(file, copied / file.name)

    def act(self, name: str) -> Callable[..., Any]:
        async def tool(tool_context: ToolContext) -> str:
            """Act."""
            self.moment(f"before {name}")
            self.done.append(name)
            tool_context.state["done"] = [*tool_context.state.get("done", []), name]
            self.moment(f"after {name}")
            return f"{name} is done"

        tool.__name__ = name
        return tool


class Three(BaseLlm):
    """Call a, b and c in order, and then say their results."""

    model: str = "three"
    world: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        results = [part.function_response for part in parts if part.function_response]
        self.world.moment(f"question {len(results)}")
        if len(results) == 3:
            told = ", ".join(str((one.response or {}).get("result")) for one in results)
            yield models.said(f"{told}.")
        else:
            call = types.FunctionCall(name="abc"[len(results)], args={})
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))


def opened(world: World, folder: Path) -> roost.AgentService:
    agent = LlmAgent(name="actor", model=Three(world=world), tools=[world.act(name) for name in "abc"])
    return roost.open(f"sqlite:///{folder}/roost.db", brains={"actor": Adk(agent)}, limits=QUICK)


def test_wherever_it_is_cut_off_each_tool_acts_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    with opened(world, tmp_path) as service:
        talk = service.create_talk_session("ann", profile="actor")
        service.add_message("ann", talk, "go")
        assert settled(service, "ann", talk)[-1].content == "a is done, b is done, c is done."
    world.cut = True
    assert len(world.kept) == 10
    for moment, done in world.kept.items():
        world.done = list(done)
        with opened(world, tmp_path / moment) as service:
            if not moment.startswith("question"):  # whether it was done is not known: a person is asked
                asked = eventually(partial(service.approvals.list, "ann"))[0]
                assert (asked.tool, world.done) == (moment[-1], done)
                if moment.startswith("after"):
                    service.approvals.answer("ann", asked.approval_id, f"{asked.tool} is done")
                else:
                    service.approvals.approve("ann", asked.approval_id)
            last = settled(service, "ann", talk)[-1]
            assert (last.content, moment) == ("a is done, b is done, c is done.", moment)
            assert Counter(world.done) == Counter("abc"), moment
        if not moment.startswith("after"):
            assert state_in(tmp_path / moment) == ["a", "b", "c"], "what a call did to the state is on record as well"


def state_in(folder: Path) -> Any:
    with closing(sqlite3.connect(folder / "roost.db")) as database:
        return json.loads(database.execute("SELECT value FROM diary_values WHERE name = 'done'").fetchone()[0])


@pytest.mark.parametrize("approved", [True, False])
def test_a_tool_that_wants_a_word_waits_for_it_over_a_restart(tmp_path: Path, approved: bool) -> None:
    done = []

    async def pay(text: str) -> str:
        """Pay."""
        done.append(text)
        return "paid"

    def opened() -> roost.AgentService:
        agent = models.agent(FunctionTool(pay, require_confirmation=True))
        return roost.open(f"sqlite:///{tmp_path}/roost.db", brains={"helper": Adk(agent)}, limits=QUICK)

    with opened() as service:
        talk = service.create_talk_session("ann", profile="helper")
        service.add_message("ann", talk, "call pay rent")
        eventually(partial(service.approvals.list, "ann"))
    with opened() as service:
        asked = service.approvals.list("ann")[0]
        assert (asked.tool, dict(asked.arguments), done) == ("pay", {"text": "rent"}, [])
        decide = service.approvals.approve if approved else service.approvals.decline
        decide("ann", asked.approval_id)
        answer = settled(service, "ann", talk)[-1].content
        assert (answer, done) == (("the tool says paid", ["rent"]) if approved else (DECLINED, []))


DECLINED = "the tool says a person has declined pay"


def test_tools_of_roost_are_offered_and_failures_reach_the_model(tmp_path: Path) -> None:
    @roost.tool
    async def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    with roost.open(
        f"sqlite:///{tmp_path}/roost.db", brains={"helper": Adk(models.agent())}, tools=[double], limits=QUICK
    ) as service:
        talk = service.create_talk_session("ann", profile="helper")
        for said, answer in (("call double number=21", "42"), ("call double number=x", "are wrong")):
            service.add_message("ann", talk, said)
            last = settled(service, "ann", talk)[-1]
            assert (last.status, answer in last.content) == ("complete", True), last
