"""Artifacts: files that brains save, in immutable versions. They are deleted with their talk or agent."""

from __future__ import annotations

from roost.core.brain_data.artifacts import Artifact
from roost.ports import Tx

_COLUMNS = "name, version, content, about, created"
_PLACE = "owner = :owner AND lane = :lane"


def save(tx: Tx, artifact_id: str, owner: str, lane: str, name: str, content: str, about: str, now: float) -> int:
    """Add a version and return its number, from 0; repeated, it returns the same version."""
    ids = {
        "id": artifact_id,
        "owner": owner,
        "lane": lane,
        "name": name,
        "content": content,
        "about": about,
        "now": now,
    }
    tx.write(
        "INSERT INTO artifacts (artifact_id, owner, lane, name, version, content, about, created)"
        " SELECT :id, :owner, :lane, :name, COALESCE(MAX(version) + 1, 0), :content, :about, :now FROM artifacts"
        f" WHERE {_PLACE} AND name = :name ON CONFLICT (artifact_id) DO NOTHING",
        ids,
    )
    row = tx.one("SELECT version FROM artifacts WHERE artifact_id = :id", ids)
    assert row is not None
    return int(row[0])


def load(tx: Tx, owner: str, lane: str, name: str, version: int | None) -> Artifact | None:
    """Return a version, or the newest one."""
    wanted = "" if version is None else " AND version = :version"
    row = tx.one(
        f"SELECT {_COLUMNS} FROM artifacts WHERE {_PLACE} AND name = :name{wanted} ORDER BY version DESC LIMIT 1",
        {"owner": owner, "lane": lane, "name": name, "version": version or 0},
    )
    return None if row is None else Artifact(*row)


def names(tx: Tx, owner: str, lane: str) -> list[str]:
    rows = tx.read(f"SELECT DISTINCT name FROM artifacts WHERE {_PLACE} ORDER BY name", {"owner": owner, "lane": lane})
    return [row[0] for row in rows]


def versions(tx: Tx, owner: str, lane: str, name: str) -> list[Artifact]:
    """Return all versions, the oldest first, without their contents."""
    rows = tx.read(
        f"SELECT name, version, '', about, created FROM artifacts WHERE {_PLACE} AND name = :name ORDER BY version",
        {"owner": owner, "lane": lane, "name": name},
    )
    return [Artifact(*row) for row in rows]


def remove(tx: Tx, owner: str, lane: str, name: str) -> None:
    """Remove all versions."""
    ids = {"owner": owner, "lane": lane, "name": name}
    tx.write(f"DELETE FROM artifacts WHERE {_PLACE} AND name = :name", ids)
