"""Approvals, runs and replays on the command line."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import roost as package
from roost.cli.main import app
from roost.wiring import announce
from tests.api.serving import serving
from tests.cli.running import environment
from tests.conftest import eventually

greeting = ["hello"]


@package.tool(approval=True)
async def deploy(what: str) -> str:
    """Needs a person's word."""
    return f"deployed {what}"


async def careful(turn: package.Turn) -> AsyncIterator[str]:
    turn.spend(package.Usage(1_200, 30, 0.25, "some:model"))
    yield f"{greeting[0]}, "
    try:
        yield await turn.call_tool("deploy", {"what": turn.text})
    except package.ToolFailed as error:
        yield str(error)


async def broken(turn: package.Turn) -> AsyncIterator[str]:
    yield "well, "
    await turn.ask("nobody", turn.text)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[package.AgentService]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    url = f"sqlite:///{tmp_path}/data/roost.db"
    with (
        package.open(url, brains={"careful": careful, "broken": broken}, tools=[deploy]) as opened,
        serving(opened) as running,
    ):
        announce(opened.roost, url=running.url, token=running.identity.token)
        opened.agents.create("ann", "d", profile="careful")
        yield opened


def told(folder: Path, *arguments: str) -> Result:
    """A command in this process: there are many of them."""
    return CliRunner().invoke(app, arguments, env=environment(folder), prog_name="roost")


def said(folder: Path, *arguments: str, code: int = 0) -> str:
    done = told(folder, *arguments)
    assert (done.exit_code, done.stderr) == (code, ""), done.stderr
    return done.stdout


def waiting(service: package.AgentService, prompt: str) -> tuple[str, str]:
    """A task that waits for a word; its id, and that of the question."""
    task = service.tasks.send("ann", "d", prompt)
    eventually(lambda: service.approvals.list("ann"))
    return task, service.approvals.list("ann")[0].approval_id


def test_a_person_approves_declines_and_answers(tmp_path: Path, service: package.AgentService) -> None:
    assert said(tmp_path, "approvals", "ls") == "No pending approvals.\n"
    task, name = waiting(service, "x\x1b[31m")
    listed = said(tmp_path, "approvals", "ls")
    assert listed.split()[:6] == ["ID", "AGENT", "QUESTION", "SINCE", "DECISION", "TOOL"]
    assert f"{name[-8:]}  d      may it be called?" in listed
    assert 'deploy {"what": "x' in listed
    assert "\x1b" not in listed
    shown = said(tmp_path, "approvals", "show", name[-8:])
    assert "\x1b" not in shown
    assert '"what": "x\\u001b[31m"' in shown
    assert said(tmp_path, "approvals", "approve", name[-8:]) == "deploy was approved.\n"
    assert service.tasks.wait("ann", task).result == "hello, deployed x\x1b[31m"
    task, name = waiting(service, "y")
    asked = 'May this be done? deploy {"what": "y"}\n  roost approvals approve|decline '
    assert said(tmp_path, "agents", "show", "d").startswith(f"{asked}{name[-8:]}\n\nagent")
    assert said(tmp_path, "approvals", "decline", name, "--reason", "not today") == "deploy was declined.\n"
    assert service.tasks.wait("ann", task).result == "hello, a person has declined deploy: not today"
    task, name = waiting(service, "z")
    assert said(tmp_path, "approvals", "answer", name, "by hand") == "deploy was answered.\n"
    assert service.tasks.wait("ann", task).result == "hello, by hand"
    _, name = waiting(service, "long " * 1_000 + "end")
    shown = said(tmp_path, "agents", "show", "d")
    assert "[5,005 characters in all]" in shown
    assert f"Show all arguments: roost approvals show {name[-8:]}\n" in shown
    assert 'long end"' in said(tmp_path, "approvals", "show", name)
    said(tmp_path, "approvals", "decline", name)
    decided: list[dict[str, Any]] = json.loads(said(tmp_path, "approvals", "ls", "--all", "--json"))
    assert [one["decision"] for one in decided] == ["declined", "answered", "declined", "approved"]
    task, name = waiting(service, "always")
    assert said(tmp_path, "approvals", "allow-always", name[-8:]) == "deploy is always allowed.\n"
    assert service.tasks.wait("ann", task).result == "hello, deployed always"
    assert said(tmp_path, "approvals", "permissions").split()[:6] == [
        "TOOL",
        "AGENT",
        "PROFILE",
        "SINCE",
        "deploy",
        "d",
    ]
    assert said(tmp_path, "approvals", "revoke", "deploy", "--agent", "d") == "deploy asks again.\n"
    assert said(tmp_path, "approvals", "permissions") == "No permissions.\n"
    name = decided[0]["approvalId"]
    again = told(tmp_path, "approvals", "approve", name)
    assert (again.exit_code, again.stdout) == (1, "")
    assert "was declined already" in again.stderr


def test_runs_of_a_talk_are_listed_by_a_part_of_its_id(tmp_path: Path, service: package.AgentService) -> None:
    talks = [service.create_talk_session("ann", profile="echo") for _ in range(2)]
    for talk in talks:
        service.add_message("ann", talk, "hello")
        assert [change.message.content for change in service.stream_messages("ann", talk)][-1] == "hello"
    eventually(lambda: len(service.runs.list("ann")) == 2)
    listed = json.loads(said(tmp_path, "runs", "ls", "--talk", talks[0][-8:], "--json"))
    assert [one["talkSessionId"] for one in listed] == [talks[0]]
    strange = told(tmp_path, "runs", "ls", "--talk", "zzz")
    assert (strange.exit_code, "no talk with this id" in strange.stderr) == (1, True)


