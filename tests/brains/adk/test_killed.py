"""A10, B2: `kill -9` in the middle of an answer; the ADK's history has nothing of the half that is done again."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import roost
from roost.brains.adk import Adk
from roost.brains.adk.history import UNKNOWN
from tests.brains.adk import models
from tests.conftest import ENVIRONMENT, QUICK, eventually

ROOT = Path(__file__).parents[3]


def test_after_a_kill_each_message_is_there_once(tmp_path: Path, shown: list[list[str]]) -> None:
    url = f"sqlite:///{tmp_path}/roost.db"
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}:{ROOT}"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.brains.adk.driver_killed", url],
        env=environment,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        program.send_signal(signal.SIGKILL)
    with roost.open(url, brains={"helper": Adk(models.agent())}, limits=QUICK) as service:
        talks = [talk.talk_session_id for talk in service.list_sessions("ann")]
        for talk in talks:  # it is run again
            eventually(partial(is_speaking, service, talk), 30)
            service.stop("ann", talk, wait=5)
        shown.clear()
        for talk in talks:
            service.add_message("ann", talk, "go on")
            for _ in service.stream_messages("ann", talk):
                pass
    speaking, calling = sorted(shown, key=lambda lines: "hello" not in lines[0])
    assert speaking == [
        "user: hello",
        "model: you said hello",
        "user: please wait here",
        "model: you said please wait  | [this answer was interrupted here]",
        "user: go on",
    ]
    assert calling == [
        "user: call quick a",
        "model: call quick",
        "user: result {'result': 'quick a'}",
        "model: the tool says quick a",
        "user: look then call slow",
        "model: look | call slow",
        f"user: result {{'error': '{UNKNOWN}'}}",
        "model: [this answer was interrupted here]",
        "user: go on",
    ]


def is_speaking(service: roost.AgentService, talk: str) -> bool:
    """The run that repeats the one that was killed, as far as it gets: the model waits, or its tool does."""
    last = service.get_messages("ann", talk).messages[-1]
    waits = "wait" in last.content or any("slow" in note.text for note in last.notes)
    return last.seq == 5 and waits
