"""Hostile text in every place that people, agents and tools can write to: on a terminal it is text and nothing else."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import roost
from tests.cli.running import command
from tests.conftest import QUICK, eventually, settled

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b5mC1\x08\x08\rover\u202egnp\u2066.exe<script>alert(1)</script>"
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
URL = "sqlite:///{}"
WITHOUT = [["agents", "history"], ["tasks", "show"], ["meetings", "ls"], ["runs", "ls"], ["tasks", "show"]]
"""Commands that show none of the planted text: a task waiting for approval, an unknown task, lists of other facts."""


@roost.tool(approval=True)
async def pay(to: str) -> str:
    return to


async def hostile(turn: roost.Turn) -> AsyncIterator[str | roost.Chunk]:
    """Writes hostile text wherever a brain can."""
    if turn.kind == "mail":
        raise roost.BrainFailed(EVIL, advice=EVIL)
    if turn.text == "ask":
        await turn.call_tool("pay", {"to": EVIL})
    turn.state[EVIL] = EVIL
    await turn.step("look up", lambda: EVIL)
    await turn.mail("user:ann", "subject", EVIL)
    await turn.publish("nobody.listens", {"data": EVIL})
    yield roost.Chunk(EVIL, "thinking")
    yield f"said {EVIL}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOST_DATA", str(tmp_path))
    monkeypatch.setenv("ROOST_USER", "ann")
    monkeypatch.setattr("roost.log.set_up", lambda *_, **__: None)
    return tmp_path


def plant(path: Path) -> list[list[str]]:
    """Fill a store; the commands that show what is in it."""
    brains: dict[str, roost.Brain] = {"hostile": hostile}
    with roost.open(URL.format(path / "roost.db"), brains=brains, limits=QUICK, tools=[pay]) as service:
        talk = service.create_talk_session("ann", profile="hostile")  # its title is made of the first words
        service.add_message("ann", talk, f"words {EVIL}")
        settled(service, "ann", talk)
        service.agents.create("ann", "d", profile="hostile", description=f"about {EVIL}", max_attempts=1)
        task = service.tasks.send("ann", "d", f"prompt {EVIL}")
        assert service.tasks.wait("ann", task, timeout=10).status == "done"
        [run] = service.runs.list("ann", agent="d")
        asking = service.tasks.send("ann", "d", "ask")
        [approval] = eventually(lambda: service.approvals.list("ann"))
        service.agents.remember("ann", "d", EVIL)
        schedule = service.schedules.create("ann", "d", f"later {EVIL}", every=3_600)
        mail = service.mail.send("ann", "agent:d", "subject", EVIL, priority="urgent")
        meeting = service.meetings.call("ann", "topic", optional=["agent:d"])
        service.meetings.say("ann", meeting, f"heard {EVIL}")
        letter = eventually(lambda: [one for one in service.dead_letters.list("ann") if one.kind == "mail"])[0]
        received = service.mail.inbox("ann")[0]
    return [
        ["talks", "ls"],
        ["talks", "show", talk],
        ["agents", "ls"],
        ["agents", "show", "d"],
        ["agents", "memories", "d"],
        ["agents", "history", "d"],
        ["tasks", "ls"],
        ["tasks", "show", task],
        ["tasks", "show", asking],
        ["approvals", "ls"],
        ["approvals", "show", approval.approval_id],
        ["schedules", "ls"],
        ["schedules", "show", schedule.schedule_id],
        ["mail", "ls"],
        ["mail", "show", received.mail_id],
        ["mail", "thread", received.thread_id],
        ["mail", "ls", "--agent", "d"],
        ["events", "history"],
        ["meetings", "ls"],
        ["meetings", "show", meeting],
        ["dead-letters", "ls"],
        ["dead-letters", "show", letter.letter_id],
        ["runs", "ls"],
        ["runs", "show", run.run_id],
        ["agents", "show", EVIL],
        ["tasks", "show", EVIL],
        ["mail", "show", mail],
    ]


def test_no_command_prints_what_would_move_or_mislead_a_terminal(home: Path) -> None:
    without = []
    for words in plant(home):
        shown = False
        for arguments in (words, [*words, "--json"]):
            done = command(*arguments)
            assert not done.exception or isinstance(done.exception, SystemExit), (arguments, done.exception)
            assert UNSAFE.findall(done.output) == [], arguments
            shown = shown or "owned" in done.output
        without += [] if shown else [words[:2]]
    assert without == WITHOUT, "the planted text is missing elsewhere: the fault has not fired"
