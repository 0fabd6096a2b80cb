"""S5: secrets that were planted wherever Roost loads some are in nothing that leaves it."""

from __future__ import annotations

import io
import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import pytest

import roost
from roost import Chunk, Turn
from roost.core.values.secrets import HIDDEN
from tests.conftest import ENVIRONMENT, QUICK, eventually, settled

PLANTED = "planted-0123456789-abcdef"
AGENT = '''
import logging
import os

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

KEY = os.environ["WAREHOUSE_LOGIN"]


class Leaky(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            call = types.FunctionCall(name=last.text, args={"key": KEY})
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))
            return
        text = f"the tool gave {last.function_response.response['result']}, and I know {KEY}!"
        for character in text:
            yield answer(character, True)
        yield answer(text, False)


def answer(text, partial):
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), partial=partial)


async def fetch(key: str) -> str:
    """Fetch."""
    logging.getLogger("google_adk.leaky").warning("asked with %s", key)
    return f"[{key}]"


async def breaks(key: str) -> str:
    """Break."""
    raise ValueError(f"refused {key}")


root_agent = LlmAgent(name="leaky", model=Leaky(model="leaky"), tools=[fetch, breaks], output_key="last")
'''


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """The log of a program that knows nothing of Roost: a handler of its own at the root."""
    written, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(written), root.level
    handler.setFormatter(logging.Formatter("%(name)s %(message)s %(excerpt)s", defaults={"excerpt": ""}))
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(level)


def kept(database: Path) -> str:
    with closing(sqlite3.connect(database)) as connection:
        return "\n".join(connection.iterdump())


