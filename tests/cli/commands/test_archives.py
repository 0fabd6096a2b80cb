"""`roost export` and `roost import`: everything moves to another Roost, once, whatever happens on the way."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import roost as package
from roost.cli.commands.archives.exporting import summary
from roost.core.talks.transcripts import TranscriptPart
from roost.sync import SyncAgents
from tests.cli.running import COMMAND, command, environment
from tests.conftest import eventually
from tests.forks import Popen

FILE = b"seeds\0" * 1_000


def opened(folder: Path, name: str = "roost") -> package.AgentService:
    return package.open(f"sqlite:///{folder}/data/{name}.db")


@pytest.fixture
def filled(home: Path) -> Path:
    """Ann's things: agents, memories, schedules, mail and talks."""
    with opened(home) as service:
        agents = service.agents
        agents.create(
            "ann", "d", profile="echo", subscriptions=["alerts.*"], groups=["birds"], description="Wren", start=False
        )
        agents.create("ann", "e", profile="echo", max_concurrent_tasks=3)
        agents.set_state("ann", "d", {"seen": 3, "who": {"name": "grüß 🐦"}})
        for key in ("nest", "food"):
            agents.remember("ann", "d", f"about {key}\n", key=key)
        service.schedules.create("ann", "d", "sing", cron="*/15 * * * *", zone="Europe/Berlin", name="often")
        service.schedules.create("ann", "d", "rest", every=3600, name="hourly", overlap="queue_one")
        service.schedules.create("ann", "d", "go", at=datetime.now(UTC) + timedelta(days=9), name="once")
        first = service.mail.send("ann", "user:ann", "hello", "from herself", priority="urgent")
        service.mail.reply("ann", first, "grüß 🐦")
        service.mail.archive("ann", service.mail.send("ann", "user:ann", "old", "from e", sender="agent:e"))
        talk = service.create_talk_session("ann", profile="echo", title="Files", busy="queue")
        sent = service.add_attachment("ann", "seeds.bin", FILE)
        service.add_message("ann", talk, "look\nhere", attachments=[sent.attachment_id])
        list(service.stream_messages("ann", talk))
        service.create_talk_session("ann", agent="e", title="With e")
        service.create_talk_session("bob", profile="echo", title="Not hers")
    return home


def everything(folder: Path, name: str) -> dict[str, object]:
    """Return what ann has in a store, without ids and times."""
    with opened(folder, name) as service:
        talks = service.list_sessions("ann")
        pages = [service.get_messages("ann", talk.talk_session_id).messages for talk in talks]
        files = [service.get_attachment("ann", a.attachment_id).data for p in pages for m in p for a in m.attachments]
        return {
            "agents": [(a.agent_id, a.config, a.state == "stopped") for a in service.agents.list("ann")],
            "state": service.agents.inspect("ann", "d").turn_state,
            "memories": sorted((m.key, m.text) for m in service.agents.memories("ann", "d")),
            "schedules": sorted(
                (s.name, s.prompt, s.overlap, type(s.rule).__name__, s.paused) for s in service.schedules.list("ann")
            ),
            "talks": sorted((t.title, t.profile, t.agent, t.busy, t.messages) for t in talks),
            "texts": sorted((m.content, m.status, m.created) for p in pages for m in p),
            "files": files,
            "mail": [
                (m.mail_id, m.sender, m.subject, m.body, m.priority, m.status, m.created, m.read_at, m.reply_to)
                for m in service.mail.inbox("ann", include_archived=True, newest=True)
            ],
        }


def test_everything_moves_and_again_changes_nothing(filled: Path) -> None:
    made = command("export", "ann.roost")
    assert made.stdout == "Exported 2 agents, 2 memories, 3 schedules, 3 mails, 2 talks.\n", made.output
    assert Path("ann.roost").stat().st_mode & 0o777 == 0o600
    assert "Not hers" not in Path("ann.roost").read_text()
    there = ("--store", f"sqlite:///{filled}/data/other.db")
    done = command("import", "ann.roost", *there)
    assert done.exit_code == 0, done.output
    assert done.stdout == "Imported 2 agents, 2 memories, 3 schedules, 3 mails, 2 talks.\n"
    assert everything(filled, "other") == everything(filled, "roost")
    with opened(filled, "other") as service:
        service.agents.configure("ann", "d", description="changed there")
        service.agents.remember("ann", "d", "changed there", key="nest")
    again = json.loads(command("import", "ann.roost", *there, "--json").stdout)
    assert again["added"] == dict.fromkeys(("agent", "memory", "schedule", "mail", "talk"), 0)
    assert again["kept"] == {"agent": 2, "memory": 2, "schedule": 3, "mail": 3, "talk": 2}
    assert command("import", "ann.roost", *there).stdout.startswith("Imported nothing.\nLeft as they are")
    with opened(filled, "other") as service:
        assert service.agents.get("ann", "d").config.description == "changed there"
        assert len(service.list_sessions("ann")) == 2


