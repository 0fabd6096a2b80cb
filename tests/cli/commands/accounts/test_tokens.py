"""`roost tokens`: a token is printed once, alone on standard output, listed without its secret, and revoked."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import command


def test_a_token_is_created_listed_and_revoked(home: Path) -> None:
    assert "No tokens." in command("tokens", "ls").stdout
    made = command("tokens", "create", "ci", "--scope", "agents:read", "--scope", "tasks", "--expires", "30d")
    assert made.exit_code == 0
    assert made.stdout.startswith("roost_")
    assert len(made.stdout.splitlines()) == 1
    assert "not shown again" in made.stderr
    listed = command("tokens", "ls").stdout
    assert "agents:read tasks" in listed
    assert made.stdout.strip() not in listed
    assert "Revoked ci" in command("tokens", "revoke", "ci").stdout
    assert json.loads(command("tokens", "ls", "--json").stdout) == []


def test_a_token_is_found_by_a_part_of_its_id_and_as_json(home: Path) -> None:
    made = json.loads(command("tokens", "create", "a", "--json").stdout)
    assert made["secret"].startswith("roost_")
    assert made["token"]["scopes"] == ["*"]
    assert made["token"]["expires"] is None
    gone = command("tokens", "revoke", made["token"]["tokenId"][-6:], "--json")
    assert json.loads(gone.stdout)["name"] == "a"


def test_what_is_wrong_is_said_in_a_sentence(home: Path) -> None:
    for arguments, told in (
        (("create", "x", "--scope", "everything"), "the scope 'everything' is not known"),
        (("create", ""), "the name of the token must not be empty"),
        (("revoke", "nope"), "there is no token 'nope'"),
    ):
        refused = command("tokens", *arguments)
        assert (refused.exit_code, told in refused.stderr) == (1, True)
    assert command("tokens", "create", "x", "--expires", "soon").exit_code == 2
    for name in ("one", "one"):
        command("tokens", "create", name)
    several = command("tokens", "revoke", "one")
    assert (several.exit_code, "2 tokens are named 'one'; use an id:" in several.stderr) == (1, True)
