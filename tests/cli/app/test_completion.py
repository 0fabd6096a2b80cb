"""Completion of ids and profiles: by the running server, quickly, and never with an error in the shell."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost as package
from roost.wiring import announce
from tests.api.serving import Served, serving
from tests.cli.running import COMMAND, environment
from tests.conftest import eventually
from tests.forks import run
from tests.test_shape import loaded_by

HOSTILE = "$(touch owned)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Served]]:
    """A folder with a server on its store, which has one of everything."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "data").mkdir()
    with package.open(f"sqlite:///{folder}/data/roost.db") as service, serving(service) as served:
        announce(service.roost, url=served.url, token=served.identity.token)
        for agent in ("dove", "duck", "wren"):
            service.agents.create("ann", agent, profile="echo", start=False)
        service.agents.create("bob", "dodo", profile="echo", start=False)
        service.tasks.send("ann", "dove", f"{HOSTILE} `x` 'y'")
        for name in ("hourly", HOSTILE):
            service.schedules.create("ann", "dove", "sing", every=3600, name=name)
        service.meetings.call("ann", "Nests", required=["agent:dove"])
        service.tokens.create("ann", "laptop", scopes=["*"])
        service.webhooks.create("ann", "https://example.com/", name="ci")
        service.hooks.create("ann", event="build.done", name="ci")
        talk = service.create_talk_session("ann", profile="echo", title=f'Big "{HOSTILE}" birds')
        service.add_message("ann", talk, "hi")
        list(service.stream_messages("ann", talk))
        yield folder, served


def completed(folder: Path, *words: str, shell: str = "bash", **variables: str) -> str:
    """Return what the shell gets for the last word."""
    typed = " ".join(words)
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": typed}
    done = run(
        COMMAND,
        cwd=folder,
        env=environment(folder) | asked | {"_ROOST_COMPLETE": f"complete_{shell}"} | variables,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return str(done.stdout)


def test_ids_of_the_user_are_completed(server: tuple[Path, Served]) -> None:
    folder, served = server
    [talk] = served.service.list_sessions("ann")
    [run] = served.service.runs.list("ann")
    [task] = served.service.tasks.list("ann")
    [meeting] = served.service.meetings.list("ann")
    [token] = served.service.tokens.list("ann")
    [webhook] = served.service.webhooks.list("ann")
    [hook] = served.service.hooks.list("ann")
    for words, expected in (
        (("roost", "agents", "show", "d"), ["dove", "duck"]),
        (("roost", "tasks", "send", ""), ["dove", "duck", "wren"]),
        (("roost", "talks", "show", ""), [talk.talk_session_id]),
        (("roost", "chat", "--talk", "talk_"), [talk.talk_session_id]),
        (("roost", "chat", "--profile", "e"), ["echo"]),
        (("roost", "replay", run.run_id[-8:-3]), [run.run_id[-8:]]),
        (("roost", "tasks", "show", "task"), [task.task_id]),
        (("roost", "meetings", "show", ""), [meeting.meeting_id]),
        (("roost", "schedules", "show", "h"), ["hourly"]),
        (("roost", "tokens", "revoke", ""), [token.token_id]),
        (("roost", "tokens", "revoke", token.token_id[-8:-3]), [token.token_id[-8:]]),
        (("roost", "webhooks", "show", ""), [webhook.webhook_id]),
        (("roost", "hooks", "delete", ""), [hook.hook_id]),
        (("roost", "schedules", "add", "dove", ""), []),
    ):
        assert completed(folder, *words).split() == expected, words


def test_zsh_gets_descriptions_in_which_nothing_can_be_evaluated(server: tuple[Path, Served]) -> None:
    folder, served = server
    [talk] = served.service.list_sessions("ann")
    said = completed(folder, "roost", "talks", "show", "", shell="zsh")
    about = said.removeprefix(f'_arguments \'*: :(("{talk.talk_session_id}":"').removesuffix("\"))'\n")
    assert about.split() == ["Big", "touch", "owned", "birds"]
    assert completed(folder, "roost", "schedules", "show", "").split() == ["hourly"]


def test_another_server_is_asked_if_one_is_chosen(server: tuple[Path, Served], tmp_path: Path) -> None:
    _, served = server
    token = served.service.tokens.create("bob", "laptop", scopes=["agents:read"]).secret
    for words in (("roost", "--server", served.url, "agents", "show", ""), ("roost", "agents", "show", "")):
        assert completed(tmp_path, *words, ROOST_SERVER=served.url, ROOST_TOKEN=token).split() == ["dodo"]


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"ROOST_SERVER": "http://127.0.0.1:1", "ROOST_TOKEN": "roost_x"},
        {"ROOST_SERVER": "nonsense"},
        {"ROOST_STORE": "postgresql://127.0.0.1:1/none"},
        {"ROOST_CONFIG": "broken.toml"},
    ],
)
def test_without_a_server_nothing_is_completed_started_or_said(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "broken.toml").write_text("this is no TOML")
    assert completed(tmp_path, "roost", "agents", "show", "", **variables).strip() == ""
    assert not (tmp_path / "data").exists()


def test_completion_imports_nothing_slow(tmp_path: Path) -> None:
    loaded = loaded_by("import roost.cli.main, roost.cli.commands.agents, roost.cli.commands.talks.commands")
    assert "roost.cli.app.completion" in loaded
    assert not loaded & {"pydantic", "roost.service", "roost.settings", "httpx2", "fastapi", "asyncio"}


def test_bash_completes_with_the_tab_key(server: tuple[Path, Served], tmp_path: Path) -> None:
    folder, _ = server
    program = tmp_path / "roost"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m roost "$@"\n')
    program.chmod(0o755)
    ours = environment(folder) | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "$ "}
    script = subprocess.run(
        [program], env=ours | {"_ROOST_COMPLETE": "source_bash"}, capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "completion.sh").write_text(script)
    own, theirs = pty.openpty()
    with subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=ours, cwd=folder
    ) as shell:
        os.close(theirs)
        os.set_blocking(own, False)
        try:
            os.write(own, f". {tmp_path}/completion.sh; echo rea''dy\n".encode())
            seen = bytearray()
            eventually(lambda: _reads(own, seen, b"\nready"), 30)
            os.write(own, b"roost agents show wr\t")
            eventually(lambda: _reads(own, seen, b"show wren "), 30)
        finally:
            shell.kill()
            os.close(own)


def _reads(terminal: int, seen: bytearray, wanted: bytes) -> bool:
    try:
        seen += os.read(terminal, 65536)
    except BlockingIOError:
        return False
    return wanted in seen.replace(b"\r", b"")