@pytest.fixture
def held(home: Path) -> tuple[str, str]:
    """Agents with a state, paused and not, running and stopped, in a file; where to import it."""
    with opened(home) as service:
        for agent, start in (("both", False), ("paused", True), ("running", True), ("stopped", False)):
            service.agents.create("ann", agent, profile="echo", subscriptions=["alerts.*"], start=start)
            service.agents.set_state("ann", agent, {"seen": 3})
        for agent in ("both", "paused"):
            service.agents.pause("ann", agent)
    command("export", "ann.roost")
    return "--store", f"sqlite:///{home}/data/other.db"


WAYS = {
    "both": [("stopped", "created"), ("stopped", "paused")],
    "paused": [("stopped", "created"), ("stopped", "paused"), ("idle", "started")],
    "running": [("stopped", "created"), ("idle", "started")],
    "stopped": [("stopped", "created")],
}


def ways(home: Path) -> dict[str, list[tuple[str, str]]]:
    """The lifecycle states of the imported agents from the beginning on, each with its cause."""
    with opened(home, "other") as service:
        known = service.agents.list("ann")
        for one in known:
            assert service.agents.inspect("ann", one.agent_id).turn_state == {"seen": 3}
            assert one.paused is (one.agent_id in ("both", "paused"))
        return {
            one.agent_id: [(c.after, c.cause) for c in reversed(service.agents.history("ann", one.agent_id))]
            for one in known
        }


def test_an_imported_agent_does_not_run_before_it_has_its_state_and_is_paused(
    home: Path, held: tuple[str, str]
) -> None:
    done = command("import", "ann.roost", *held)
    assert (done.exit_code, done.stdout) == (0, "Imported 4 agents.\n"), done.output
    assert ways(home) == WAYS
    again = command("import", "ann.roost", *held)
    assert again.stdout == "Imported nothing.\nLeft as they are, because they exist: 4 agents.\n"
    assert ways(home) == WAYS


@pytest.mark.parametrize("step", ["set_state", "pause", "start"])
def test_an_import_that_was_interrupted_in_an_agent_is_completed(
    home: Path, held: tuple[str, str], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise package.Unavailable("the connection is lost")

    with monkeypatch.context() as patched:
        patched.setattr(SyncAgents, step, fail)
        assert command("import", "ann.roost", *held).exit_code == 1
    assert command("import", "ann.roost", *held).exit_code == 0
    assert ways(home) == WAYS


def test_an_own_agent_that_has_never_run_is_left_as_it_is(home: Path, held: tuple[str, str]) -> None:
    with opened(home, "other") as service:
        service.agents.create("ann", "running", profile="echo", start=False)
    done = command("import", "ann.roost", *held)
    assert done.stdout == "Imported 3 agents.\nLeft as they are, because they exist: 1 agent.\n"
    with opened(home, "other") as service:
        assert service.agents.get("ann", "running").state == "stopped"
        assert service.agents.inspect("ann", "running").turn_state == {}


def test_one_thing_is_counted_in_the_singular() -> None:
    counts = {"agent": 1, "memory": 1, "schedule": 0, "mail": 2, "talk": 1_000}
    assert summary(counts) == "1 agent, 1 memory, 2 mails, 1,000 talks"


def test_it_works_through_pipes(filled: Path) -> None:
    ours = environment(filled)
    exported = subprocess.run([*COMMAND, "export", "-"], env=ours, cwd=filled, capture_output=True, check=True).stdout
    there = ["--store", f"sqlite:///{filled}/data/other.db"]
    subprocess.run([*COMMAND, "import", "-", *there], env=ours, cwd=filled, input=exported, check=True)
    assert everything(filled, "other") == everything(filled, "roost")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: lines[:-1], "the file is not complete: it ends after line 13; export it again"),
        (lambda lines: [*lines[:3], lines[3][:20]], "line 4 is not valid JSON"),
        (lambda lines: [*lines[:4], *lines[5:]], "the file was changed: its last line does not fit"),
        (lambda lines: [*lines, lines[1]], "the file was changed: its last line does not fit"),
        (lambda lines: [lines[0], '{"spaceship": {}}', *lines[1:]], "line 2 is not known"),
        (lambda lines: [lines[0].replace('"version": 1', '"version": 2')], "upgrade Roost first"),
        (lambda lines: ['{"kind": "roost.talk", "version": 1}'], "`roost talks import` imports it"),
        (lambda lines: ["hello"], "this is not a file of `roost export`"),
        (lambda lines: [], "this is not a file of `roost export`"),
        (lambda lines: ["[" * 100_000], "this is not a file of `roost export`"),
    ],
)
def test_a_broken_file_changes_nothing(filled: Path, change: object, told: str) -> None:
    command("export", "ann.roost")
    lines = Path("ann.roost").read_text().splitlines()
    Path("ann.roost").write_text("".join(f"{line}\n" for line in change(lines)))  # type: ignore[operator]
    there = ("--store", f"sqlite:///{filled}/data/other.db")
    refused = command("import", "ann.roost", *there)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert told in refused.stderr
    assert command("agents", "ls", *there, "--json").stdout == "[]\n"
    assert command("talks", "ls", *there, "--json").stdout == "[]\n"


