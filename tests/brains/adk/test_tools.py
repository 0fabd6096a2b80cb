"""Tools and sub-agents of the ADK in a talk: state, threads, failures, transfer."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.adk.apps import App
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.reflect_retry_tool_plugin import ReflectAndRetryToolPlugin
from google.adk.tools.tool_context import ToolContext
from google.genai import errors, types

import roost
from roost.brains.adk import Adk
from tests.brains.adk import models
from tests.conftest import ENVIRONMENT, QUICK, Open, eventually, settled


def ask(service: roost.AgentService, talk: str, text: str) -> roost.Message:
    service.add_message("ann", talk, text)
    return settled(service, "ann", talk)[-1]


def count(tool_context: ToolContext) -> str:
    """Count in every scope."""
    state = tool_context.state
    for name in ("n", "user:n", "app:n", "temp:n"):
        state[name] = state.get(name, 0) + 1
    return "/".join(str(state[name]) for name in ("n", "user:n", "app:n", "temp:n"))


def test_each_scope_of_the_state_reaches_as_far_as_it_should(service: Open) -> None:
    def opened() -> roost.AgentService:
        return service({"helper": Adk(models.agent(count))})

    one = opened()
    first, second = (one.create_talk_session("ann", profile="helper") for _ in range(2))
    assert ask(one, first, "call count").content == "the tool says 1/1/1/1"
    assert ask(one, first, "call count").content == "the tool says 2/2/2/1"
    one.close()
    one = opened()
    assert ask(one, second, "call count").content == "the tool says 1/3/3/1"
    bobs = one.create_talk_session("bob", profile="helper")
    one.add_message("bob", bobs, "call count")
    assert settled(one, "bob", bobs)[-1].content == "the tool says 1/1/4/1"


def test_a_blocking_tool_delays_no_other_talk_and_can_be_abandoned(service: Open) -> None:
    may_end, begun = threading.Event(), list[bool]()

    def block() -> str:
        """Block the thread."""
        begun.append(True)
        return "ended" if may_end.wait(20) else "never"

    one = service({"helper": Adk(models.agent(block))})
    blocked, other = (one.create_talk_session("ann", profile="helper") for _ in range(2))
    one.add_message("ann", blocked, "call block")
    eventually(lambda: begun)
    assert ask(one, other, "hello").content == "you said hello"
    receipt = one.stop("ann", blocked, wait=5)
    assert receipt.quiesced is not None
    assert receipt.abandoned == ("tool block",)
    may_end.set()
    assert ask(one, blocked, "hello").content == "you said hello"


def test_however_many_tools_block_after_they_were_stopped_others_are_answered(service: Open) -> None:
    may_end, begun = threading.Event(), list[bool]()

    def block() -> str:
        """Block the thread."""
        begun.append(True)
        return "ended" if may_end.wait(20) else "never"

    def plain() -> str:
        """Do not block."""
        return "done"

    one = service({"helper": Adk(models.agent(block, plain))}, limits=replace(QUICK, stop_patience=0.3, talk_workers=1))
    try:
        for number in range(8):
            talk = one.create_talk_session("ann", profile="helper")
            one.add_message("ann", talk, "call block")
            eventually(lambda number=number: len(begun) > number)  # type: ignore[misc]
            assert one.stop("ann", talk, wait=5).abandoned == ("tool block",)
        assert one.health().abandoned == 8
        other = one.create_talk_session("ann", profile="helper")
        assert ask(one, other, "call plain").content == "the tool says done"
    finally:
        may_end.set()
    eventually(lambda: one.health().abandoned == 0)


PROGRAM = """
import threading, roost
from roost.brains.adk import Adk
from tests.brains.adk import models

begun = threading.Event()

def block() -> str:
    "Block the thread."
    begun.set()
    threading.Event().wait(60)
    return "ended"

limits = roost.Limits(drain=0.2, stop_patience=0.2)
with roost.open("sqlite:///{path}", brains={{"helper": Adk(models.agent(block))}}, limits=limits) as service:
    talk = service.create_talk_session("ann", profile="helper")
    service.add_message("ann", talk, "call block")
    assert begun.wait(20)
    service.stop("ann", talk, wait=5)
