"""S5: what tools of the ADK are given and give is shown to the model as it is, and kept without secrets."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest
from google.adk.apps import App
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.reflect_retry_tool_plugin import ReflectAndRetryToolPlugin
from google.genai import types

import roost
from roost.brains.adk import Adk
from roost.core.values.secrets import HIDDEN
from tests.brains.adk import models
from tests.conftest import QUICK, eventually, settled

KEY = "canary-known-by-its-value"
LOOKS = "sk-canary0123456789abcdefgh"
MINE = "sk-mine0123456789abcdefgh"
SIGNATURE = b"\xb2\x4f\xa8" * 60  # as text it has parts that look like a key


class Discreet(models.Scripted):
    """Calls a tool with a key, and tells nobody what came of it."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        models.seen.append([models.shown(content) for content in llm_request.contents])
        part = (llm_request.contents[-1].parts or [types.Part()])[-1]
        if part.function_response:
            yield models.said("that is done")
            return
        call = types.FunctionCall(name=(part.text or "").split()[-2], args={"key": KEY})
        signed = types.Part(function_call=call, thought_signature=SIGNATURE)
        yield LlmResponse(content=types.Content(role="model", parts=[signed]))


async def fetch(key: str) -> dict[str, str]:
    """Gives back the key it was asked with, and another one."""
    assert key == KEY, "it is given the real one"
    return {"price": "5", "fetched": f"with {key} and {LOOKS}"}


async def breaks(key: str) -> str:
    """Fails, and says with what."""
    raise ValueError(f"refused {key} and {LOOKS}")


def test_secrets_of_tools_are_shown_to_the_model_and_kept_nowhere(
    tmp_path: Path, shown: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_API_KEY", KEY)
    agent = models.agent(fetch, breaks, model=Discreet())
    told = ReflectAndRetryToolPlugin(max_retries=1, throw_exception_if_retry_exceeded=False)
    brain = Adk(App(name="careful", root_agent=agent, plugins=[told]))
    database = tmp_path / "a.db"
    with roost.open(f"sqlite:///{database}", brains={"careful": brain}, limits=QUICK) as service:
        talk = service.create_talk_session("ann", profile="careful")
        for text in (f"with {MINE} fetch it", "breaks it", "fetch more"):
            service.add_message("ann", talk, text)
            assert settled(service, "ann", talk)[-1].content == "that is done"
        service.agents.create("ann", "d", profile="careful")
        service.mail.send("ann", "agent:d", "fetch it", "fetch it")
        eventually(lambda: service.mail.inbox("ann"))
        runs = [service.runs.get("ann", run.run_id) for run in service.runs.list("ann")]
        replays = [service.runs.replay("ann", run.run.run_id) for run in runs]
    assert len(runs) == 4
    results = [calls[-1] for calls in shown if "result" in calls[-1]]
    assert all(KEY in one and LOOKS in one for one in results[:3]), "within its turn"
    later = " ".join(shown[4])
    assert later.count(HIDDEN) >= 4, "and not in the next ones"
    assert KEY not in later
    assert MINE in later, "what a person says stays, as in the talk"
    with closing(sqlite3.connect(database)) as connection:
        [signature] = connection.execute("SELECT content LIKE '%sk-o%' FROM diary LIMIT 1").fetchone()
        kept = "\n".join(connection.iterdump())
    assert signature, "what is no text stays as it was"
    assert "canary" not in kept
    assert [replay.diff for replay in replays if "fetch" in str(replay.steps)] == [""] * 3
