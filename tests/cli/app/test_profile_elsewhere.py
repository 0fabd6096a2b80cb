"""Commands on a store that was filled elsewhere: those that look or post begin nothing, and none does harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import command

BRAIN = "async def parrot(turn):\n    yield f'squawk {turn.text}'\n"


def said(*arguments: str, stdin: str = "") -> str:
    done = command(*arguments, stdin=stdin)
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def tasks() -> list[tuple[str, str, int]]:
    listed: list[dict[str, Any]] = json.loads(said("tasks", "ls", "--json"))
    return [(one["prompt"], one["status"], one["attempts"]) for one in listed]


@pytest.fixture
def elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another folder, whose settings lack the profile of the agent that was made at home and has something to do."""
    (home / "parrots.py").write_text(BRAIN)
    (home / "roost.toml").write_text("[profiles.parrot]\nbrain = 'parrots:parrot'\n")
    said("agents", "create", "polly", "--profile", "parrot")
    said("tasks", "send", "polly", "hello")
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    return home / "elsewhere"


def test_what_looks_or_posts_begins_nothing_that_agents_have_to_do(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as lifeless:
        lifeless.delattr("roost.runtime.roost.Supervisor")  # it would find work in the store
        said("agents", "create", "d", "--profile", "echo", "--subscribe", "news")
        sent = command("tasks", "send", "d", "one")
        assert sent.stderr.startswith("roost: Roost is not running: the task is queued until `roost up` runs")
        assert "agents receive it when `roost up` runs" in command("mail", "send", "agent:d", "Hello", "there").stderr
        assert "agents receive it when" in command("events", "publish", "news").stderr
        for words in ("agents ls", "agents show d", "talks ls", "mail ls", "runs ls", "dead-letters ls", "meetings ls"):
            said(*words.split())
        assert tasks() == [("one", "queued", 0)]
    assert said("tasks", "wait", sent.stdout.strip()) == "one\n"
    assert tasks() == [("one", "done", 1)]


def test_an_agent_whose_profile_is_defined_elsewhere_is_left_alone(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said("chat", "--profile", "echo", stdin="hello\n") == "hello\n"
    waited = command("tasks", "send", "polly", "there?", "--wait")
    assert waited.exit_code == 1
    assert waited.stderr.startswith("roost: the profile 'parrot' of polly is not configured here")
    shown = said("agents", "show", "polly")
    assert shown.startswith("the profile 'parrot' of polly is not configured here: its work waits")
    assert "profile_missing\n" in shown
    assert json.loads(said("agents", "show", "polly", "--json"))["health"] == "profile_missing"
    assert tasks() == [("there?", "queued", 0), ("hello", "queued", 0)]
    monkeypatch.chdir(elsewhere.parent)
    for prompt, task in [(one["prompt"], one["taskId"]) for one in json.loads(said("tasks", "ls", "--json"))]:
        assert said("tasks", "wait", task) == f"squawk {prompt}\n"


def test_the_doctor_names_the_profile_that_is_missing_and_what_to_do(elsewhere: Path) -> None:
    found = json.loads(command("doctor", "--json").stdout)
    [agents] = [one for one in found if one["what"] == "agents"]
    assert agents["status"] == "warn"
    assert agents["text"].startswith("polly: the profile 'parrot' is not in these settings, so their work")
    assert "roost agents set polly --profile NAME" in agents["fix"]
    at_home = json.loads(command("doctor", "--json", "--config", str(elsewhere.parent / "roost.toml")).stdout)
    assert "agents" not in {one["what"] for one in at_home}


def test_a_talk_with_such_an_agent_says_why_it_cannot_answer(elsewhere: Path) -> None:
    told = command("chat", "--agent", "polly", stdin="hello\n")
    assert told.exit_code == 1
    assert told.stderr.startswith("The profile is unknown here")
    assert tasks() == [("hello", "queued", 0)]