print("closed", flush=True)
"""


def test_a_program_ends_although_a_tool_blocks(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM.format(path=tmp_path / "roost.db")]
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=100, cwd=Path.cwd())
    assert (ended.returncode, ended.stdout) == (0, "closed\n"), ended.stderr


def test_closing_leaves_no_thread_of_a_tool_behind(service: Open) -> None:
    def plain() -> str:
        """Plain."""
        return threading.current_thread().name

    one = service({"helper": Adk(models.agent(plain))})
    talk = one.create_talk_session("ann", profile="helper")
    assert "roost tool plain" in ask(one, talk, "call plain").content
    one.close()
    names = ("adk_tool", "roost tool")
    eventually(lambda: not any(name in thread.name for thread in threading.enumerate() for name in names))


async def failing() -> str:
    """Fail."""
    raise RuntimeError("secret details")


def test_a_tool_that_raises_fails_the_turn_as_a_tool_failure(service: Open) -> None:
    one = service({"helper": Adk(models.agent(failing))})
    talk = one.create_talk_session("ann", profile="helper")
    failed = ask(one, talk, "call failing")
    assert failed.status == "failed"
    assert "A tool the agent needed has failed" in (failed.error or "")
    assert "secret" not in (failed.error or "")
    traceback = one.runs.get("ann", str(failed.run_id)).traceback or ""
    [head, place, line, error, *_] = traceback.splitlines()
    assert (head, line.strip()) == ("Traceback (most recent call last):", 'raise RuntimeError("secret details")')
    assert place.endswith("in failing")
    assert error == "RuntimeError: secret details"
    assert ask(one, talk, "hello").content == "you said hello"


def test_an_app_keeps_its_own_plugins(service: Open) -> None:
    app = App(name="shop", root_agent=models.agent(failing), plugins=[ReflectAndRetryToolPlugin(max_retries=1)])
    one = service({"helper": Adk(app)})
    talk = one.create_talk_session("ann", profile="helper")
    assert ask(one, talk, "call failing").status == "complete"


def test_a_transfer_to_a_sub_agent_survives_a_restart(service: Open, shown: list[list[str]]) -> None:
    def brain() -> Adk:
        below = models.agent(name="expert", description="Knows more.")
        return Adk(models.agent(sub_agents=[below]))

    one = service({"helper": brain()})
    talk = one.create_talk_session("ann", profile="helper")
    answer = ask(one, talk, "call transfer_to_agent agent_name=expert")
    assert answer.status == "complete"
    one.close()
    one = service({"helper": brain()})
    ask(one, talk, "who are you?")
    assert models.spoke[-1] == "expert"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (errors.ClientError(429, {"error": {"message": "quota"}}), "rate limit is reached"),
        (errors.ClientError(400, {"error": {"message": "API key not valid"}}), "refused the key"),
        (errors.ClientError(400, {"error": {"message": "input token count exceeds"}}), "grew too long"),
        (errors.ServerError(503, {"error": {"message": "overloaded"}}), "could not be reached"),
        (ValueError("No API key was provided"), "No key is set"),
        (KeyError("x"), "internal error"),
        (LlmResponse(error_code="429", error_message="quota"), "rate limit is reached"),
    ],
)
def test_what_the_model_fails_with_is_sorted(service: Open, error: Any, sentence: str) -> None:
    one = service({"helper": Adk(models.agent(model=models.Failing(error=error)))})
    talk = one.create_talk_session("ann", profile="helper")
    failed = ask(one, talk, "hello")
    assert (str(failed.status), sentence in (failed.error or "")) == ("failed", True), failed.error


def test_a_run_that_has_used_up_its_tokens_ends_with_that(tmp_path: Path) -> None:
    config = tmp_path / "roost.toml"
    config.write_text(
        '[profiles.helper]\nbrain = "adk"\nagent = "tests.brains.adk.models:counted_agent"\ntokens_per_run = 5\n'
    )
    with roost.open(f"sqlite:///{tmp_path}/roost.db", config=config) as one:
        talk = one.create_talk_session("ann", profile="helper")
        assert "used up its tokens" in (ask(one, talk, "call quick").error or "")


def test_tokens_are_counted(service: Open) -> None:
    used = types.GenerateContentResponseUsageMetadata(prompt_token_count=5, candidates_token_count=2)
    one = service({"helper": Adk(models.agent(model=models.Scripted(usage=used)))})
    talk = one.create_talk_session("ann", profile="helper")
    ask(one, talk, "call quick")
    tokens = eventually(lambda: dict(one.monitor.metrics()["roost_tokens_total"].values))
    assert tokens == {("helper", "input"): 10.0, ("helper", "output"): 4.0}
