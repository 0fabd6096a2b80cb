"""Help and errors of commands: plain words, no types, no traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer

from roost.cli.main import app
from roost.core.agents.agent import AgentConfig
from tests.cli.running import command


def every(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name in group.list_commands(None) if hasattr(group, "list_commands") else ():
        yield from every(group.get_command(None, name), (*path, name))


def test_help_names_what_is_typed_and_no_types() -> None:
    found = list(every(typer.main.get_command(app)))
    assert len(found) > 60
    for path in found:
        told = command(*path, "--help").output
        assert told.startswith("Usage: "), path
        assert not any(mark in told for mark in ("<", "[[", "{A", "[required]")), told
    assert "agents memories [OPTIONS] AGENT [QUERY]\n" in command("agents", "memories", "--help").output


def test_lists_say_in_which_order_they_are() -> None:
    for path in every(typer.main.get_command(app)):
        if path[-1:] in (("ls",), ("history",)):
            told = command(*path, "--help").output.split("\n")[2]
            assert told.endswith(("first.", "by name.")), told


def test_the_help_of_settings_has_their_defaults() -> None:
    told = " ".join(command("agents", "create", "--help").output.split())
    assert f"at the same time ({AgentConfig().max_concurrent_tasks})." in told
    assert f"dead letter ({AgentConfig().max_attempts})." in told
    assert f"in its inbox ({AgentConfig().inbox_limit})." in told


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["agents", "ls", "--limit", "x"], "'x' is not a valid number: use a whole number from 1 to 1000"),
        (["agents", "ls", "--limit", "0"], "'0' is not a valid number: use a whole number from 1 to 1000"),
        (["up", "--port", "99999"], "'99999' is not a valid number: use a whole number from 0 to 65535"),
        (["replay", "x", "--until", "-1"], "'-1' is not a valid number: use a whole number of at least 0"),
        (["agents", "create", "d", "--max-attempts", "many"], "use a whole number from 1 to 1000"),
        (
            ["agents", "sleep", "d", "--on-load", "much"],
            "'much' is not a valid share: use a number above 0 and up to 1",
        ),
        (["agents", "sleep", "d", "--on-load", "nan"], "'nan' is not a valid share"),
        (["agents", "sleep", "d", "--until", "x"], "'x' is not a valid time: use a form such as 2030-01-01T09:00"),
        (["agents", "sleep", "d", "--until", "2020-01-01T00:00Z"], "'2020-01-01T00:00Z' is in the past: it is 20"),
        (["agents", "sleep", "d", "--until", "9999-12-31T23:59"], "is too far in the future: the maximum is 100 years"),
        (["agents", "sleep", "d", "--for", "0s"], "'0s' is not allowed: use a duration above 0, such as 45s or 30m"),
        (["agents", "sleep", "d", "--all"], "--all needs a condition"),
        (["schedules", "add", "d", "x", "--at", "2020-01-01"], "'2020-01-01' is in the past"),
        (["schedules", "add", "d", "x", "--every", "0"], "'0' is not allowed: use a duration above 0"),
        (["tasks", "send", "d", "x", "--expires", "0"], "'0' is not allowed: use a duration above 0"),
        (["mail", "send", "d", "x", "y", "--expires", "0"], "'0' is not allowed: use a duration above 0"),
        (["meetings", "call", "x", "--deadline", "0"], "'0' is not allowed: use a duration above 0"),
        (["schedules", "add", "d", "x", "--cron", "0 0 30 2 *"], "cron '0 0 30 2 *' cannot be read"),
        (["schedules", "change", "x", "--zone", "Nowhere"], "'Nowhere'"),
        (["meetings", "call", "x", "--game", "tic-tac-toe"], "two players: use --player twice"),
        (["meetings", "call", "x", "--player", "d"], "--player needs --game"),
        (["meetings", "call", "x", "--moderator", "d"], "--moderator needs --floor moderator"),
    ],
)
def test_an_invalid_argument_is_refused_in_plain_words(home: Path, arguments: list[str], why: str) -> None:
    refused = command(*arguments)
    assert refused.exit_code == 2
    assert why in refused.output
    assert "Input should" not in refused.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["tasks", "send", "d", "x", "--priority"],
        ["tasks", "ls", "--status"],
        ["agents", "ls", "--state"],
        ["agents", "broadcast", "x", "--state"],
        ["agents", "broadcast", "x", "--priority"],
        ["agents", "sleep", "d", "--on-mail"],
        ["agents", "create", "d", "--wake-on-priority"],
        ["agents", "set", "d", "--invitations"],
        ["mail", "send", "d", "x", "y", "--priority"],
        ["mail", "reply", "x", "y", "--priority"],
        ["mail", "ls", "--status"],
        ["events", "publish", "x", "--priority"],
        ["schedules", "add", "d", "x", "--every", "1h", "--priority"],
        ["schedules", "change", "x", "--priority"],
        ["schedules", "change", "x", "--overlap"],
        ["schedules", "change", "x", "--missed"],
        ["meetings", "call", "x", "--floor"],
        ["meetings", "call", "x", "--priority"],
        ["meetings", "ls", "--phase"],
        ["dead-letters", "ls", "--kind"],
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(home: Path, arguments: list[str]) -> None:
    refused = command(*arguments, "nonsense")
    assert refused.exit_code == 2
    assert "'nonsense' is not known: use one of " in refused.output


def test_a_moment_to_come_is_taken(home: Path) -> None:
    command("agents", "create", "d", "--profile", "echo")
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert command("agents", "sleep", "d", "--until", soon).output.startswith("d is sleeping until 20")


def test_an_unknown_profile_has_the_same_error_everywhere(home: Path) -> None:
    command("agents", "create", "d", "--profile", "echo")
    asked = (["agents", "create", "e"], ["agents", "set", "d"], ["agents", "broadcast", "hi"], ["chat"])
    told = {command(*one, "--profile", "nope").output for one in asked}
    assert told == {"roost: there is no profile 'nope': use one of echo, guide\n"}


def test_an_unknown_agent_has_the_same_error_everywhere(home: Path) -> None:
    asked = (
        ["agents", "show", "nope"],
        ["tasks", "ls", "--agent", "nope"],
        ["schedules", "ls", "--agent", "nope"],
        ["runs", "ls", "--agent", "nope"],
        ["dead-letters", "ls", "--agent", "nope"],
        ["mail", "ls", "--agent", "nope"],
        ["mail", "send", "nope", "a", "b"],
        ["mail", "send", "user:ann", "a", "b", "--from", "nope"],
        ["meetings", "ls", "--with", "nope"],
        ["meetings", "call", "x", "--with", "nope"],
    )
    told = {command(*one).output for one in asked}
    assert told == {"roost: there is no agent 'nope': it was deleted, or it never existed\n"}


def test_mail_is_listed_newest_first_and_names_agents_as_they_are_typed(home: Path) -> None:
    command("agents", "create", "d", "--stopped", "--profile", "echo")
    for subject, priority in (("one", "normal"), ("two", "urgent"), ("three", "low")):
        command("mail", "send", "user:ann", subject, "x", "--from", "d", "--priority", priority)
    rows = command("mail", "ls").output.splitlines()
    assert [row.split()[-1] for row in rows] == ["SUBJECT", "three", "two", "one"]
    assert rows[1].split()[1] == "agent:d"
    assert command("mail", "ls", "--limit", "1").output.splitlines()[1].endswith("low       three")


def test_a_task_is_not_waited_for_if_its_agent_cannot_work(home: Path) -> None:
    command("agents", "create", "d", "--profile", "echo", "--stopped")
    waited = command("tasks", "send", "d", "x", "--wait")
    assert waited.exit_code == 1
    assert "d is stopped: it starts this later, or after `roost agents start d`" in waited.output
    assert re.search(
        r"the task is queued: it has not finished yet; `roost tasks wait task_\w+` waits for it again\n$", waited.output
    )


def test_only_participants_can_be_addressed_in_a_meeting(home: Path) -> None:
    command("agents", "create", "d", "--profile", "echo")
    meeting = command("meetings", "call", "Nests", "--with", "d", "--json").stdout
    meeting_id = meeting.split('"')[3]
    for who in ("nope", "user:bob"):
        assert (
            "is not in the meeting: use one of user:ann, agent:d"
            in command("meetings", "say", meeting_id, "hi", "--to", who).output
        )
    assert "nope is neither present nor invited" in command("meetings", "kick", meeting_id, "nope").output
    assert "two players: use --player twice" in command("meetings", "call", "x", "--game", "tic-tac-toe").output


def test_what_ends_something_has_json_too(home: Path) -> None:
    command("agents", "create", "d", "--profile", "echo", "--stopped")
    command("schedules", "add", "d", "x", "--every", "1h", "--name", "hourly")
    assert '"name": "hourly"' in command("schedules", "rm", "hourly", "--json").stdout
    assert '"dropped": 0' in command("dead-letters", "drop", "--all", "--json").stdout
    assert '"deleted": true' in command("agents", "delete", "d", "--json").stdout
    assert command("agents", "ls", "--json").stdout == "[]\n"


@pytest.mark.parametrize("given", ["none", "0"])
def test_an_invalid_expiry_names_never_as_a_choice(home: Path, given: str) -> None:
    refused = command("agents", "create", "d", "--task-expiry", given)
    assert refused.exit_code == 2
    assert re.search(r"such as 45s or 30m, or never$|30m, 1h30m or 2d, or never$", " ".join(refused.output.split()))
