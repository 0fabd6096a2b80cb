"""`roost chat --attach`, and `roost talks save`."""

from __future__ import annotations

from pathlib import Path

import roost as package
from tests.cli.running import command, roost

DATA = b"millet\0" * 100_000


def test_a_file_is_sent_shown_and_saved(home: Path) -> None:
    source = home / "se\u0301eds.bin"
    source.write_bytes(DATA)
    done = roost(home, "chat", "--profile", "echo", "--attach", str(source), stdin="look\n")
    assert done.returncode == 0, done.stderr
    with package.open(f"sqlite:///{home}/data/roost.db") as service:
        [talk] = service.list_sessions("ann")
    shown = command("talks", "show", talk.talk_session_id).stdout
    assert shown.count("[file: se\u0301eds.bin, application/octet-stream, 700,000 bytes]") == 1
    saved = command("talks", "save", talk.talk_session_id[-8:], source.name, "-o", "copy.bin")
    assert (saved.exit_code, saved.stdout) == (0, "Saved as copy.bin\n")
    assert Path("copy.bin").read_bytes() == DATA
    for name, told in ((source.name, "exists"), ("other", "lists its files")):
        refused = command("talks", "save", talk.talk_session_id, name, "-o", "copy.bin")
        assert refused.exit_code != 0
        assert told in refused.stderr


def test_a_file_that_cannot_be_sent_is_named(home: Path) -> None:
    (home / "empty").touch()
    for name, told in (("gone", "cannot be read"), ("empty", "is empty")):
        refused = command("chat", "--profile", "echo", "--attach", str(home / name))
        assert refused.exit_code != 0
        assert told in refused.stderr