def test_a_profile_that_is_missing_is_replaced_only_by_the_one_that_is_named(filled: Path) -> None:
    command("export", "ann.roost")
    text = Path("ann.roost").read_text().replace('"profile": "echo"', '"profile": "parrot"')
    Path("ann.roost").write_text(text)
    there = ("--store", f"sqlite:///{filled}/data/other.db")
    refused = command("import", "ann.roost", *there)
    assert "these profiles are not configured here: parrot. Configure them, or name one" in refused.stderr
    assert command("import", "ann.roost", "--profile", "nope", *there).exit_code == 1
    assert command("import", "ann.roost", "--profile", "echo", *there).exit_code == 0
    assert everything(filled, "other")["agents"] == everything(filled, "roost")["agents"]


def test_what_cannot_be_added_is_named_and_the_rest_is(filled: Path) -> None:
    command("export", "ann.roost")
    lines = Path("ann.roost").read_text().splitlines(keepends=True)
    past = [re.sub(r'"time": [\d.]+', '"time": 1.0', line) if '"name": "once"' in line else line for line in lines]
    Path("ann.roost").write_text("".join(past))
    done = command("import", "ann.roost", "--store", f"sqlite:///{filled}/data/other.db")
    assert done.exit_code == 1
    assert "schedule not imported: its time, 1970-01-01 00:00 UTC, is in the past" in done.stderr
    assert "Imported 2 agents, 2 memories, 2 schedules, 3 mails, 2 talks." in done.stdout


def _small() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_a_talk_that_is_deleted_while_it_is_exported_leaves_no_broken_file(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def part(_: object, user: str, talk: str, *, format: str, after: int) -> TranscriptPart:
        if after:
            raise package.NotFound("there is no such talk")
        return TranscriptPart('{"kind": "roost.talk",', 1)

    monkeypatch.setattr(package.AgentService, "export_part", part)
    refused = command("export", "out.jsonl")
    assert (refused.exit_code, "was deleted while it was exported: export again" in refused.stderr) == (1, True)
    assert list(filled.glob("out.jsonl*")) == []


def test_a_full_disk_leaves_no_file(filled: Path) -> None:
    with opened(filled):
        pass  # so that the command itself has nothing to write but the file
    failed = subprocess.run(
        [*COMMAND, "export", "ann.roost"],
        cwd=filled,
        env=environment(filled),
        preexec_fn=_small,
        capture_output=True,
        check=False,
    )
    assert failed.returncode == 1
    assert list(filled.glob("ann.roost*")) == []


def test_a_file_that_exists_is_not_overwritten(filled: Path) -> None:
    Path("ann.roost").write_text("mine")
    refused = command("export", "ann.roost")
    assert (refused.exit_code, "exists: name another file" in refused.stderr) == (1, True)
    assert Path("ann.roost").read_text() == "mine"
    assert command("export", "nowhere/ann.roost").exit_code == 1
    assert command("import", "nowhere.roost").exit_code == 1


@pytest.mark.parametrize("verb", ["export", "import"])
def test_a_killed_command_is_run_again(filled: Path, verb: str) -> None:
    with opened(filled) as service:
        for number in range(40):
            talk = service.create_talk_session("ann", profile="echo", title=f"t{number}")
            service.add_message("ann", talk, "x" * 50_000)
        for one in service.list_sessions("ann"):
            list(service.stream_messages("ann", one.talk_session_id))
    if verb == "import":
        command("export", "ann.roost")
    there = ["--store", f"sqlite:///{filled}/data/other.db"] if verb == "import" else []
    process = Popen[bytes]([*COMMAND, verb, "ann.roost", *there], cwd=filled, env=environment(filled))
    sign = filled / ("ann.roost.partial" if verb == "export" else "data/other.db-wal")
    eventually(lambda: sign.exists() or process.poll() is not None, 30)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    if verb == "export" and Path("ann.roost").exists():
        os.unlink("ann.roost")  # it was quicker
    done = command(verb, "ann.roost", *there)
    assert done.exit_code == 0, done.output
    if verb == "export":
        command("import", "ann.roost", "--store", f"sqlite:///{filled}/data/other.db")
    assert everything(filled, "other") == everything(filled, "roost")