def test_a_key_of_an_adk_folder_is_nowhere(
    tmp_path: Path, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "warehouse"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    (folder / "__init__.py").touch()
    (folder / ".env").write_text(f"WAREHOUSE_LOGIN={PLANTED}\nWAREHOUSE_MODE=fast\n")
    (tmp_path / "roost.toml").write_text('[profiles.leaky]\nbrain = "adk"\nagent = "warehouse"\n')
    monkeypatch.setattr(os, "environ", os.environ.copy())
    with roost.open(f"sqlite:///{tmp_path}/a.db", config=tmp_path / "roost.toml", limits=QUICK) as service:
        talk = service.create_talk_session("ann", profile="leaky")
        service.add_message("ann", talk, "fetch")
        pieces = "".join(
            change.text for change in service.stream_messages("ann", talk) if change.message.sender == "agent"
        )
        answer = service.get_messages("ann", talk).messages[-1]
        service.add_message("ann", talk, "breaks")
        failed = settled(service, "ann", talk)[-1]
        runs = [service.runs.get("ann", run.run_id) for run in service.runs.list("ann")]
        replay = service.runs.replay("ann", runs[-1].run.run_id)
    assert answer.content == pieces
    assert answer.content.count(HIDDEN) == 2
    assert replay.diff == ""
    assert "refused" in logged.getvalue()
    assert "asked with" in logged.getvalue()
    for exit_ in (answer, failed, runs, replay, logged.getvalue(), kept(tmp_path / "a.db")):
        assert PLANTED[8:] not in (exit_ if isinstance(exit_, str) else repr(exit_))


async def leaky(turn: Turn) -> AsyncIterator[str | Chunk]:
    """Gives away a key by every exit that a turn has."""
    if turn.kind == "meeting":
        await turn.meeting.say(f"first {PLANTED}")
        yield f"and {PLANTED}"
        return
    if turn.kind == "mail":
        yield f"about {PLANTED}"
        return
    if turn.text.startswith("do"):
        for piece in (PLANTED[:2], PLANTED[2:9], PLANTED[9:], " and ", PLANTED):
            yield piece
        return
    await turn.mail("user:ann", f"subject {PLANTED}", f"body {PLANTED}")
    await turn.publish("leak", {"key": [PLANTED], PLANTED: 1}, optional=True)
    await turn.remember(f"that it is {PLANTED}")
    await turn.send("agent:other", f"do {PLANTED}")
    yield Chunk(f"thinking of {PLANTED}", "thinking")
    yield Chunk(f"saying {PLANTED}", "commentary")
    yield await turn.ask("agent:other", f"do {PLANTED}")
    logging.getLogger("roost.leaky").warning("known: %s", PLANTED, extra={"excerpt": PLANTED})
    raise RuntimeError(f"cannot use {PLANTED}")


def test_a_known_key_leaves_by_no_exit_of_a_turn(
    tmp_path: Path, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE_API_KEY", PLANTED)
    with roost.open(f"sqlite:///{tmp_path}/a.db", brains={"leaky": leaky}, limits=QUICK) as service:
        for name in ("one", "other"):
            service.agents.create("ann", name, profile="leaky", max_attempts=1)
        task = service.tasks.wait("ann", service.tasks.send("ann", "agent:one", "leak"), timeout=20)
        assert task.status == "failed"
        service.mail.send("ann", "agent:one", "a question", "what is it?")
        inbox = eventually(lambda: len(found := service.mail.inbox("ann")) == 2 and found)
        meeting = service.meetings.call("ann", "leaks", required=["agent:one"])
        service.meetings.say("ann", meeting, "well?")
        words = eventually(lambda: len(found := service.meetings.view("ann", meeting).words) >= 3 and found)
        told = [
            task,
            inbox,
            words,
            service.dead_letters.list("ann"),
            service.events.history("ann"),
            service.agents.memories("ann", "one"),
            service.agents.inspect("ann", "one"),
            service.monitor.facts("ann").facts,
            service.monitor.metrics(),
            service.tasks.list("ann"),
            [service.runs.get("ann", run.run_id) for run in service.runs.list("ann")],
        ]
    assert "cannot use" in logged.getvalue()
    for exit_ in (*told, logged.getvalue(), kept(tmp_path / "a.db")):
        text = exit_ if isinstance(exit_, str) else repr(exit_)
        assert PLANTED[8:] not in text, text[:3_000]
    assert HIDDEN in repr(inbox)


def test_an_answer_is_read_the_same_while_it_is_written_and_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE_API_KEY", PLANTED)

    async def slowly(turn: Turn) -> AsyncIterator[str]:
        for piece in ("plan", "ted words, plant", "ed-0123456789-abc", "def and pl", PLANTED[2:], " the pla"):
            yield piece

    with roost.open(f"sqlite:///{tmp_path}/a.db", brains={"slowly": slowly}, limits=QUICK) as service:
        talk = service.create_talk_session("ann", profile="slowly")
        service.add_message("ann", talk, "go")
        pieces = [c.text for c in service.stream_messages("ann", talk) if c.message.sender == "agent"]
        whole = service.get_messages("ann", talk).messages[-1].content
    assert "".join(pieces) == whole == f"planted words, {HIDDEN} and {HIDDEN} the pla"


PROGRAM = """
import roost, sys

async def breaks(turn):
    yield "well"
    raise RuntimeError("cannot use " + {planted!r})

with roost.open("sqlite:///" + sys.argv[1], brains={{"breaks": breaks}}) as service:
    talk = service.create_talk_session("ann", profile="breaks")
    service.add_message("ann", talk, "go")
    for _ in service.stream_messages("ann", talk):
        pass
"""


def test_a_program_without_logging_prints_errors_and_no_secrets(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "WAREHOUSE_API_KEY": PLANTED}
    program = dedent(PROGRAM).format(planted=PLANTED)
    done = subprocess.run(
        [sys.executable, "-c", program, f"{tmp_path}/a.db"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "a run has failed" in done.stderr
    assert f"RuntimeError: cannot use {HIDDEN}" in done.stderr
    assert PLANTED not in done.stderr


TRACED = """
import os, sys
import roost
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from roost.brains.adk import Adk
from tests.brains.adk import models

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)

async def fetch(text: str = "") -> str:
    return os.environ["WAREHOUSE_API_KEY"]

with roost.open("sqlite:///" + sys.argv[1], brains={"helper": Adk(models.agent(fetch))}) as service:
    talk = service.create_talk_session("ann", profile="helper")
    service.add_message("ann", talk, "call fetch x")
    for _ in service.stream_messages("ann", talk):
        pass
for span in spans.get_finished_spans():
    print(span.to_json())
"""


def test_a_key_that_an_adk_tool_gives_is_in_no_span(tmp_path: Path) -> None:
    path = f"{ENVIRONMENT['PYTHONPATH']}:{Path(__file__).parents[2]}"
    environment = {**ENVIRONMENT, "WAREHOUSE_API_KEY": PLANTED, "PYTHONPATH": path}
    environment["ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN"] = "1"  # in which spans have content by themselves
    done = subprocess.run(
        [sys.executable, "-c", TRACED, f"{tmp_path}/a.db"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "call_llm" in done.stdout
    assert "execute_tool fetch" in done.stdout
    assert PLANTED not in done.stdout


def test_closing_leaves_the_loggers_as_they_were(tmp_path: Path) -> None:
    before = list(logging.getLogger("roost").handlers)
    with roost.open(f"sqlite:///{tmp_path}/a.db", limits=QUICK):
        assert len(logging.getLogger("roost").handlers) == len(before) + 1
    assert logging.getLogger("roost").handlers == before
