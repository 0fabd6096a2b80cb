"""B3: tools of MCP servers, by a command or over HTTP; connected when wanted, started again when gone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import roost
from roost import ToolFailed, Turn
from roost.cli.commands.server import doctor
from roost.core.values.secrets import HIDDEN
from tests.cli.running import free_port
from tests.conftest import eventually

SERVER = Path(__file__).with_name("mcp_server.py")


async def hands(turn: Turn) -> AsyncIterator[str]:
    """`add a=1 b=2`: calls the tool of that name, and says what it gave."""
    if turn.text == "which":
        yield " ".join(f"{tool.name}({', '.join(tool.parameters['properties'])})" for tool in turn.tools)
        return
    name, *words = turn.text.split()
    arguments: dict[str, Any] = dict(word.split("=") for word in words)
    try:
        yield await turn.call_tool(name, {n: int(v) if v.isdigit() else v for n, v in arguments.items()})
    except ToolFailed as error:
        yield f"failed: {error}"


def said(service: roost.AgentService, text: str, profile: str = "hands") -> str:
    talk = service.create_talk_session("ann", profile=profile)
    service.add_message("ann", talk, text)
    for _ in service.stream_messages("ann", talk):
        pass
    return "".join(m.content + (m.error or "") for m in service.get_messages("ann", talk).messages[1:])


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[roost.AgentService]:
    monkeypatch.setenv("CANARY_KEY", "a canary that sings")
    (tmp_path / "roost.toml").write_text(f"""
tools = ["tests.tools.test_mcp:double"]

[mcp.numbers]
command = ["{sys.executable}", "{SERVER}"]
approval = ["die"]

[mcp.nobody]
command = ["/nowhere/at/all"]

[profiles.hands]
brain = "tests.tools.test_mcp:hands"
tools = ["numbers.*", "nobody.*"]

[profiles.fewer]
brain = "tests.tools.test_mcp:hands"
tools = ["numbers.add", "double"]
""")
    with roost.open(f"sqlite:///{tmp_path}/a.db", config=tmp_path / "roost.toml") as service:
        yield service


def double(n: int) -> int:
    """Twice as much."""
    return 2 * n


def test_the_tools_of_a_program_are_called_and_it_is_started_again_when_it_is_gone(opened: roost.AgentService) -> None:
    assert said(opened, "which") == (
        "numbers.add(a, b) numbers.shout(text, times) numbers.fail() numbers.die() numbers.process()"
    )
    assert said(opened, "numbers.add a=2 b=3") == "5"
    assert said(opened, "numbers.shout text=hey times=2") == "HEY HEY"
    assert said(opened, "numbers.fail").startswith("failed: ")
    assert said(opened, "numbers.add a=2") == "failed: the arguments of numbers.add are wrong: b missing"
    first = said(opened, "numbers.process")
    assert first.endswith(" no secret"), "of the variables it sees none that it was not given"
    talk = opened.create_talk_session("ann", profile="hands")
    opened.add_message("ann", talk, "numbers.die")
    [asked] = eventually(lambda: opened.approvals.list("ann"))
    opened.approvals.approve("ann", asked.approval_id)
    for _ in opened.stream_messages("ann", talk):
        pass
    assert opened.get_messages("ann", talk).messages[-1].content.startswith("failed: ")
    again = said(opened, "numbers.process")
    assert again != first
    assert again.endswith(" no secret")


def test_a_profile_has_what_it_names_and_what_is_named_in_the_settings(opened: roost.AgentService) -> None:
    assert said(opened, "which", "fewer") == "double(n) numbers.add(a, b)"
    assert said(opened, "double n=4", "fewer") == "8"
    assert "there is no tool 'numbers.shout'" in said(opened, "numbers.shout text=x", "fewer")


def test_the_tools_of_a_server_on_the_network_are_called(tmp_path: Path) -> None:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, str(SERVER), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            eventually(lambda: _listens(port), 30)
            (tmp_path / "roost.toml").write_text(f"""
[mcp.far]
url = "http://127.0.0.1:{port}/mcp"
[profiles.hands]
brain = "tests.tools.test_mcp:hands"
tools = ["*"]
""")
            with roost.open(f"sqlite:///{tmp_path}/a.db", config=tmp_path / "roost.toml") as service:
                assert said(service, "far.add a=20 b=3") == "23"
                process.kill()
                process.wait()
                assert said(service, "far.add a=1 b=1").startswith("failed: ")
        finally:
            process.kill()


def _listens(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/mcp", trust_env=False, timeout=5)
    except httpx.TransportError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[mcp.a]\nlimit = 3", "mcp.a must have either a command or a url"),
        ('[mcp.a]\nurl = "ftp://x"', "mcp.a.url must be a URL that begins with http"),
        ('[mcp."a b"]\nurl = "http://x"', "mcp"),
        ('[mcp.a]\nurl = "http://x"\ntoken = "sk-1"', "must be the name of a variable"),
        ('[mcp.a]\nurl = "http://x"\ntimeout = 3', "there is no setting 'mcp.a.timeout'"),
        ('tools = ["x"]', "must be module:function"),
        ('tools = ["no_such_module:x"]', "the tool 'no_such_module:x' cannot be loaded: ModuleNotFoundError"),
        ('tools = ["json:nothing"]', "'json' has no 'nothing'"),
        ('tools = ["json:dumps"]', "the argument 'obj' of the tool 'dumps' has no type"),
        ('[profiles.p]\nbrain = "echo"\ntools = ["a b"]', "must be a tool's name, or a pattern of them"),
    ],
)
def test_an_unusable_server_is_reported_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "roost.toml").write_text(text)
    with pytest.raises(roost.Invalid) as caught:
        roost.open(f"sqlite:///{tmp_path}/a.db", config=tmp_path / "roost.toml")
    assert problem in str(caught.value)
    assert not (tmp_path / "a.db").exists()


BROKEN = """
[mcp.broken]
command = ["{python}", "-c", "import sys; sys.exit('no database at {key}' + chr(10) + 'giving up')"]
environment = ["BROKEN_LOGIN"]

[mcp.numbers]
command = ["{python}", "{server}"]

[profiles.hands]
brain = "tests.tools.test_mcp:hands"
tools = ["broken.*", "numbers.*"]
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BROKEN_LOGIN", "planted-0123456789")
    config = tmp_path / "roost.toml"
    config.write_text(BROKEN.format(python=sys.executable, server=SERVER, key="planted-0123456789"))
    return config


def test_what_a_broken_server_says_is_in_the_log_and_in_the_error(
    tmp_path: Path, broken: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with roost.open(f"sqlite:///{tmp_path}/a.db", config=broken) as service:
        answer = said(service, "broken.look")
    told = f"its last lines: no database at {HIDDEN} | giving up"
    assert answer.startswith("failed: the MCP server 'broken' cannot be reached")
    assert told in answer
    assert told in caplog.text
    assert "planted-0123456789" not in caplog.text


def test_the_doctor_connects_the_servers(
    tmp_path: Path, broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROOST_DATA", str(tmp_path / "data"))
    assert doctor.run(broken, {}, as_json=False) == 1
    printed = capsys.readouterr().out
    assert "problem  mcp broken: the MCP server 'broken' cannot be reached" in printed
    assert f"no database at {HIDDEN} | giving up" in printed
    assert "ok       mcp numbers: answers, with 5 tools: add, shout" in printed
