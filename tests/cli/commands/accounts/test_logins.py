"""Commands on another server: signing in without a token in the shell's history, and acting for its owner."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import roost as package
from roost.cli.main import app
from tests.api.serving import Served, serving
from tests.certificates import authority
from tests.cli.running import COMMAND, command, environment, roost, up
from tests.cli.terminals import terminal
from tests.cli.test_help import every
from tests.conftest import eventually
from tests.servers import ROOT

LOCAL = {
    ("up",),
    ("serve",),
    ("node",),
    ("ui",),
    ("link",),
    ("backup",),
    ("restore",),
    ("migrate",),
    ("migrate-store",),
    ("logs",),
    ("models", "ls"),
    ("models", "pull"),
    ("models", "rm"),
}
"""Commands that work on this machine only."""
WITHOUT_SETTINGS = {("bench",), ("version",)}


@pytest.fixture
def server(tmp_path: Path, home: Path) -> Iterator[Served]:
    """A server of another machine: its store is not the one of `home`."""
    with package.open(f"sqlite:///{tmp_path}/elsewhere.db") as service, serving(service) as served:
        yield served


def token(server: Served, user: str = "bob", *scopes: str) -> str:
    return server.service.tokens.create(user, "laptop", scopes=scopes or ["*"]).secret


def test_a_signed_in_command_acts_for_the_owner_of_the_token(home: Path, server: Served) -> None:
    signed_in = command("login", server.url, stdin=token(server) + "\n")
    assert signed_in.stdout == f"Signed in to {server.url} as bob.\n"
    kept = home / "data" / "logins.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for arguments in (("--server", server.url, "agents", "create", "d"), ("agents", "create", "e", "--server")):
        given = arguments if arguments[0] == "--server" else (*arguments, server.url)
        assert command(*given, "--profile", "echo").exit_code == 0
    assert [one.agent_id for one in server.service.agents.list("bob")] == ["d", "e"]
    assert command("agents", "ls").stdout.startswith("No agents.")
    assert command("--server", server.url + "/", "tasks", "send", "d", "hi", "--wait").stdout == "hi\n"
    assert command("--server", server.url, "whoami").stdout == f"bob at {server.url}\n"
    assert command("whoami").stdout == "ann on this machine\n"
    assert "still valid" in command("logout", server.url).stdout
    assert f"run `roost login {server.url}`" in command("--server", server.url, "agents", "ls").stderr


def test_variables_name_the_server_and_the_token(home: Path, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOST_SERVER", server.url)
    monkeypatch.setenv("ROOST_TOKEN", token(server, "bob", "agents:read"))
    assert command("agents", "ls", "--json").stdout == "[]\n"
    assert json.loads(command("whoami", "--json").stdout) == {
        "userId": "bob",
        "server": server.url,
        "scopes": ["agents:read"],
    }
    refused = command("mail", "ls")
    assert (refused.exit_code, "does not have the scope 'mail:read'" in refused.stderr) == (1, True)
    assert command("talks", "ls", "--store", f"sqlite:///{home}/own.db").stdout.startswith("No talks.")
    assert [one["what"] for one in json.loads(command("doctor", "--json").stdout)][-2:] == ["sign-in", "server"]
    both = command("talks", "ls", "--store", "sqlite:///own.db", "--server", server.url)
    assert (both.exit_code, "cannot be combined" in both.output) == (2, True)


def test_a_token_that_is_not_valid_is_not_kept(home: Path, server: Served) -> None:
    kept = home / "data" / "logins.json"
    for given, told in (
        ("roost_wrong", f"{server.url} refused this token: the token is not valid"),
        ("", "no token was given: `roost tokens create NAME`"),
        ("two\nlines", "has characters that cannot be sent"),
        ("tökén", "has characters that cannot be sent"),
    ):
        refused = command("login", server.url, stdin=given)
        assert (refused.exit_code, told in refused.stderr) == (1, True), refused.stderr
        assert not kept.exists()
    revoked = server.service.tokens.create("bob", "old", scopes=["*"])
    command("login", server.url, stdin=revoked.secret)
    server.service.tokens.revoke("bob", revoked.token.token_id)
    again = f"`roost login {server.url}` signs in again"
    eventually(lambda: again in command("--server", server.url, "agents", "ls").stderr)  # verified ones are remembered


@pytest.mark.parametrize("url", ["ftp://x", "localhost:8501", "https://", "https://ann:hush@host", "https://h?q=1"])
def test_what_is_no_url_of_a_server_is_refused_without_repeating_it(home: Path, url: str) -> None:
    for arguments in (("login", url), ("--server", url, "agents", "ls")):
        refused = command(*arguments, stdin="roost_x")
        assert (refused.exit_code, "must be the URL of a server" in refused.stderr) == (1, True)
        assert "hush" not in refused.output


def test_a_file_of_tokens_that_others_can_read_is_refused(home: Path, server: Served) -> None:
    command("login", server.url, stdin=token(server))
    kept = home / "data" / "logins.json"
    kept.chmod(0o644)
    assert "run chmod 600 on it" in command("--server", server.url, "agents", "ls").stderr
    kept.chmod(0o600)
    kept.write_text("{")
    assert "remove it, and sign in with `roost login`" in command("--server", server.url, "agents", "ls").stderr


def test_a_private_certificate_needs_its_authority(tmp_path: Path, home: Path) -> None:
    trusted, certificate, key = authority(tmp_path)
    with (
        package.open(f"sqlite:///{tmp_path}/elsewhere.db") as service,
        serving(service, tls_cert=certificate, tls_key=key) as served,
    ):
        secret = token(served)
        assert "is not trusted" in command("login", served.url, stdin=secret).stderr
        assert command("login", served.url, "--ca-file", str(trusted), stdin=secret).exit_code == 0
        assert command("--ca-file", str(trusted), "--server", served.url, "whoami").stdout.startswith("bob at https:")


def test_every_command_takes_a_server_or_says_that_it_cannot(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {path: command(*path, "--help").output for path in every(typer.main.get_command(app))}
    leaves = {path: told for path, told in found.items() if path and "[ARGS]" not in told}
    without = {path for path, told in leaves.items() if "--server URL" not in told}
    assert without == LOCAL | WITHOUT_SETTINGS
    monkeypatch.setenv("ROOST_SERVER", "https://roost.example.org")
    for path in sorted(LOCAL):
        count = {("backup",): 1, ("restore",): 1, ("models", "rm"): 1, ("migrate-store",): 2}.get(path, 0)
        given = ["x"] * count
        refused = command(*path, *given)
        assert (refused.exit_code, refused.stdout) == (1, ""), path
        assert "this command works on this machine only: run it on the machine of" in refused.stderr


def test_the_token_is_not_shown_while_it_is_typed(tmp_path: Path, server: Served) -> None:
    secret = token(server)
    with terminal(tmp_path, "login", server.url) as shown:
        shown.becomes(f"API token for {server.url}: ")
        shown.type(secret + "\n")
        shown.becomes(f"Signed in to {server.url} as bob.")
        assert secret not in shown.seen


def test_a_server_without_pages_needs_no_streamlit(tmp_path: Path) -> None:
    absent = tmp_path / "absent" / "streamlit"
    absent.mkdir(parents=True)
    (absent / "__init__.py").write_text("raise ModuleNotFoundError('not installed', name='streamlit')\n")
    path = f"{absent.parent}:{ROOT / 'src'}:{ROOT}"
    with up(tmp_path, command="serve", PYTHONPATH=path) as served:
        assert ", without pages" in served.output
        assert "/enter" not in served.output
        asked = subprocess.run(
            [*COMMAND, "agents", "create", "d", "--profile", "echo"],
            cwd=tmp_path,
            env=environment(tmp_path) | {"PYTHONPATH": path},
            check=True,
            capture_output=True,
            text=True,
        )
        assert asked.stdout == "d is idle.\n"
    refused = roost(tmp_path, "up", "--port", "0", PYTHONPATH=path)
    assert (refused.returncode, "pip install 'roost[ui]'" in refused.stderr) == (1, True)
