"""`roost doctor` says if a store has much space that it cannot give back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from roost.cli.commands.server import health_checks
from roost.cli.commands.server.health_checks import check_store
from roost.settings import load
from tests.servers import new_store


def findings(path: Path) -> dict[str, str]:
    settings = load(environ={"ROOST_DATA": str(path.parent)})
    return {one.what: f"{one.status}: {one.text}; {one.fix}" for one in check_store(settings, path, None)}


@pytest.mark.parametrize("mode", ["NONE", "INCREMENTAL"])
def test_space_that_an_older_store_cannot_give_back_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    path = tmp_path / "roost.db"
    new_store(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute(f"PRAGMA auto_vacuum = {mode}")
        db.execute("VACUUM")
        db.execute(
            "CREATE TABLE more AS WITH RECURSIVE n (i) AS (VALUES (1) UNION SELECT i + 1 FROM n WHERE i < 9000)"
            " SELECT i, randomblob(100) AS b FROM n"
        )
        db.execute("DROP TABLE more")
    assert "space" not in findings(path)
    monkeypatch.setattr(health_checks, "UNUSED", 500_000)
    found = findings(path)
    assert found["store"].startswith("ok")
    assert ("space" in found) == (mode == "NONE")
    if mode == "NONE":
        assert found["space"].startswith(f"warn: {path} has 1 MB that it cannot give back")
        assert "roost restore FILE --yes" in found["space"]
