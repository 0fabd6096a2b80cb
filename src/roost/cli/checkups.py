"""What `roost doctor` finds where things are kept: the data folder, the store, and what is left undone there."""

from __future__ import annotations

import json
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from roost.brains.profiles import Shelf
from roost.cli.find import store_url
from roost.errors import RoostError
from roost.ports import Row
from roost.settings import Settings
from roost.wiring import data_folder

MEGABYTE = 1024 * 1024
AGENTS = "SELECT agent_id, config FROM agents ORDER BY agent_id"
LETTERS = "SELECT count(*) FROM dead_letters"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, `ok`, `warn` or `problem`, what was found, how to mend it."""

    what: str
    status: str
    text: str
    fix: str = ""


def data(settings: Settings) -> Iterator[Finding]:
    try:
        folder = data_folder(settings.data)
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free // MEGABYTE
    except (RoostError, OSError) as error:
        text = str(error) if isinstance(error, RoostError) else f"cannot write: {error.strerror}"
        yield Finding("data folder", "problem", text, "make it writable, or set ROOST_DATA to another one")
        return
    if free < 1024:
        status = "problem" if free < 100 else "warn"
        yield Finding("data folder", status, f"{folder}: only {free} MB are free", "make room on that disk")
    else:
        yield Finding("data folder", "ok", f"{folder}: writable, {free:,} MB free")
    secret = folder / "secret"
    if secret.exists() and stat.S_IMODE(secret.stat().st_mode) & 0o077:
        yield Finding("secret", "warn", f"others may read {secret}", f"chmod 600 {secret}")


def store(settings: Settings, path: Path | None, shelf: Shelf | None) -> Iterator[Finding]:
    if path is None:
        yield from _server_store(settings, shelf)
    elif not path.exists():
        if path.parent.is_dir():
            yield Finding("store", "ok", f"{path} is made at the first start")
        else:
            yield Finding("store", "problem", f"the folder {path.parent} does not exist", "create it")
    else:
        yield from _file(path, shelf)


def _file(path: Path, shelf: Shelf | None) -> Iterator[Finding]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)) as database:
            answer = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            made = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'agents'").fetchone()
            agents, letters = [database.execute(sql).fetchall() if made else [] for sql in (AGENTS, LETTERS)]
    except sqlite3.Error as error:
        text, fix = f"{path} cannot be read: {error}", "restore it from a backup, or move it away"
        yield Finding("store", "problem", text, fix)
        return
    if answer != "ok":
        yield Finding("store", "problem", f"{path} is damaged: {answer}", "restore it from a backup")
        return
    yield Finding("store", "ok", f"{path} can be read")
    yield from _agents(agents, shelf)
    yield from _letters(letters)


def _agents(rows: Iterable[Row], shelf: Shelf | None) -> Iterator[Finding]:
    """Those that cannot think with these settings: their profiles are set up elsewhere, or not any more."""
    waiting: dict[str, list[str]] = {}
    for agent_id, config in rows if shelf is not None else ():
        waiting.setdefault(json.loads(config)["profile"], []).append(agent_id)  # also of a newer Roost
    for profile, agents in sorted(waiting.items()):
        if not profile or (shelf is not None and shelf.has(profile)):
            continue
        some = ", ".join(agents[:3]) + (f" and {len(agents) - 3:,} more" if len(agents) > 3 else "")
        yield Finding(
            "agents", "warn", f"{some}: the profile {profile!r} is not known with these settings, so what they have "
            "to do waits", f"add [profiles.{profile}] to roost.toml, start Roost where it is set up, or give them "
            f"another one: roost agents set {agents[0]} --profile NAME",
        )  # fmt: skip


def _letters(rows: Iterable[Row]) -> Iterator[Finding]:
    for (count,) in rows:
        if count:
            what = "1 dead letter" if count == 1 else f"{count:,} dead letters"
            fix = "roost dead-letters ls shows why; retry or drop them there"
            yield Finding("dead letters", "warn", f"{what}: what could not be handled", fix)


def _server_store(settings: Settings, shelf: Shelf | None) -> Iterator[Finding]:
    from roost.hosts.threads import RealClock
    from roost.wiring import database

    try:
        server = database(store_url(settings), RealClock().now)
        with closing(server.connect(read_only=True)) as connection:
            agents, letters = connection.read(AGENTS), connection.read(LETTERS)
        server.release()
        yield Finding("store", "ok", "the database answers")
        yield from _agents(agents, shelf)
        yield from _letters(letters)
    except Exception as error:  # each driver has its own errors
        text = str(error) if isinstance(error, RoostError) else f"cannot be reached ({type(error).__name__})"
        yield Finding("store", "problem", text, "start the database, or correct `store` in the settings")
