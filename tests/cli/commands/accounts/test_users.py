"""`roost users`: accounts are added by a link, listed, disabled, deleted by name, and exported."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import roost as package
from tests.api.serving import serving
from tests.cli.running import command, roost, up
from tests.cli.terminals import terminal


def test_an_account_is_added_listed_changed_and_deleted(home: Path) -> None:
    assert "No accounts." in command("users", "ls").stdout
    made = command("users", "add", "bob", "--admin")
    assert (made.exit_code, made.stdout.startswith("/invite?code="), len(made.stdout.splitlines())) == (0, True, 1)
    assert "Put the address of your server before it" in made.stderr
    assert command("users", "add", "carl").exit_code == 0
    listed = [line.split()[:2] for line in command("users", "list").stdout.splitlines()]
    assert listed == [["NAME", "ROLE"], ["bob", "admin"], ["carl", "user"]]
    assert "carl: user, disabled" in command("users", "disable", "carl").stdout
    assert "carl: user, has no password" in command("users", "enable", "carl").stdout
    assert "carl: admin" in command("users", "role", "carl", "admin").stdout
    again = json.loads(command("users", "reset", "carl", "--json").stdout)
    assert again["link"].endswith(again["code"])
    assert json.loads(command("users", "show", "carl", "--json").stdout)["hasPassword"] is False
    refused = command("users", "delete", "carl", stdin="karl\n")
    assert (refused.exit_code, "nothing was deleted" in refused.stderr) == (1, True)
    assert "Deleted carl." in command("users", "delete", "carl", stdin="carl\n").stdout
    assert command("users", "delete", "carl", "--yes").exit_code == 1
    audit = command("users", "audit").stdout
    assert "users.delete" in audit
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ann ", audit, re.MULTILINE)
    assert "carl" not in audit
    assert made.stdout.strip() not in audit
    assert {one["actor"] for one in json.loads(command("users", "audit", "--json").stdout)} == {"ann"}


def test_the_link_has_the_public_url(home: Path) -> None:
    (home / "roost.toml").write_text('url = "https://roost.example.com"\n')
    made = command("users", "add", "bob")
    assert made.stdout.startswith("https://roost.example.com/invite?code=")
    assert "This is the first account: everyone has to sign in now." in made.stderr
    assert "first account" not in command("users", "add", "carl").stderr
    assert "Put the address" not in made.stderr


def test_everything_of_a_user_is_exported_to_a_new_file_of_its_owner(home: Path) -> None:
    command("users", "add", "bob")
    target = home / "bob.json"
    assert command("users", "export", "bob", "--output", str(target)).exit_code == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert json.loads(target.read_text())["accounts"][0]["user_id"] == "bob"
    assert json.loads(command("users", "export", "bob").stdout)["user"] == "bob"
    again = command("users", "export", "bob", "--output", str(target))
    assert (again.exit_code, "name another file" in again.stderr) == (1, True)
    assert command("users", "export", "never", "--output", str(home / "never.json")).exit_code == 1
    assert not (home / "never.json").exists()


def test_what_is_wrong_is_said_in_a_sentence(home: Path) -> None:
    for arguments, told in (
        (("add", "Ann B"), "use up to 64 lower-case letters"),
        (("disable", "nope"), "there is no account 'nope'"),
        (("delete", "nope", "--yes"), "there is no user 'nope'"),
        (("export", "nope"), "there is no user 'nope'"),
    ):
        refused = command("users", *arguments)
        assert (refused.exit_code, told in refused.stderr) == (1, True), arguments
    assert command("users", "role", "bob", "king").exit_code == 2
    command("users", "add", "bob", "--admin")
    last = command("users", "delete", "bob", "--yes")
    assert (last.exit_code, "the last admin" in last.stderr) == (1, True)


def test_a_running_server_does_the_same_and_is_in_the_link(tmp_path: Path) -> None:
    with up(tmp_path, command="serve") as running:
        made = roost(tmp_path, "users", "add", "bob")
        assert made.stdout.startswith(f"http://localhost:{running.port}/invite?code=")
        assert "bob" in roost(tmp_path, "users", "ls").stdout
        assert json.loads(roost(tmp_path, "users", "export", "bob").stdout)["user"] == "bob"
        assert "Deleted bob." in roost(tmp_path, "users", "delete", "bob", "--yes").stdout
        assert roost(tmp_path, "users", "show", "bob").returncode == 1


def test_a_long_deletion_shows_its_progress_and_continues_without_the_command(tmp_path: Path, home: Path) -> None:
    gate = threading.Event()
    with package.open(f"sqlite:///{tmp_path}/elsewhere.db") as service, serving(service) as served:
        service.users.add("root", "ann", role="admin")
        service.create_talk_session("bob", profile="echo")
        secret = service.tokens.create("ann", "laptop", scopes=["*"]).secret
        command("login", served.url, stdin=secret + "\n")
        deleting: Any = service.roost.deletions
        real = deleting._talks.delete

        async def delayed(user: str, name: str) -> None:
            await asyncio.to_thread(gate.wait, 60)
            await real(user, name)

        deleting._talks = SimpleNamespace(delete=delayed)
        for is_killed in (True, False):
            with terminal(tmp_path, "users", "delete", "bob", "--yes", "--server", served.url) as shown:
                shown.becomes("things; now talks …")
                if is_killed:
                    continue
                gate.set()
                shown.becomes("Deleted bob.")
        assert service.list_sessions("bob") == []
