"""`roost talks search`, `export` and `import`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import roost as package
from roost.core.talks import transcripts
from roost.wiring import announce
from tests.api.serving import serving
from tests.cli.running import command

HOSTILE = "\x1b[31mred\x1b[0m \x1b]0;title\x07 bird\u202e \x9b2J"


@pytest.fixture
def talk(home: Path) -> str:
    with package.open(f"sqlite:///{home}/data/roost.db") as service:
        talk = service.create_talk_session("ann", profile="echo")
        for text in (HOSTILE, "the big bird"):
            service.add_message("ann", talk, text)
            list(service.stream_messages("ann", talk))
        service.create_talk_session("bob", profile="echo", title="Not hers")
        other = service.create_talk_session("bob", profile="echo")
        service.add_message("bob", other, "another bird")
        list(service.stream_messages("bob", other))
    return talk


def test_messages_are_found_in_ones_own_talks(talk: str) -> None:
    found = command("talks", "search", "bird", "big")
    assert found.exit_code == 0
    assert [line.split(",")[0] for line in found.stdout.splitlines()[1:]] == ["  4. agent", "  3. user"]
    assert "another" not in command("talks", "search", "bird").stdout
    assert command("talks", "search", '"bird big"').stdout == "No messages found.\n"
    hits = json.loads(command("talks", "search", "bird", "--talk", talk[-8:], "--limit", "3", "--json").stdout)
    assert [hit["seq"] for hit in hits] == [4, 3, 2]
    assert hits[1]["excerpt"][slice(*hits[1]["ranges"][0])] == "bird"


def test_matched_words_are_bold_in_a_terminal_and_escapes_of_others_are_gone(
    talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.cli.commands.talks.talks.is_terminal", lambda: True)
    shown = command("talks", "search", "bird", color=True).stdout
    assert "\x1b[1mbird\x1b[22m" in shown
    assert not set(shown.replace("\x1b[1m", "").replace("\x1b[22m", "")) & set("\x1b\x07\x9b\u202e")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in command("talks", "search", "bird").stdout


def test_an_exported_talk_can_be_imported(home: Path, talk: str) -> None:
    done = command("talks", "export", talk[-8:], "--format", "json", "-o", "kept.json")
    assert done.exit_code == 0, done.output
    assert (home / "kept.json").stat().st_mode & 0o777 == 0o600
    imported = command("talks", "import", "kept.json", "--profile", "echo")
    again = command("talks", "export", imported.stdout.strip(), "--format", "json").stdout
    assert again == (home / "kept.json").read_text()
    made = json.loads(command("talks", "import", "-", "--json", stdin=again).stdout)
    assert command("talks", "export", made["talkSessionId"]).stdout == command("talks", "export", talk).stdout


def test_an_export_to_a_terminal_has_no_escapes_and_a_file_has_all(talk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert HOSTILE in command("talks", "export", talk).stdout
    monkeypatch.setattr("roost.cli.commands.talks.transcripts.is_terminal", lambda: True)
    shown = command("talks", "export", talk).stdout
    assert not set(shown) & set("\x1b\x07\x9b\u202e")
    assert "bird" in shown


def test_no_file_is_replaced_or_left_half_written(home: Path, talk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "there").write_text("mine")
    refused = command("talks", "export", talk, "-o", "there")
    assert (refused.exit_code, (home / "there").read_text()) == (1, "mine")
    assert "exists: name another file" in refused.stderr
    assert command("talks", "export", "never", "-o", "new").exit_code == 1
    assert command("talks", "export", talk, "-o", "no/such/folder").exit_code == 1

    def fails(*_: object, after: int, **__: object) -> object:
        if after:
            raise package.Unavailable("the disk is full")
        return package.TranscriptPart("half", 1)

    monkeypatch.setattr(package.AgentService, "export_part", fails)
    assert command("talks", "export", talk, "-o", "new").exit_code == 1
    assert not (home / "new").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not a text in UTF-8"),
        (b"{}", "has no field 'kind'"),
        (b"x" * 101, "too long"),
    ],
)
def test_what_is_no_transcript_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, told: str
) -> None:
    monkeypatch.setattr("roost.cli.commands.talks.transcripts.MOST_BYTES", 100)
    (home / "bad.json").write_bytes(content)
    refused = command("talks", "import", "bad.json")
    assert refused.exit_code == 1
    assert told in refused.stderr
    assert command("talks", "ls").stdout.startswith("No talks.")
    assert "cannot be read" in command("talks", "import", "missing").stderr
    assert command("talks", "export", "x", "--format", "pdf").exit_code == 2


def test_the_commands_use_a_running_server(home: Path, talk: str) -> None:
    with package.open(f"sqlite:///{home}/data/roost.db") as service, serving(service) as served:
        announce(service.roost, url=served.url, token=served.identity.token)
        exported = command("talks", "export", talk, "--format", "json").stdout
        made = command("talks", "import", "-", stdin=exported).stdout.strip()
        assert command("talks", "export", made, "--format", "json").stdout == exported
        assert "3. user" in command("talks", "search", "big").stdout
        assert transcripts.KIND in exported
