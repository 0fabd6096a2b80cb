"""S5, A11: a repeated turn passes its recorded answers through the agent's callbacks, as it did with the live ones."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

import roost
from roost.brains.adk import Adk
from tests.conftest import QUICK, eventually, settled

ANSWER = "done: paid 10 for ANN. your PIN is hidden"


class World:
    """Effects of the agent of a test on the outside, and the moments at which its store is copied."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paid: list[Any] = []
        self.asked: list[int] = []
        self.order: list[str] = []
        self.fails = 0

    def copy_store(self) -> None:
        """Keep the store as it is now, as if the power failed."""
        copied = self.folder / "copied"
        if copied.exists():
            return
        copied.mkdir()
        for file in self.folder.glob("roost.db*"):
            if not file.name.endswith(".lock"):
                shutil.copy(file, copied / file.name)


class Teller(BaseLlm):
    """Pays more than it may, and then gives away a PIN, word by word."""

    model: str = "teller"
    world: Any

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        results = [part.function_response for part in parts if part.function_response]
        self.world.asked.append(len(results))
        if not results:
            paying = [types.Part(text="PIN 1234: "), call("pay", amount="1000", to="ann")]
            yield answered(types.Part(text="PIN 1234: "), partial=True)
            yield answered(*paying)
            return
        self.world.copy_store()
        if self.world.fails:
            self.world.fails -= 1
            raise ConnectionError("the model is gone")
        text = f"done: {(results[-1].response or {})['result']}. your PIN is 1234"
        for word in text.split(" ")[:-1]:
            yield answered(types.Part(text=f"{word} "), partial=True)
        yield answered(types.Part(text="1234"), partial=True)
        yield answered(types.Part(text=text))


def answered(*parts: types.Part, partial: bool | None = None) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=list(parts)), partial=partial)


