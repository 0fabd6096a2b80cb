"""`roost webhooks` and `roost hooks`: what is secret is printed once, and all else can be done by name."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import command
from tests.outbound.receiver import receiving, reply


def test_a_webhook_is_created_tested_paused_resumed_and_deleted(home: Path) -> None:
    assert "No webhooks." in command("webhooks", "ls").stdout
    with receiving() as receiver:
        url = f"http://127.0.0.1:{receiver.port}/"
        made = command("webhooks", "create", url, "--event", "Task*", "--event", "LetterDied", "--name", "ci")
        assert (made.exit_code, made.stdout[:6], len(made.stdout.split())) == (0, "whsec_", 1)
        assert "not shown again" in made.stderr
        assert made.stdout.strip() not in command("webhooks", "ls").stdout + command("webhooks", "show", "ci").stdout
        tested = command("webhooks", "test", "ci")
        assert (tested.exit_code, "delivered" in tested.stdout) == (0, True)
        receiver.answer = lambda connection: reply(connection, 500, b"no\x1b[31m")
        failed = command("webhooks", "test", "ci")
        assert (failed.exit_code, "the receiver answered 500" in failed.stdout) == (1, True)
    listed = json.loads(command("webhooks", "deliveries", "ci", "--json").stdout)
    assert [one["status"] for one in listed] == [500, 200]
    assert "Ping" in command("webhooks", "deliveries", "ci").stdout
    assert "paused" in command("webhooks", "pause", "ci").stdout
    assert "active" in command("webhooks", "resume", "ci").stdout
    assert command("webhooks", "rotate", "ci").stdout.startswith("whsec_")
    assert "Deleted ci" in command("webhooks", "delete", "ci").stdout
    assert json.loads(command("webhooks", "ls", "--json").stdout) == []


def test_a_hook_is_created_listed_and_deleted(home: Path) -> None:
    made = command("hooks", "create", "--event", "github.push", "--name", "gh", "--header", "X-GitHub-Event")
    path, secret = made.stdout.split()
    assert (path[:12], secret[:6]) == ("/hooks/hook_", "whsec_")
    assert "Put the address of your server before it." in made.stderr
    listed = command("hooks", "ls").stdout
    assert "publishes github.push" in listed
    assert path not in listed
    assert secret not in listed
    command("agents", "create", "d")
    unsigned = json.loads(
        command("hooks", "create", "--agent", "d", "--task", "Do {body}", "--unsigned", "--json").stdout
    )
    assert (unsigned["secret"], unsigned["hook"]["agent"]) == (None, unsigned["hook"]["agent"])
    assert "Deleted gh" in command("hooks", "delete", "gh").stdout


def test_the_url_of_a_hook_begins_with_that_of_the_server(home: Path) -> None:
    (home / "roost.toml").write_text('url = "https://roost.example.com"\n')
    made = command("hooks", "create", "--event", "build.done", "--unsigned")
    assert made.stdout.startswith("https://roost.example.com/hooks/hook_")
    assert made.stderr == "The URL is not shown again.\n"


def test_what_is_wrong_is_said_in_a_sentence(home: Path) -> None:
    for arguments, told in (
        (("webhooks", "create", "http://10.0.0.1/"), "must begin with https"),
        (("webhooks", "create", "https://example.com", "--event", "Tusk"), "no fact is called 'Tusk'"),
        (("webhooks", "show", "nope"), "there is no webhook 'nope'"),
        (("hooks", "create"), "name one of them"),
        (("hooks", "create", "--agent", "nobody"), "there is no agent 'nobody'"),
        (("hooks", "create", "--event", "a", "--header", "Cookie"), "'cookie' cannot be chosen"),
        (("hooks", "delete", "nope"), "there is no hook 'nope'"),
    ):
        refused = command(*arguments)
        assert (refused.exit_code, told in refused.stderr) == (1, True), refused.stderr
