"""S5: secrets in keys, tool results and errors are in nothing that leaves Roost: by command, over HTTP, as numbers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import roost as package
from roost import Chunk, Turn, telemetry
from roost.core.talks.side_channels import Channel, answered, called
from roost.core.values.secrets import HIDDEN
from roost.wiring import announce
from tests.api.serving import Served, ask, serving
from tests.cli.running import command
from tests.runtime.monitoring.test_canaries import KNOWN, LOOKS, WORDS
from tests.runtime.monitoring.tracing import KeepingTracer

USER = "ann"
FULL = f"{KNOWN} {LOOKS['provider']} {LOOKS['bearer']}"


@package.tool
async def fetch(what: str) -> str:
    return f"{what} with {FULL}"


@package.tool(approval=True)
async def careful(what: str) -> str:
    raise ValueError(f"refused {what}: {FULL}")


seen: set[str] = set()
"""Runs that were run once: of what is replayed, the journal has no secret to give."""


async def leaky(turn: Turn) -> AsyncIterator[str | Chunk]:
    yield Chunk(called("1", "fetch", {"what": KNOWN}), Channel.TOOLS)
    got = await turn.call_tool("fetch", {"what": KNOWN})
    if turn.run_id not in seen:
        assert FULL in got, "the brain itself is given the real one"
        seen.add(turn.run_id)
    yield Chunk(answered("1", got), Channel.TOOLS)
    async with turn.model_call("model", {"key": KNOWN}) as call:
        call.response = call.recorded or {"said": FULL}
    try:
        await turn.call_tool("careful", {"what": FULL})
    except package.ToolFailed:
        yield "it broke"
    raise RuntimeError(f"cannot go on: {FULL}")


class Leaked:
    """Everything that exists after a talk and a task with a brain that leaks wherever it can."""

    def __init__(self, served: Served, tracer: KeepingTracer) -> None:
        self.served = served
        service = served.service
        service.roost.context.tracer = telemetry.spans(tracer)
        self.tracer = tracer
        service.agents.create(USER, "d", profile="leaky", max_attempts=1)
        self.task = service.tasks.send(USER, "d", "go")
        self.talk = service.create_talk_session(USER, profile="leaky")
        service.add_message(USER, self.talk, "go")
        while len(open := service.approvals.list(USER)) < 2:
            service.monitor.wait(USER, service.monitor.facts(USER).cursor, timeout=0.05)
        for one in open:
            service.approvals.approve(USER, one.approval_id)
        assert service.tasks.wait(USER, self.task).status == "failed"
        for _ in service.stream_messages(USER, self.talk):
            pass
        self.runs = [run.run_id for run in service.runs.list(USER)]


@pytest.fixture
def leaked(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Leaked]:
    monkeypatch.setenv("CANARY_API_KEY", KNOWN)
    url = f"sqlite:///{home}/data/roost.db"
    with (
        package.open(url, brains={"leaky": leaky}, tools=[fetch, careful]) as service,
        serving(service) as served,
    ):
        announce(service.roost, url=served.url, token=served.identity.token)
        yield Leaked(served, KeepingTracer())


def clean(text: str) -> str:
    assert not [word for word in WORDS if word in text], text
    return text


def test_no_secret_is_in_what_commands_print(leaked: Leaked) -> None:
    run = leaked.runs[0]
    words = [
        f"talks show {leaked.talk}",
        f"runs show {run}",
        "runs ls",
        f"replay {run}",
        "agents show d",
        f"tasks show {leaked.task}",
        "dead-letters ls",
        "approvals ls --all",
        "mail ls",
        "events history",
    ]
    for line in words:
        for form in ("", " --json"):
            done = command(*(line + form).split())
            assert done.stdout, (line, done.stderr)
            clean(done.stdout + done.stderr)
    assert json.dumps(HIDDEN)[1:-1] in command("talks", "show", leaked.talk, "--json").stdout
    assert HIDDEN in command("runs", "show", run).stdout


def test_no_secret_is_in_what_is_served(leaked: Leaked) -> None:
    with leaked.served.browser(USER) as browser:

        def asked(method: str, **arguments: object) -> str:
            reply = ask(browser, method, **arguments)
            assert reply.status_code == 200, reply.text
            return clean(reply.text)

        talk = f"/api/v1/talks/{leaked.talk}"
        for path in ("/api/v1/talks", talk, f"{talk}/messages", f"{talk}/stream", "/api/v1/profiles", "/api/v1/health"):
            reply = browser.get(path)
            assert reply.status_code == 200, path
            clean(reply.text)
        for run in leaked.runs:
            assert HIDDEN in asked("runs.get", runId=run)
            asked("runs.replay", runId=run)
        for method in ("runs.list", "tasks.list", "agents.list", "dead_letters.list", "mail.inbox", "events.history"):
            asked(method)
        asked("approvals.list", all=True)
        asked("agents.inspect", agentId="d")
        asked("agents.history", agentId="d")
        for method in ("monitor.facts", "monitor.states"):
            asked(method)
        with leaked.served.command_line() as scraper:
            assert "roost_" in clean(scraper.get("/metrics").text)
    spans = [(span.name, span.attributes, span.exceptions, span.states) for span in leaked.tracer.spans]
    assert len(spans) == 4, "replays have theirs too"
    clean(repr(spans))
