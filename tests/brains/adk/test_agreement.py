"""B2: however an agent of the ADK speaks, what people see of it and what its session keeps agree."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, ParallelAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event, EventActions
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

import roost
from roost.brains.adk import Adk
from tests.brains.adk import models
from tests.conftest import Open, eventually, settled


class Played(BaseLlm):
    """Answers with these responses: a text is a piece of a stream, one in a list a whole response."""

    model: str = "played"
    responses: list[Any]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        models.seen.append([models.shown(content) for content in llm_request.contents])
        for one in self.responses:
            await asyncio.sleep(60 if one == "forever" else 0)
            yield models.said(one, partial=True) if isinstance(one, str) else models.said(one[0])


def ask(service: roost.AgentService, talk: str, text: str) -> roost.Message:
    service.add_message("ann", talk, text)
    return settled(service, "ann", talk)[-1]


def answered(service: Open, agent: Any, shown: list[list[str]]) -> tuple[str, list[str]]:
    """Return what people see of an answer, and what the agent is shown of it in the next turn."""
    one = service({"helper": Adk(agent)})
    talk = one.create_talk_session("ann", profile="helper")
    one.add_message("ann", talk, "hello")
    pieces = [change.text for change in one.stream_messages("ann", talk) if change.message.sender == "agent"]
    answer = one.get_messages("ann", talk).messages[-1]
    assert "".join(pieces) == answer.content
    one.close()
    one = service({"helper": Adk(agent)})
    shown.clear()
    assert ask(one, talk, "again").status == "complete"
    assert (shown[-1][0], shown[-1][-1]) == ("user: hello", "user: again")
    return answer.content, shown[-1][1:-1]


@pytest.mark.parametrize(
    ("responses", "seen"),
    [
        (["one ", "two", ["one two"]], "one two"),
        (["one ", "two", ["one two three"]], "one two three"),
        (["one ", "two ", ["one two"]], "one two "),
        (["one ", "two", ["two"]], "one two"),
        (["one ", "two", ["another"]], "one two"),
        (["one ", "two"], "one two"),
        ([["whole"]], "whole"),
    ],
)
def test_the_session_has_the_words_that_people_have_seen(
    service: Open, shown: list[list[str]], responses: list[Any], seen: str
) -> None:
    agent = LlmAgent(name="helper", model=Played(responses=responses))
    content, kept = answered(service, agent, shown)
    assert (content, kept) == (seen, [f"model: {seen}"])


def test_what_a_guard_takes_out_of_the_stream_is_not_said_at_its_end(service: Open, shown: list[list[str]]) -> None:
    def guard(callback_context: CallbackContext, llm_response: LlmResponse) -> LlmResponse | None:
        return models.said("•", partial=True) if llm_response.partial else None

    agent = LlmAgent(name="helper", model=Played(responses=["a ", "b", ["a b"]]), after_model_callback=guard)
    content, kept = answered(service, agent, shown)
    assert (content, kept) == ("••", ["model: ••"])


class Streaming(BaseAgent):
    """An agent without a model, which changes the state while it speaks."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        common: dict[str, Any] = {"author": self.name, "invocation_id": ctx.invocation_id, "branch": ctx.branch}
        for piece in ("one ", "two"):
            yield Event(**common, partial=True, content=types.Content(role="model", parts=[types.Part(text=piece)]))
            yield Event(**common, actions=EventActions(state_delta={"n": piece}))
        models.seen.append([models.shown(event.content) for event in ctx.session.events if event.content])


def test_an_agent_without_a_model_that_only_streams_is_kept(service: Open, shown: list[list[str]]) -> None:
    content, kept = answered(service, Streaming(name="helper"), shown)
    assert (content, kept) == ("one two", ["model: one two"])


@pytest.mark.filterwarnings("ignore:ParallelAgent is deprecated:DeprecationWarning")
def test_agents_that_speak_at_the_same_time_are_heard_one_after_the_other(
    service: Open, shown: list[list[str]]
) -> None:
    def speaker(name: str) -> LlmAgent:
        words = [f"{name}{number} " for number in range(5)]
        return LlmAgent(name=name, model=Played(responses=[*words, ["".join(words)]]))

    one = service({"both": Adk(ParallelAgent(name="both", sub_agents=[speaker("a"), speaker("b")]))})
    talk = one.create_talk_session("ann", profile="both")
    answer = ask(one, talk, "hello")
    first, second = answer.content.split("\n\n")
    assert sorted([first, second]) == ["a0 a1 a2 a3 a4 ", "b0 b1 b2 b3 b4 "]
    ask(one, talk, "again")
    kept = " ".join(shown[-1] + shown[-2])  # each of them is shown its own words
    assert kept.count("a0 a1 a2 a3 a4 ") == kept.count("b0 b1 b2 b3 b4 ") == 1


@pytest.mark.filterwarnings("ignore:ParallelAgent is deprecated:DeprecationWarning")
def test_unpublished_words_before_a_stop_are_not_in_the_session(service: Open, shown: list[list[str]]) -> None:
    def both(ends: list[Any]) -> Adk:
        first = LlmAgent(name="a", model=Played(responses=["a0 ", *ends]))
        second = LlmAgent(name="b", model=Played(responses=["b0 ", "b1", ["b0 b1"]]))
        return Adk(ParallelAgent(name="both", sub_agents=[first, second]))

    one = service({"both": both(["forever"])})
    talk = one.create_talk_session("ann", profile="both")
    one.add_message("ann", talk, "hello")
    eventually(lambda: one.get_messages("ann", talk).messages[-1].content == "a0 ")
    one.stop("ann", talk, wait=5)
    one.close()
    one = service({"both": both([["a0 "]])})
    shown.clear()
    ask(one, talk, "again")
    told = " ".join(line for call in shown for line in call)
    assert "a0" in told
    assert "b0" not in told