def test_a_person_says_what_came_of_a_step_that_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    begun, go = threading.Event(), threading.Event()

    async def counts(turn: package.Turn) -> AsyncIterator[str]:
        yield f"{1 + await turn.step('count', cut_off)}"

    def cut_off() -> int:
        begun.set()
        return 0 if go.wait(20) else 1

    with package.open(f"sqlite:///{tmp_path}/roost.db", brains={"counts": counts}) as first:
        first.agents.create("ann", "d")
        task = first.tasks.send("ann", "d", "go")
        assert begun.wait(20)
        with (
            closing(sqlite3.connect(tmp_path / "roost.db")) as there,
            closing(sqlite3.connect(tmp_path / "data" / "roost.db")) as copied,
        ):
            there.backup(copied)  # as if the power failed here
        go.set()
    with (
        package.open(f"sqlite:///{tmp_path}/data/roost.db", brains={"counts": counts}) as second,
        serving(second) as at,
    ):
        announce(second.roost, url=at.url, token=at.identity.token)
        [asked] = eventually(lambda: second.approvals.list("ann"))
        assert said(tmp_path, "approvals", "ls").split("was it done?")[1].split()[-1] == "count"
        wrong = told(tmp_path, "approvals", "answer", asked.approval_id, "forty-one")
        assert wrong.exit_code == 1
        assert "the result of a step must be JSON" in wrong.stderr
        assert said(tmp_path, "approvals", "answer", asked.approval_id, "41") == "count was answered.\n"
        assert second.tasks.wait("ann", task, timeout=20).result == "42"


def test_runs_are_listed_shown_and_replayed(tmp_path: Path, service: package.AgentService) -> None:
    assert said(tmp_path, "runs", "ls") == "No runs.\n"
    task, name = waiting(service, "it")
    service.approvals.approve("ann", name)
    service.tasks.wait("ann", task)
    [run] = service.runs.list("ann")
    short = run.run_id[-8:]
    assert f"{short}  task  d           done     1" in said(tmp_path, "runs", "ls", "--agent", "d")
    shown = said(tmp_path, "runs", "show", short)
    assert "model     some:model\ntokens    1,200 in, 30 out\ncost      0.250000 US dollars\n" in shown
    assert "1. tool deploy: done" in shown
    assert '→ {"what": "it"}' in shown
    assert "← deployed it" in shown
    replayed = said(tmp_path, "replay", short)
    assert replayed == "1. tool deploy\nhello, deployed it\n\nIdentical.\n"
    assert said(tmp_path, "replay", short, "--until", "0").endswith("hello, \n\nIdentical up to step 0.\n")
    greeting[0] = "good day"
    try:
        other = said(tmp_path, "replay", short, code=1)
        as_json = json.loads(said(tmp_path, "replay", short, "--json", code=1))
    finally:
        greeting[0] = "hello"
    assert "The replay differs:\n--- recorded\n+++ replayed" in other
    assert (as_json["isIdentical"], as_json["text"]) == (False, "good day, deployed it")
    missing = told(tmp_path, "replay", "no-such-run")
    assert missing.exit_code == 1
    assert "there is no run 'no-such-run'" in missing.stderr


def test_a_turn_in_a_meeting_is_shown_with_its_meeting(tmp_path: Path, service: package.AgentService) -> None:
    meeting = service.meetings.call("ann", "it", required=["agent:d"])
    eventually(lambda: service.meetings.view("ann", meeting).phase == "running")
    service.meetings.say("ann", meeting, "it")
    [asked] = eventually(lambda: service.approvals.list("ann"))
    service.approvals.approve("ann", asked.approval_id)
    [run] = eventually(lambda: [one for one in service.runs.list("ann") if one.steps])
    shown = said(tmp_path, "runs", "show", run.run_id)
    assert f"\nagent     d\nmeeting   {meeting}\n" in shown
    assert json.loads(said(tmp_path, "runs", "show", run.run_id, "--json"))["run"]["meetingId"] == meeting


def test_the_error_of_a_run_is_shown_as_in_its_task(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "e", profile="broken")
    task = service.tasks.wait("ann", service.tasks.send("ann", "e", "x", max_attempts=1))
    [run] = service.runs.list("ann", agent="e")
    assert task.error is not None
    assert f"(reference {run.run_id[-8:].upper()})." in task.error
    assert f"error     {task.error}\n" in said(tmp_path, "runs", "show", run.run_id)


def test_of_a_run_without_a_task_what_usually_went_wrong_is_shown(
    tmp_path: Path, service: package.AgentService
) -> None:
    service.agents.create("ann", "e", profile="broken", max_attempts=1)
    service.mail.send("ann", "agent:e", "Report", "please")
    [run] = eventually(lambda: service.runs.list("ann", agent="e"))
    shown = said(tmp_path, "runs", "show", run.run_id)
    assert f"error     The agent's action was declined (reference {run.run_id[-8:].upper()}).\n" in shown