def call(name: str, **arguments: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


class Guards:
    """Callbacks of an agent. `in_place`: the response is changed, instead of replaced by another."""

    def __init__(self, world: World, in_place: bool) -> None:
        self.world = world
        self.in_place = in_place

    def after_model(self, callback_context: CallbackContext, llm_response: LlmResponse) -> LlmResponse | None:
        guarded = llm_response if self.in_place else llm_response.model_copy(deep=True)
        if not llm_response.partial:
            self.world.order.append("after model")
        for part in guarded.content.parts or [] if guarded.content else []:
            if part.text:
                part.text = part.text.replace("1234", "hidden")
            if part.function_call and part.function_call.args:
                part.function_call.args["amount"] = "10"
        return None if self.in_place else guarded

    def before_tool(self, tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
        self.world.order.append("before tool")
        args["to"] = args["to"].upper()

    def after_tool(
        self, tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, tool_response: Any
    ) -> dict[str, Any]:
        self.world.order.append("after tool")
        return {"result": f"paid {args['amount']} for {tool_response}"}


class GuardPlugin(BasePlugin):
    """The same as a plugin of an app."""

    def __init__(self, guards: Guards) -> None:
        super().__init__(name="guard")
        self.guards = guards

    async def after_model_callback(self, **given: Any) -> LlmResponse | None:
        return self.guards.after_model(**given)

    async def before_tool_callback(self, *, tool_args: dict[str, Any], **given: Any) -> None:
        self.guards.before_tool(args=tool_args, **given)

    async def after_tool_callback(self, *, tool_args: dict[str, Any], result: Any, **given: Any) -> dict[str, Any]:
        return self.guards.after_tool(args=tool_args, tool_response=result, **given)


def brain(world: World, way: str, *, confirm: bool = False) -> Adk:
    async def pay(amount: str, to: str) -> str:
        """Pay."""
        world.paid.append((amount, to))
        return to

    guards = Guards(world, in_place=way == "in place")
    own: dict[str, Any] = {
        "after_model_callback": guards.after_model,
        "before_tool_callback": guards.before_tool,
        "after_tool_callback": guards.after_tool,
    }
    agent = LlmAgent(
        name="bank",
        model=Teller(world=world),
        tools=[FunctionTool(pay, require_confirmation=confirm)],
        **({} if way == "plugin" else own),
    )
    return Adk(App(name="bank", root_agent=agent, plugins=[GuardPlugin(guards)])) if way == "plugin" else Adk(agent)


ways = pytest.mark.parametrize("way", ["in place", "replaced", "plugin"])


def opened(world: World, made: Adk, folder: Path | None = None) -> roost.AgentService:
    return roost.open(f"sqlite:///{folder or world.folder}/roost.db", brains={"bank": made}, limits=QUICK)


def check(world: World, answer: roost.Message, before: str = "PIN hidden: \n\n") -> None:
    assert (answer.status, answer.content) == ("complete", before + ANSWER)
    assert world.paid == [("10", "ANN")]
    notes = " ".join(note.text for note in answer.notes)
    assert "1000" not in notes
    assert world.order == ["after model", "before tool", "after tool", "after model"]


@ways
def test_after_an_approval(tmp_path: Path, way: str) -> None:
    world = World(tmp_path)
    with opened(world, brain(world, way, confirm=True)) as service:
        talk = service.create_talk_session("ann", profile="bank")
        service.add_message("ann", talk, "pay")
        eventually(partial(service.approvals.list, "ann"))
    with opened(world, brain(world, way, confirm=True)) as service:
        asked = service.approvals.list("ann")[0]
        assert dict(asked.arguments) == {"amount": "10", "to": "ANN"}
        world.order.clear()
        service.approvals.approve("ann", asked.approval_id)
        check(world, settled(service, "ann", talk)[-1])
    assert world.asked == [0, 1], "the model is asked nothing twice"


@ways
def test_after_a_crash(tmp_path: Path, way: str) -> None:
    world = World(tmp_path)
    with opened(world, brain(world, way)) as service:
        talk = service.create_talk_session("ann", profile="bank")
        service.add_message("ann", talk, "pay")
        check(world, settled(service, "ann", talk)[-1])
    world.order.clear()
    with opened(world, brain(world, way), tmp_path / "copied") as service:
        check(world, settled(service, "ann", talk)[-1])
    assert world.asked == [0, 1, 1]


@ways
def test_after_a_hiccup_of_the_provider(tmp_path: Path, way: str) -> None:
    world = World(tmp_path)
    world.fails = 1
    with opened(world, brain(world, way)) as service:
        service.agents.create("ann", "teller", profile="bank", retry_delay=0.01)
        task = service.tasks.wait("ann", service.tasks.send("ann", "agent:teller", "pay"), timeout=20)
        assert (task.status, task.result) == ("done", "PIN hidden: \n\n" + ANSWER)
        replay = service.runs.replay("ann", service.runs.list("ann")[0].run_id)
    assert (world.paid, world.asked) == ([("10", "ANN")], [0, 1, 1])
    assert replay.text == "PIN hidden: \n\n" + ANSWER


def test_a_guard_that_only_looks_at_streamed_words_sees_them_in_a_repeated_turn(tmp_path: Path) -> None:
    world = World(tmp_path)

    def guard(callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        for part in llm_response.content.parts or [] if llm_response.content and llm_response.partial else []:
            part.text = (part.text or "").replace("1234", "hidden")

    async def pay(amount: str, to: str) -> str:
        """Pay."""
        return "nothing"

    agent = LlmAgent(name="bank", model=Teller(world=world), tools=[pay], after_model_callback=guard)
    with opened(world, Adk(agent)) as service:
        talk = service.create_talk_session("ann", profile="bank")
        service.add_message("ann", talk, "pay")
        first = settled(service, "ann", talk)[-1].content
    with opened(world, Adk(agent), tmp_path / "copied") as service:
        again = settled(service, "ann", talk)[-1].content
    assert first.startswith("PIN hidden: \n\ndone: nothing. your PIN is hidden")
    assert again == first
