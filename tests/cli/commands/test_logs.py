"""`roost logs`: the newest entries across rotated files, filtered, safe for a terminal, and followed."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import IO

import pytest

from roost.cli.commands import logs
from tests.cli.running import COMMAND, command, environment
from tests.conftest import eventually


def entry(message: str, level: str = "info", **fields: str) -> str:
    time = "2026-01-02T03:04:05.678+00:00"
    return json.dumps({"time": time, "level": level, "logger": "roost", "message": message, **fields}) + "\n"


@pytest.fixture
def log(home: Path) -> Path:
    file = home / "data" / "roost.log"
    (home / "data" / "roost.log.2").write_text("".join(entry(f"oldest {n}") for n in range(3)))
    (home / "data" / "roost.log.1").write_text("".join(entry(f"older {n}" + "x" * 50_000) for n in range(5)))
    file.write_text(
        entry("one", session="talk_abc", run="run_1")
        + entry("two", "warning", run="run_2")
        + "not JSON \x1b[31m\n"
        + entry("bad \x1b]0;owned\x07news", "error", error="it\nbroke", stack="Traceback\n  line \x1b[2J")
    )
    return file


def shown(*arguments: str) -> list[str]:
    done = command("logs", *arguments)
    assert done.exit_code == 0, done.output
    return [line for line in done.stdout.splitlines() if not line.startswith("    ")]


def test_the_newest_entries_are_shown_last_also_from_rotated_files(log: Path) -> None:
    assert [line[28:].split("  ")[0] for line in shown("-n", "2")] == ["not JSON", "bad news"]
    everything = shown("-n", "1000")
    assert len(everything) == 12
    assert everything[0].endswith("oldest 0")
    assert everything[3][28:36] == "older 0x"
    assert everything[8].endswith("info    one  session=talk_abc run=run_1")
    assert shown("-n", "0") == []


def test_entries_are_filtered_by_level_run_and_talk(log: Path) -> None:
    assert len(shown("--level", "warning")) == 2
    assert len(shown("--level", "error")) == 1
    assert [line.split()[3] for line in shown("--talk", "ABC")] == ["one"]
    assert [line.split()[3] for line in shown("--run", "run_2")] == ["two"]
    assert shown("--run", "run_2", "--talk", "abc") == []
    assert command("logs", "--level", "loud").exit_code == 2


def test_nothing_in_an_entry_can_touch_the_terminal(log: Path) -> None:
    for arguments in ((), ("--json",)):
        said = command("logs", *arguments).stdout
        assert "\x1b" not in said
        assert "\x07" not in said
    assert "    Traceback" in command("logs").stdout
    assert json.loads(command("logs", "--json", "-n", "1").stdout)["error"] == "it\nbroke"


def test_without_a_log_the_command_says_so(home: Path) -> None:
    refused = command("logs")
    assert (refused.exit_code, "Roost writes it while it runs" in refused.stderr) == (1, True)


def test_what_is_added_just_before_a_rotation_is_read(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, real = [], logs._is_replaced

    def is_replaced(path: Path, file: IO[bytes]) -> bool:
        looks.append(path)
        if len(looks) == 1:
            return False
        if len(looks) == 2:
            with path.open("a") as old:
                old.write(entry("last of the old file"))
            path.rename(path.with_name("roost.log.1"))
            path.write_text(entry("first of the new file"))
        return real(path, file)

    monkeypatch.setattr(logs, "_is_replaced", is_replaced)
    with log.open("rb") as opened, closing(logs._following(log, opened)) as lines:
        opened.seek(0, os.SEEK_END)
        found = [json.loads(line)["message"] for line in islice(lines, 2)]
    assert found == ["last of the old file", "first of the new file"]


def test_a_followed_log_is_read_across_rotations(log: Path, home: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "logs", "--follow", "-n", "1"], cwd=home, env=environment(home), stdout=subprocess.PIPE
    ) as following:
        assert following.stdout is not None
        os.set_blocking(following.stdout.fileno(), False)
        seen = bytearray()

        def shows(text: bytes) -> bool:
            seen.extend(following.stdout.read() or b"") if following.stdout else None
            return text in seen

        try:
            eventually(lambda: shows(b"bad news"), 30)
            with log.open("a") as file:
                file.write(entry("before the end")[:20])
                file.flush()
                file.write(entry("before the end")[20:])
            eventually(lambda: shows(b"before the end"), 30)
            with log.open("a") as file:
                file.write(entry("last of the old file"))
            log.rename(log.with_name("roost.log.1"))
            log.write_text(entry("first of the new file"))
            eventually(lambda: shows(b"first of the new file"), 30)
            assert b"last of the old file" in seen
        finally:
            following.terminate()
