"""One process owns a database file, whatever name leads to it and whatever becomes of its lock file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import roost
from tests.conftest import ENVIRONMENT, QUICK, everything
from tests.forks import Popen

OWNER = """
import sys, roost
service = roost.open("sqlite:///" + sys.argv[1])
talk = service.create_talk_session("ann", profile="echo", busy="queue")
print(talk, flush=True)
for line in sys.stdin:
    service.add_message("ann", talk, line.strip())
    print("kept", flush=True)
"""


@contextmanager
def owned(path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that owns the file, and the id of the talk it writes to."""
    command = [sys.executable, "-c", OWNER, str(path)]
    with Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as child:
        try:
            yield child, _line(child)
        finally:
            child.kill()


def _line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def say(child: subprocess.Popen[str], text: str) -> None:
    assert child.stdin is not None
    child.stdin.write(f"{text}\n")
    child.stdin.flush()
    assert _line(child) == "kept"


def refused(path: Path, match: str) -> None:
    with pytest.raises(roost.Unavailable, match=match):
        roost.open(f"sqlite:///{path}", limits=QUICK)


def test_a_second_process_is_refused_when_the_lock_file_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "roost.db"
    with owned(path) as (child, talk):
        path.with_name("roost.db.lock").unlink()
        refused(path, "is in use by another process")
        say(child, "still mine")
        refused(path, "is in use by another process")
        child.send_signal(signal.SIGKILL)
        child.wait()
    with roost.open(f"sqlite:///{path}", limits=QUICK) as service:
        assert everything(service, "ann", talk)[0].content == "still mine"


def test_a_hard_link_is_refused_while_the_file_is_in_use(tmp_path: Path) -> None:
    path, link = tmp_path / "roost.db", tmp_path / "other" / "copy.db"
    link.parent.mkdir()
    with owned(path) as (child, _):
        os.link(path, link)
        refused(link, "is in use by another process")
        say(child, "still mine")
    assert sorted(p.name for p in link.parent.iterdir()) == ["copy.db"]


def test_a_hard_link_does_not_hide_what_a_killed_owner_left_in_the_journal(tmp_path: Path) -> None:
    path, link = tmp_path / "roost.db", tmp_path / "copy.db"
    with owned(path) as (child, talk):
        say(child, "acknowledged")
        child.send_signal(signal.SIGKILL)
        child.wait()
    os.link(path, link)
    for name in (link, path):
        refused(name, r"has 2 names \(hard links\).*keep the name it was written under")
    link.unlink()
    with roost.open(f"sqlite:///{path}", limits=QUICK) as service:
        assert everything(service, "ann", talk)[0].content == "acknowledged"


def test_a_symbolic_link_leads_to_the_same_owner(tmp_path: Path) -> None:
    path, link = tmp_path / "roost.db", tmp_path / "link.db"
    with owned(path) as (child, _):
        link.symlink_to(path)
        refused(link, f"is in use by process {child.pid}")


def test_two_services_of_one_program_cannot_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "roost.db"
    with roost.open(f"sqlite:///{path}", limits=QUICK) as service:
        path.with_name("roost.db.lock").unlink()
        refused(path, "is in use")
        talk = service.create_talk_session("ann", profile="echo")
    with roost.open(f"sqlite:///{path}", limits=QUICK) as service:
        assert service.get_session("ann", talk).talk_session_id == talk
