"""A reader in another program stays in its transaction: the journal is bounded, and an operator is alarmed."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import roost
from roost.cli.commands.server.health_checks import _file
from roost.settings import Settings
from roost.stores import wal
from tests.conftest import QUICK, everything

TEXT = "x" * 20_000


def test_a_pinned_journal_is_bounded_and_starts_over_when_its_reader_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, size in (("KEPT", 0), ("ALARM", 2**20), ("MOST", 4 * 2**20), ("EVERY", 4)):
        monkeypatch.setattr(wal, name, size)
    monkeypatch.setattr("roost.cli.commands.server.health_checks.ALARM", 2**20)
    path, acknowledged = tmp_path / "roost.db", 0
    journal = tmp_path / "roost.db-wal"
    with (
        roost.open(f"sqlite:///{path}", limits=QUICK) as service,
        closing(sqlite3.connect(path, isolation_level=None)) as reader,
    ):
        talk = service.create_talk_session("ann", profile="echo", busy="queue")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        with pytest.raises(roost.Unavailable, match="and cannot restart: stop the program"):
            for _ in range(1_000):
                service.add_message("ann", talk, TEXT)
                acknowledged += 1
        assert 2**20 < journal.stat().st_size < 8 * 2**20
        assert re.search(r"the store's journal has [1-4] MB and cannot restart", caplog.text)
        assert next(finding.what for finding in _file(Settings(), path, None)) == "journal"
        reader.execute("ROLLBACK")
        service.add_message("ann", talk, "after")
        assert journal.stat().st_size < 2**20
        assert "can restart again" in caplog.text
        service.stop("ann", talk, wait=5)
        said = [m.content for m in everything(service, "ann", talk) if m.sender == "user"]
    assert said == [*[TEXT] * acknowledged, "after"]


def test_short_readers_raise_no_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, size in (("KEPT", 0), ("ALARM", 2**20), ("MOST", 2**21), ("EVERY", 1)):
        monkeypatch.setattr(wal, name, size)
    with roost.open(f"sqlite:///{tmp_path / 'roost.db'}", limits=QUICK) as service:
        talk = service.create_talk_session("ann", profile="echo", busy="queue")
        for _ in range(400):  # four times what the journal may hold
            service.add_message("ann", talk, TEXT)
            service.list_sessions("ann")
        service.stop("ann", talk, wait=5)
    assert "cannot restart" not in caplog.text
