"""Agents, tasks, schedules, mail, events and dead letters on the command line, with a server and without."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len

import roost as package
from roost.cli.app import durations
from roost.cli.app.agent_options import SETTINGS
from roost.cli.commands.agents import watch
from roost.cli.render import screen, tables
from roost.cli.render.text import sanitize
from roost.core.agents.agent import Agent, AgentConfig, State
from roost.core.schedules.rules import described
from roost.wiring import announce
from tests.api.serving import serving
from tests.cli.running import COMMAND, command, environment, roost
from tests.cli.terminals import terminal
from tests.conftest import eventually
from tests.forks import Popen

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@contextmanager
def served(folder: Path) -> Iterator[package.AgentService]:
    """A service on the folder's store, which the commands find and work through."""
    (folder / "data").mkdir(exist_ok=True)
    with package.open(f"sqlite:///{folder}/data/roost.db") as service, serving(service) as running:
        announce(service.roost, url=running.url, token=running.identity.token)
        yield service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[package.AgentService]:
    with served(tmp_path) as opened:
        yield opened


def said(folder: Path, *arguments: str, stdin: str = "") -> str:
    """Return the output of a command that succeeds."""
    done = roost(folder, *arguments, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def as_json(folder: Path, *arguments: str) -> Any:
    return json.loads(said(folder, *arguments, "--json"))


# --- agents ----------------------------------------------------------------------------------------------


def test_an_agent_is_made_shown_changed_and_deleted(tmp_path: Path, service: package.AgentService) -> None:
    created = said(
        tmp_path,
        "agents",
        "create",
        "d",
        "--profile",
        "echo",
        "--max-concurrent-tasks",
        "2",
        "--subscribe",
        "a.*",
        "--retry-delay",
        "1m30s",
        "--task-expiry",
        "2h",
        "--shared",
        "--wake-on-priority",
        "high",
    )
    assert created == "d is idle.\n"
    made = service.agents.get("ann", "d").config
    assert (made.profile, made.max_concurrent_tasks, made.retry_delay, made.task_expiry) == ("echo", 2, 90, 7200)
    assert ([one.pattern for one in made.subscriptions], made.shared, made.wake_on_priority) == (["a.*"], True, "high")
    shown = said(tmp_path, "agents", "show", "d")
    assert "retry_delay           90 s\n" in shown
    assert "subscriptions         a.*\n" in shown
    said(tmp_path, "agents", "set", "d", "--subscribe", "", "--task-expiry", "never", "--not-shared")
    changed = service.agents.get("ann", "d").config
    assert (changed.subscriptions, changed.task_expiry, changed.shared, changed.profile) == ((), None, False, "echo")
    assert as_json(tmp_path, "agents", "show", "d")["config"]["maxConcurrentTasks"] == 2
    assert said(tmp_path, "agents", "delete", "d") == "d is deleted.\n"
    assert service.agents.list("ann") == []


def test_a_broadcast_reaches_a_group_or_a_filter(tmp_path: Path, service: package.AgentService) -> None:
    said(tmp_path, "agents", "create", "d", "--stopped", "--group", "night", "--group", "day")
    service.agents.create("ann", "e", start=False)
    assert "groups                night, day\n" in said(tmp_path, "agents", "show", "d")
    assert said(tmp_path, "agents", "broadcast", "hello", "--group", "night") == "Sent to 1 agent.\n"
    assert as_json(tmp_path, "agents", "broadcast", "hello", "--state", "stopped", "--ids", "*") == {"agents": 2}
    said(tmp_path, "agents", "set", "d", "--group", "")
    assert said(tmp_path, "agents", "broadcast", "hello", "--group", "night") == "Sent to 0 agents.\n"
    refused = roost(tmp_path, "agents", "broadcast", "hello", "--state", "gone")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "the state 'gone' is not known: use one of idle, active" in refused.stderr
    assert [service.agents.get("ann", name).queue_depth for name in "de"] == [2, 1]


def test_every_setting_of_an_agent_is_an_option() -> None:
    assert set(SETTINGS) == {field.name for field in fields(AgentConfig)}


def test_an_agent_is_moved_from_state_to_state(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d")
    for verb, told in [
        ("pause", "d is idle, paused."),
        ("resume", "d is idle."),
        ("stop", "d is stopped."),
        ("start", "d is idle."),
        ("restart", "d is idle."),
    ]:
        assert said(tmp_path, "agents", verb, "d") == f"{told}\n"
    refused = roost(tmp_path, "agents", "start", "nobody")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "roost: there is no agent 'nobody': it was deleted, or it never existed\n"
    rows = [row.split("  ")[1:] for row in said(tmp_path, "agents", "history", "d").splitlines()[1:]]
    causes = [cells[-2].strip() for cells in rows]
    assert causes == ["started", "stopped", "started", "stopped", "resumed", "paused", "created"]
    assert [cells[0].strip() for cells in rows[3:]] == ["idle → stopped", "idle", "idle", "idle"]


def test_an_agent_sleeps_until_any_or_all_of_what_is_named(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d", profile="echo")
    told = said(
        tmp_path, "agents", "sleep", "d", "--until", "2030-01-01T09:00Z", "--on-event", "alerts.*", "--on-mail", "high"
    )
    assert told.startswith("d is sleeping until 20")
    assert said(tmp_path, "agents", "pause", "d").endswith(", and paused.\n")
    assert "paused" not in said(tmp_path, "agents", "resume", "d")
    assert told.endswith(" or event alerts.* or mail of at least high.\n")
    asleep = service.agents.get("ann", "d")
    assert (asleep.sleep_until, asleep.wake_events) == (datetime(2030, 1, 1, 9, tzinfo=UTC), ("alerts.*",))
    service.events.publish("ann", "alerts.disk")
    assert eventually(lambda: service.agents.get("ann", "d").wake_reason) == "event alerts.disk (alerts.*)"
    eventually(lambda: service.agents.get("ann", "d").state is State.IDLE)
    said(tmp_path, "agents", "sleep", "d", "--for", "1h", "--on-event", "x", "--all")
    service.events.publish("ann", "x")
    assert service.agents.get("ann", "d").state is State.SLEEPING
    assert said(tmp_path, "agents", "wake", "d", "--reason", "the phone rang") == "d is idle.\n"
    assert "the phone rang" in [change.cause for change in service.agents.history("ann", "d")]


def test_waking_or_sleeping_an_agent_in_the_wrong_state_says_why(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d", start=False)
    assert said(tmp_path, "agents", "wake", "d") == "d is not sleeping: it is stopped.\n"
    refused = roost(tmp_path, "agents", "sleep", "d")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "is stopped and cannot become sleeping: start it first\n" in refused.stderr
    service.agents.start("ann", "d")
    assert said(tmp_path, "agents", "wake", "d") == "d is not sleeping: it is idle.\n"


def test_the_whole_wake_condition_is_shown(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d", profile="echo")
    asked = ("--for", "1h", "--on-event", "x.*", "--on-mail", "high", "--all")
    told = said(tmp_path, "agents", "sleep", "d", *asked)
    assert told.endswith(" (in 60 min) and event x.* and mail of at least high.\n")
    shown = said(tmp_path, "agents", "show", "d")
    assert "\nsleeps until  20" in shown
    assert " (in 60 min) and event x.* and mail of at least high\n" in shown
    listed = roost(tmp_path, "agents", "ls", COLUMNS="200").stdout
    assert listed.endswith("  in 60 min and event x.* and mail of at least high\n")
    [at, *others] = as_json(tmp_path, "agents", "show", "d")["wakeCondition"]["all"]
    assert (list(at), others) == (["at"], [{"event": "x.*"}, {"mail": "high"}])


def test_what_an_agent_remembers_is_shown_searched_and_edited(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d")
    assert said(tmp_path, "agents", "memories", "d").startswith("No memories. Add one with")
    assert said(tmp_path, "agents", "remember", "d", "Ann likes green", "--key", "ann.colour") == "ann.colour\n"
    said(tmp_path, "agents", "remember", "d", "-", stdin="Bob likes \x1b[31mblue\ndoors")
    made = as_json(tmp_path, "agents", "remember", "d", "The door is green")
    assert set(made) == {"key", "text", "created"}
    rows = said(tmp_path, "agents", "memories", "d").splitlines()
    assert rows[0].split() == ["KEY", "CREATED", "TEXT"]
    assert rows[1].startswith(made["key"][-8:])
    assert rows[2].endswith("  Bob likes blue doors")
    assert rows[3].startswith("ann.colour  ")
    found = as_json(tmp_path, "agents", "memories", "d", "GREEN ann")
    assert [one["text"] for one in found] == ["Ann likes green", "The door is green"]
    assert said(tmp_path, "agents", "memories", "d", "?!") == "No matching memories.\n"
    assert "memories     3\n" in said(tmp_path, "agents", "show", "d")
    assert as_json(tmp_path, "agents", "show", "d")["memories"] == 3


def test_an_agent_forgets_by_a_key_or_a_part_that_no_other_has(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d")
    for key in ("ann.colour", "ann.door", "bob"):
        service.agents.remember("ann", "d", "x", key=key)
    assert said(tmp_path, "agents", "forget", "d", "colour") == "ann.colour is forgotten.\n"
    assert said(tmp_path, "agents", "forget", "d", "bob") == "bob is forgotten.\n"
    service.agents.remember("ann", "d", "x", key="ann.window")
    refused = roost(tmp_path, "agents", "forget", "d", "ann")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "2 memories contain 'ann' in their id; use a longer part:" in refused.stderr
    refused = roost(tmp_path, "agents", "forget", "d", "never")
    assert refused.stderr == "roost: there is no memory with key 'never': `roost agents memories AGENT` lists them\n"
    assert [one.key for one in service.agents.memories("ann", "d")] == ["ann.window", "ann.door"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["agents", "remember", "d"],
        ["agents", "forget", "d"],
        ["agents", "memories", "d", "--limit", "0"],
        ["agents", "sleep", "d", "--for", "a while"],
        ["agents", "sleep", "d", "--until", "soon"],
        ["agents", "sleep", "d", "--for", "1h", "--until", "2030-01-01T09:00Z"],
        ["agents", "set", "d"],
        ["agents", "create"],
        ["events", "publish", "x", "no json"],
        ["dead-letters", "retry"],
        ["dead-letters", "drop", "letter_1", "--all"],
        ["tasks", "ls", "--limit", "0"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_opens_nothing(tmp_path: Path, arguments: list[str]) -> None:
    refused = roost(tmp_path, *arguments)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Traceback" not in refused.stderr


# --- tasks -----------------------------------------------------------------------------------------------


def test_a_task_is_sent_waited_for_listed_and_shown_by_a_part_of_its_id(
    tmp_path: Path, service: package.AgentService
) -> None:
    service.agents.create("ann", "d", profile="echo")
    assert said(tmp_path, "tasks", "send", "d", "say\nthis", "--wait") == "say\nthis\n"
    task = said(tmp_path, "tasks", "send", "d", "-", stdin="from a pipe").strip()
    assert said(tmp_path, "tasks", "wait", task) == "from a pipe\n"
    listed = said(tmp_path, "tasks", "ls", "--agent", "d", "--status", "done").splitlines()
    assert listed[0].split() == ["ID", "AGENT", "STATUS", "SENT", "TASK"]
    assert listed[1].startswith(task[-8:])
    assert listed[2].endswith("say this")
    assert f"task      {task}\n" in said(tmp_path, "tasks", "show", task[-8:])
    assert as_json(tmp_path, "tasks", "show", task)["result"] == "from a pipe"


def test_waiting_for_what_an_agent_will_not_do_says_why_and_ends_in_time(
    tmp_path: Path, service: package.AgentService
) -> None:
    service.agents.create("ann", "d", start=False)
    waited = roost(tmp_path, "tasks", "send", "d", "x", "--wait", "--timeout", "0.01s")
    assert (waited.returncode, waited.stdout) == (1, "")
    assert "d is stopped" in waited.stderr
    [task] = service.tasks.list("ann")
    assert (
        f"the task is queued: it has not finished yet; `roost tasks wait {task.task_id}` waits for it again\n"
        in waited.stderr
    )
    assert said(tmp_path, "tasks", "cancel", task.task_id[-6:]) == f"{task.task_id[-8:]} is cancelled.\n"
    over = roost(tmp_path, "tasks", "wait", task.task_id)
    assert (over.returncode, "the task is cancelled" in over.stderr) == (1, True)


def test_an_interrupted_wait_says_that_the_task_continues(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d", start=False)
    process = Popen[str](
        [*COMMAND, "tasks", "send", "d", "x", "--wait"],
        cwd=tmp_path,
        env=environment(tmp_path),
        text=True,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    with process:
        assert "d is stopped" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        [task] = service.tasks.list("ann")
        told = f"roost: the task continues; `roost tasks wait {task.task_id}` waits for it again\n"
        assert (process.stderr.read(), process.wait(20)) == (told, 130)


def test_a_part_that_many_ids_have_is_answered_with_these_and_does_nothing(
    tmp_path: Path, service: package.AgentService
) -> None:
    service.agents.create("ann", "d", start=False)
    sent = [service.tasks.send("ann", "d", f"{number}") for number in range(3)]
    refused = roost(tmp_path, "tasks", "cancel", "task_")
    assert refused.returncode == 1
    assert all(task in refused.stderr for task in sent)
    assert {task.status for task in service.tasks.list("ann")} == {"queued"}


def test_without_a_server_a_task_is_kept_and_with_wait_done_here(tmp_path: Path) -> None:
    said(tmp_path, "agents", "create", "d", "--profile", "echo", "--stopped")
    sent = roost(tmp_path, "tasks", "send", "d", "one")
    assert sent.returncode == 0
    assert sent.stderr.startswith("roost: Roost is not running: the task is queued")
    said(tmp_path, "agents", "start", "d")
    assert said(tmp_path, "tasks", "send", "d", "two", "--wait") == "two\n"
    assert said(tmp_path, "tasks", "wait", sent.stdout.strip()) == "one\n"


@pytest.mark.parametrize(
    ("act", "told"),
    [
        ("stop", "d is stopped: it starts this later, or after `roost agents start d`"),
        ("pause", "d is paused: it starts this later, or after `roost agents resume d`"),
        ("sleep", "d is sleeping: it starts this later, or after `roost agents wake d`"),
    ],
)
def test_sending_to_an_agent_that_does_not_work_says_so(
    tmp_path: Path, service: package.AgentService, act: str, told: str
) -> None:
    service.agents.create("ann", "d", profile="echo")
    getattr(service.agents, act)("ann", "d")
    for given in (["tasks", "send", "d", "x"], ["schedules", "add", "d", "x", "--every", "1h"]):
        done = roost(tmp_path, *given)
        assert (done.returncode, done.stderr) == (0, f"roost: {told}\n")
    service.agents.create("ann", "e", profile="echo")
    said(tmp_path, "tasks", "send", "e", "x")


def test_without_a_server_a_new_schedule_or_event_says_that_it_waits(tmp_path: Path) -> None:
    said(tmp_path, "agents", "create", "d", "--profile", "echo", "--subscribe", "a")
    added = roost(tmp_path, "schedules", "add", "d", "x", "--every", "1h")
    assert added.stderr == "roost: Roost is not running: the schedule starts when `roost up` runs\n"
    assert "agents receive it when" in roost(tmp_path, "events", "publish", "a").stderr
    assert said(tmp_path, "events", "publish", "b").endswith(": no subscriber; moved to dead letters\n")


# --- schedules -------------------------------------------------------------------------------------------


def test_a_schedule_is_added_shown_paused_resumed_and_removed_by_its_name(
    tmp_path: Path, service: package.AgentService
) -> None:
    service.agents.create("ann", "d", profile="echo")
    cron = ["--cron", "*/15 * * * *", "--zone", "Europe/Berlin"]
    added = said(tmp_path, "schedules", "add", "d", "Check system health", *cron, "--name", "health")
    assert added.startswith("health: */15 * * * * (Europe/Berlin), next 20")
    said(tmp_path, "schedules", "add", "d", "Often", "--every", "1h30m", "--name", "healthy")
    assert [one.rule for one in service.schedules.list("ann")][1].seconds == 5400  # type: ignore[union-attr]
    listed = said(tmp_path, "schedules", "ls").splitlines()
    assert listed[1].split()[:3] == ["health", "d", "*/15"]
    assert "paused" in said(tmp_path, "schedules", "pause", "health")
    assert "next      20" not in said(tmp_path, "schedules", "show", "health")
    assert as_json(tmp_path, "schedules", "resume", "health")["paused"] is False
    for every in ("1h30m", "1s"):
        shown = said(tmp_path, "schedules", "change", "healthy", "--every", every)
        times = shown[shown.index("next") : shown.index("priority")].removeprefix("next").split("\n")[:-1]
        assert len({time.strip() for time in times}) == 5
    assert said(tmp_path, "schedules", "rm", "health") == "health was deleted.\n"
    assert [one.name for one in service.schedules.list("ann")] == ["healthy"]


def test_a_schedule_is_changed_and_what_is_not_named_stays(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d", start=False)
    made = service.schedules.create("ann", "d", "Look", cron="0 9 * * *", zone="Europe/Berlin", name="health")

    def kept() -> tuple[Any, ...]:
        one = service.schedules.get("ann", made.schedule_id)
        return described(one.rule), one.prompt, one.priority, one.overlap, one.missed, one.catch_up

    told = said(tmp_path, "schedules", "change", "health", "--cron", "30 8 * * *", "--overlap", "replace")
    assert "rule      30 8 * * * (Europe/Berlin)\n" in told
    assert "overlap   replace\n" in told
    assert kept() == ("30 8 * * * (Europe/Berlin)", "Look", "normal", "replace", "once", 86_400)
    said(tmp_path, "schedules", "change", "health", "--zone", "UTC", "--missed", "all", "--catch-up", "2h")
    changed = as_json(tmp_path, "schedules", "change", "health", "--task", "Look twice", "--priority", "high")
    assert (changed["name"], changed["prompt"], changed["priority"]) == ("health", "Look twice", "high")
    assert kept() == ("30 8 * * * (UTC)", "Look twice", "high", "replace", "all", 7_200)
    said(tmp_path, "schedules", "change", "health", "--every", "1h")
    known = kept()
    for code, why, *options in [
        (2, "nothing to change"),
        (2, "--cron, --every and --at cannot be combined", "--every", "1h", "--cron", "0 9 * * *"),
        (2, "--zone applies only to --cron", "--every", "1h", "--zone", "Europe/Berlin"),
        (1, "a time zone belongs to a cron expression: give cron too", "--zone", "Europe/Berlin", "--task", "x"),
        (1, "the task must not be empty", "--task", ""),
    ]:
        refused = roost(tmp_path, "schedules", "change", "health", *map(str, options))
        assert (refused.returncode, refused.stdout) == (code, "")
        assert str(why) in refused.stderr
        assert kept() == known
    assert "no schedule 'nope'" in roost(tmp_path, "schedules", "change", "nope", "--every", "1h").stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "use exactly one of --cron, --every and --at"),
        (["--every", "1h", "--at", "2030-01-01T09:00Z"], "use exactly one of --cron, --every and --at"),
        (["--cron", "often"], "cron 'often' cannot be read"),
        (["--every", "10m", "--zone", "Europe/Berlin"], "--zone applies only to --cron"),
        (["--at", "2030-01-01T09:00", "--zone", "UTC"], "--zone applies only to --cron"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_in_one_sentence(
    tmp_path: Path, service: package.AgentService, options: list[str], why: str
) -> None:
    service.agents.create("ann", "d", start=False)
    refused = roost(tmp_path, "schedules", "add", "d", "x", *options)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert why in refused.stderr
    assert service.schedules.list("ann") == []


# --- mail, events, dead letters --------------------------------------------------------------------------


def test_mail_is_sent_listed_read_answered_and_archived(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d", start=False)
    sent = said(tmp_path, "mail", "send", "user:ann", "Report", "All is\nwell", "--from", "d", "--priority", "high")
    part = sent.strip()[-8:]
    listed = said(tmp_path, "mail", "ls").splitlines()
    assert listed[1].split()[:3] == [part, "agent:d", "unread"]
    assert listed[1].split()[-2:] == ["high", "Report"]
    assert said(tmp_path, "mail", "show", part, "--keep-unread").endswith("\nAll is\nwell\n")
    assert service.mail.unread_count("ann") == 1
    assert "status    read\n" in said(tmp_path, "mail", "show", part)
    said(tmp_path, "mail", "reply", part, "-", stdin="Thank you")
    thread = said(tmp_path, "mail", "thread", part)
    assert thread.index("All is\nwell") < thread.index("user:ann → agent:d") < thread.index("Thank you")
    assert said(tmp_path, "mail", "archive", part) == f"{part} is archived.\n"
    assert said(tmp_path, "mail", "ls") == "No mail.\n"
    assert [one["subject"] for one in as_json(tmp_path, "mail", "ls", "--agent", "d")] == ["Re: Report"]


def test_mail_is_forwarded_with_a_note(tmp_path: Path, service: package.AgentService) -> None:
    for name in ("d", "e"):
        service.agents.create("ann", name, start=False)
    mail = service.mail.send("ann", "agent:d", "Report", "All is well")
    forwarded = said(tmp_path, "mail", "forward", mail, "e", "-", stdin="See below").strip()
    shown = said(tmp_path, "mail", "show", forwarded)
    assert "Fwd: Report" in shown
    assert shown.index("See below") < shown.index("From: user:ann") < shown.index("All is well")
    assert as_json(tmp_path, "mail", "forward", mail, "e", "--json")["sender"] == "agent:ann/d"


def test_looking_at_an_agents_mail_does_not_read_it(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d", start=False)
    mail = service.mail.send("ann", "agent:d", "Report", "please")
    said(tmp_path, "mail", "show", mail)
    assert service.mail.get("ann", mail).status == "unread"


def test_events_are_published_and_dead_letters_looked_at_retried_and_dropped(
    tmp_path: Path, service: package.AgentService
) -> None:
    assert said(tmp_path, "events", "publish", "alerts.disk", '{"used": 0.97}').endswith(
        ": no subscriber; moved to dead letters\n"
    )
    said(tmp_path, "events", "publish", "lost")
    listed = said(tmp_path, "events", "history", "--name", "alerts.*", "--since", "1h").splitlines()
    assert listed[1].endswith('0            {"used": 0.97}')
    assert len(listed) == 2
    dead = as_json(tmp_path, "dead-letters", "ls")
    assert [(one["kind"], one["envelope"]["name"]) for one in dead] == [("event", "lost"), ("event", "alerts.disk")]
    service.agents.create("ann", "d", start=False, subscriptions=["alerts.*"])
    part = dead[1]["letterId"][-8:]
    assert "no agent subscribes to this event" in said(tmp_path, "dead-letters", "show", part)
    assert said(tmp_path, "dead-letters", "retry", part) == f"{part} was queued again.\n"
    left = "Some could not be retried: `roost dead-letters ls` shows the reasons."
    assert said(tmp_path, "dead-letters", "retry", "--all") == f"Retried 0. {left}\n"
    assert said(tmp_path, "dead-letters", "drop", "--all") == "Dropped 1.\n"
    assert said(tmp_path, "dead-letters", "retry", "--all") == "Retried 0.\n"
    assert said(tmp_path, "dead-letters", "ls") == "No dead letters.\n"
    assert said(tmp_path, "dead-letters", "retry", "--all", "--agent", "d") == "Retried 0.\n"
    for act in (["ls"], ["retry", "--all"], ["drop", "--all"]):
        refused = roost(tmp_path, "dead-letters", *act, "--agent", "nope")
        assert refused.returncode == 1
        assert "there is no agent 'nope'" in refused.stderr
    assert said(tmp_path, "events", "publish", "alerts.cpu", "-", stdin="[1]").endswith(": delivered to one agent\n")


# --- what all have in common -----------------------------------------------------------------------------

LISTS = [
    ("agents", "ls"),
    ("tasks", "ls"),
    ("schedules", "ls"),
    ("mail", "ls"),
    ("events", "history"),
    ("dead-letters", "ls"),
]


def test_lists_fit_into_80_columns_and_nothing_in_them_moves_the_cursor(
    tmp_path: Path, service: package.AgentService
) -> None:
    evil = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202e and more of it, much more than there is room for in a line " * 3
    service.agents.create("ann", "d" * 100, start=False, description=evil)
    service.tasks.send("ann", "d" * 100, evil)
    service.schedules.create("ann", "d" * 100, evil, every=3600)
    service.mail.send("ann", "user:ann", "鳥" * 60, evil)
    service.events.publish("ann", "lost." + "e" * 100, evil)
    for listing in LISTS:
        shown = said(tmp_path, *listing)
        rows = shown.splitlines()
        assert len(rows) == 2, shown
        assert max(map(cell_len, rows)) <= 80
        assert "…" in rows[1]
        assert not set("\x1b\x07\x9b\u202e") & set(shown)
    for noun, name in (("agents", "d" * 100), ("tasks", "task"), ("mail", "mail")):
        assert not set("\x1b\x07\x9b\u202e") & set(said(tmp_path, noun, "show", name))


def test_lists_fit_into_a_narrow_terminal_with_their_ids_and_times(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    command("agents", "create", "gardener", "--profile", "echo")
    command("mail", "send", "gardener", "A long subject of a mail", "x", "--priority", "urgent")
    command("events", "publish", "alerts.disk.full", '{"used": 0.97}')
    command("schedules", "add", "gardener", "Look", "--every", "1h", "--name", "hourly")
    command("agents", "sleep", "gardener", "--for", "1h", "--on-event", "alerts.*")
    for listing in (*LISTS, ("mail", "ls", "--agent", "gardener"), ("schedules", "show", "hourly")):
        assert max(map(cell_len, command(*listing).stdout.splitlines())) <= 50, listing
    changes = command("agents", "history", "gardener").stdout.splitlines()
    assert max(map(cell_len, changes)) <= 50
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ", row) for row in changes[1:])


def test_nothing_of_another_user_is_shown(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("bob", "secret", start=False)
    service.tasks.send("bob", "secret", "x")
    service.events.publish("bob", "secret")
    for listing in LISTS:
        assert said(tmp_path, *listing).startswith("No ")
        assert as_json(tmp_path, *listing) == []


def test_a_talk_with_an_agent_is_held_in_the_terminal(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d", profile="echo")
    assert said(tmp_path, "chat", "--agent", "d", stdin="hello\n") == "hello\n"
    [talk] = service.list_sessions("ann")
    assert talk.agent == "agent:ann/d"
    assert " agent:d " in said(tmp_path, "talks", "ls")
    assert said(tmp_path, "chat", "--talk", talk.talk_session_id, stdin="again\n") == "again\n"
    for code, *more in ((1, "nobody"), (2, "d", "--profile", "echo"), (2, "d", "--talk", "x")):
        assert roost(tmp_path, "chat", "--agent", *map(str, more), stdin="hello\n").returncode == code
    assert len(service.list_sessions("ann")) == 1


# --- watching --------------------------------------------------------------------------------------------


def test_through_a_pipe_each_change_is_a_line_until_ctrl_c(tmp_path: Path, service: package.AgentService) -> None:
    service.agents.create("ann", "d", profile="echo")
    output = tmp_path / "watched"
    with output.open("wb") as file:
        process = Popen[bytes]([*COMMAND, "agents", "watch"], cwd=tmp_path, env=environment(tmp_path), stdout=file)
    try:
        eventually(lambda: "d  idle" in output.read_text(), 20)
        service.agents.sleep("ann", "d")
        service.agents.wake("ann", "d", "the phone rang")
        service.agents.pause("ann", "d")
        service.agents.resume("ann", "d")
        task = service.tasks.send("ann", "d", "x")
        service.tasks.wait("ann", task)
        service.agents.stop("ann", "d")
        service.agents.start("ann", "d")
        service.agents.delete("ann", "d")
        eventually(lambda: re.search(r"^\d\d:\d\d:\d\d  d  deleted$", output.read_text(), re.MULTILINE))
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.wait(10)
    assert [row.partition("  d  ")[2] for row in output.read_text().splitlines()] == [
        "idle",
        "slept",
        "woke: the phone rang",
        "paused",
        "resumed",
        f"task sent {task[-8:]}",
        f"task started {task[-8:]}",
        f"task done {task[-8:]}",
        "stopped",
        "started",
        "deleted",
    ]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_where_nothing_runs_agents_are_shown_once_and_the_store_is_let_go(tmp_path: Path, options: list[str]) -> None:
    said(tmp_path, "agents", "create", "d")
    seen = roost(tmp_path, "agents", "watch", *options)
    assert (seen.returncode, len(seen.stdout.splitlines())) == (0, 1)
    assert '"agentId": "d"' in seen.stdout if options else seen.stdout.endswith("  d  idle\n")
    assert seen.stderr == "roost: Roost is not running: nothing changes until `roost up` runs\n"


def test_in_a_terminal_the_table_is_drawn_over_itself_and_the_cursor_comes_back(
    tmp_path: Path, service: package.AgentService
) -> None:
    service.agents.create("ann", "d", start=False)
    with terminal(tmp_path, "agents", "watch", "--every", "0.1s") as shown:
        shown.becomes("stopped")
        service.agents.start("ann", "d")
        shown.becomes("idle")
        shown.process.send_signal(signal.SIGINT)
        shown.becomes(screen.SHOW)
        assert shown.process.wait(20) == 130
    assert "\x1b[2A" in shown.seen
    assert shown.seen.index(screen.HIDE) < shown.seen.index("AGENT")


def agent(name: str, **others: Any) -> Agent:
    return Agent(
        **{
            "agent_id": name,
            "user_id": "ann",
            "config": AgentConfig(),
            "state": State.IDLE,
            "paused": False,
            "created": NOW,
            "last_active": NOW,
            **others,
        }
    )


def test_what_is_watched_fits_the_terminal() -> None:
    drawn = watch.fitting_rows([agent(f"{'long' * 20}{number}") for number in range(30)], 40, 12)
    assert len(drawn) < 12
    assert max(map(len, drawn)) <= 40
    assert drawn[-1].startswith("more than 9 agents")


def test_being_active_again_is_no_change_but_a_longer_queue_is() -> None:
    before = {"d": agent("d"), "e": agent("e")}
    now = {"d": agent("d", last_active=NOW + timedelta(1)), "e": agent("e", queue_depth=1), "f": agent("f")}
    assert [one.agent_id for one in watch.changed(before, now)] == ["e", "f"]


# --- times -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("45s", 45), ("30m", 1800), ("1h30m", 5400), ("2 d", 172_800), ("0.5h", 1800)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert durations.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-5m", "1y", "1h then 3m", "١h", "1e3"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="use a form such as"):
        durations.duration(text)


@pytest.mark.parametrize("text", ["999999999999d", "9" * 400, "36601d"])
def test_a_duration_of_more_than_a_lifetime_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="the maximum is 100 years"):
        durations.duration(text)


def test_times_are_read_with_their_zone_or_on_this_machines_clock() -> None:
    assert durations.timestamp("2030-01-01T09:00Z") == datetime(2030, 1, 1, 9, tzinfo=UTC)
    assert durations.timestamp("2030-01-01T09:00+02:00") == datetime(2030, 1, 1, 7, tzinfo=UTC)
    assert durations.timestamp("2030-01-01T09:00") == datetime(2030, 1, 1, 9).astimezone()
    for text in ("", "soon", "2030-13-01", "99999"):
        with pytest.raises(typer.BadParameter, match="is not a valid time"):
            durations.timestamp(text)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "now"),
        (5, "5 s ago"),
        (-5, "in 5 s"),
        (600, "10 min ago"),
        (-5000, "in 83 min"),
        (7200, "2 h ago"),
        (-86_400 * 3, "in 3 d"),
        (86_400 * 100, "2025-09-2"),
    ],
)
def test_relative_times_are_short(seconds: float, told: str) -> None:
    assert tables.relative_time(NOW - timedelta(seconds=seconds), NOW).startswith(told)


def test_columns_are_aligned_whatever_the_letters_and_the_widest_is_cut() -> None:
    rows = list(tables.table(("A", "B"), [("鳥鳥", "x" * 50), ("é\u0301", "y")], width=20))
    assert rows == ["A     B", "鳥鳥  xxxxxxxxxxxxx…", "é\u0301     y"]


@pytest.mark.parametrize("width", [5, 20, 30, 40])
def test_a_table_is_never_wider_than_it_may_be_and_its_ids_are_cut_last(width: int) -> None:
    headings = ("ID", "PRIORITY", "WHEN", "BY", "TAKEN")
    rows = list(tables.table(headings, [("abcdefgh", "urgent", "5 min ago", "user:ann", "x" * 50)], width=width))
    assert max(map(cell_len, rows)) <= width
    assert ("abcdefgh" in rows[1]) is (width >= 40)


def test_what_a_terminal_cannot_write_is_shown_all_the_same() -> None:
    assert sanitize("a\ud800b\x1b[31m\u202e!") == "a\ufffdb!"


def test_how_long_ago_is_said_to_be_possible_where_it_is(tmp_path: Path) -> None:
    done = roost(tmp_path, "events", "history", "--since", "lately")
    assert done.returncode == 2
    assert "'lately' is not a valid time" in done.stderr
    assert "or a duration such as 30m or 2d" in " ".join(done.stderr.split())
