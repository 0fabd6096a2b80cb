"""`roost talks fork`, `edit` and `regenerate`, on a store without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import roost
from tests.cli.running import command
from tests.conftest import QUICK, settled


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOST_DATA", str(tmp_path))
    monkeypatch.setenv("ROOST_USER", "ann")
    monkeypatch.setattr("roost.log.set_up", lambda *_, **__: None)
    with roost.open(f"sqlite:///{tmp_path}/roost.db", limits=QUICK) as service:
        talk = service.create_talk_session("ann", profile="echo")
        for text in ("one", "two"):
            service.add_message("ann", talk, text)
            settled(service, "ann", talk)
    return talk


def shown(talk: str) -> list[str]:
    return [m["content"] for m in json.loads(command("talks", "show", talk, "--json").stdout)["messages"]]


def test_an_edited_message_is_answered_in_a_branch_whose_id_is_printed(talk: str) -> None:
    done = command("talks", "edit", talk, "3", "three")
    assert (done.exit_code, done.stderr) == (0, "")
    answer, branch = done.stdout.strip().split("\n\nBranch: ")
    assert "three" in answer
    assert shown(branch)[:3] == ["one", "one", "three"]
    assert shown(talk) == ["one", "one", "two", "two"]


def test_an_answer_is_regenerated_and_a_talk_is_forked(talk: str) -> None:
    again = json.loads(command("talks", "regenerate", talk, "--at", "2", "--json").stdout)
    assert (again["talk"]["parent"], again["talk"]["parentSeq"]) == (talk, 1)
    assert [m["content"] for m in again["messages"]] == ["one", "one"]
    fork = command("talks", "fork", talk, "--at", "2", "--title", "Other")
    assert "Forked 2 messages as talk_" in fork.stdout
    assert "Other" in command("talks", "ls").stdout


def test_what_is_not_there_is_named(talk: str) -> None:
    refused = command("talks", "edit", talk, "2", "x")
    assert (refused.exit_code, "message 2 is an answer" in refused.stderr) == (1, True)
    refused = command("talks", "fork", talk, "--at", "99")
    assert (refused.exit_code, "no message 99" in refused.stderr) == (1, True)
    assert command("talks", "fork", talk, "--at", "0").exit_code == 2
