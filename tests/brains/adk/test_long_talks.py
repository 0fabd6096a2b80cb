"""T8: of a long talk the agent is shown the newest messages, and a summary of all that came before them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

import roost
from roost.brains.adk import Adk
from roost.brains.chat.context import ASK
from roost.brains.chat.dialogue import SUMMED_UP
from roost.brains.profiles import ProfileRegistry
from roost.service import AgentService
from roost.wiring import open_roost
from tests.brains.adk import models
from tests.conftest import QUICK, everything, settled


class Summing(models.Scripted):
    """Summarize by naming each given fact, or fail."""

    fails: bool = False

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        text = (llm_request.contents[-1].parts or [types.Part()])[-1].text or ""
        if not text.endswith(ASK):
            async for response in super().generate_content_async(llm_request, stream):
                yield response
        elif self.fails:
            raise ConnectionError("no summary today")
        else:
            facts = [word for word in text.split() if word.startswith("fact-")]
            yield models.said("known: " + " ".join(dict.fromkeys(facts)))


def opened(folder: Path, agent: Any, recent: int = 8) -> AgentService:
    shelf = ProfileRegistry({"brain": Adk(agent)}, [roost.Profile("long", "brain", recent_messages=recent)], "long")
    return AgentService(open_roost(f"sqlite:///{folder}/roost.db", shelf, QUICK))


def say(service: AgentService, talk: str, *texts: str) -> None:
    for text in texts:
        service.add_message("ann", talk, text)
        assert settled(service, "ann", talk)[-1].status == "complete"


def test_what_is_not_shown_any_more_is_in_the_summary(tmp_path: Path, shown: list[list[str]]) -> None:
    with opened(tmp_path, models.agent(model=Summing())) as service:
        talk = service.create_talk_session("ann")
        say(service, talk, *(f"fact-{number}" for number in range(12)))
    with opened(tmp_path, models.agent(model=Summing())) as service:
        say(service, talk, *(f"fact-{number}" for number in range(12, 20)))
        log = everything(service, "ann", talk)
    told = " ".join(shown[-1])
    assert shown[-1][0].startswith(f"user: {SUMMED_UP}known: fact-0 fact-1 ")
    assert [number for number in range(20) if f"fact-{number}" not in told.split()] == []
    assert len(shown[-1]) <= 10
    assert [message.content for message in log if message.sender == "user"] == [f"fact-{n}" for n in range(20)]
    summaries = [note for message in log for note in message.notes if note.channel == "summary"]
    assert 7 <= len(summaries) <= 9, "one each time the window moves"


def test_a_summary_that_fails_fails_no_turn_and_is_made_later(
    tmp_path: Path, shown: list[list[str]], caplog: Any
) -> None:
    with opened(tmp_path, models.agent(model=Summing(fails=True))) as service:
        talk = service.create_talk_session("ann")
        say(service, talk, *(f"fact-{number}" for number in range(10)))
    assert shown[-1][0].startswith("user: [The messages up to number")
    assert "cannot summarize" in caplog.text
    with opened(tmp_path, models.agent(model=Summing())) as service:
        say(service, talk, "fact-10")
    assert shown[-1][0].startswith(f"user: {SUMMED_UP}known: fact-0 fact-1 ")


class Silent(BaseAgent):
    """An agent without a model."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        models.seen.append([models.shown(event.content) for event in ctx.session.events if event.content])
        parts = [types.Part(text="well")]
        yield Event(author=self.name, invocation_id=ctx.invocation_id, content=types.Content(role="model", parts=parts))


def test_an_agent_without_a_model_sees_that_older_messages_are_left_out(tmp_path: Path, shown: list[list[str]]) -> None:
    with opened(tmp_path, Silent(name="silent")) as service:
        talk = service.create_talk_session("ann")
        say(service, talk, *(f"fact-{number}" for number in range(10)))
    assert shown[-1][0].startswith("user: [The messages up to number")
