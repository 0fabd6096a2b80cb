"""`roost doctor`: what is wrong, and how to mend it."""

from __future__ import annotations

import difflib
import os
import shutil
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from roost.brains.profiles import ADK, Shelf, is_absent
from roost.cli.find import running, store_url
from roost.cli.ports import HOME, check_free, refuse_strangers
from roost.cli.talks import print_json
from roost.cli.text import line
from roost.client import connect
from roost.errors import BrainFailed, RoostError
from roost.hosts.threads import ThreadHost
from roost.settings import OTHER_VARIABLES, PREFIX, Settings, config_path, load
from roost.wiring import data_folder, models_folder, read_secrets, sqlite_path

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35)
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, `ok`, `warn` or `problem`, what was found, how to mend it."""

    what: str
    status: str
    text: str
    fix: str = ""


def run(config: Path | None, options: dict[str, Any], *, as_json: bool) -> int:
    """Print all findings; 1 if there is a problem."""
    findings = list(look(config, options))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(f"{finding.status:<8} {finding.what}: {line(finding.text)}")
            if finding.fix:
                print(f"{'':<8} → {line(finding.fix)}")
    return 1 if any(finding.status == "problem" for finding in findings) else 0


def look(config: Path | None, options: dict[str, Any]) -> Iterator[Finding]:
    yield _python()
    yield _sqlite()
    yield from _extras()
    yield from _variables()
    try:
        settings = load(config, **options)
        read_secrets(settings)
    except RoostError as error:
        for sentence in str(error).splitlines():
            yield Finding("settings", "problem", sentence, "correct it there, and look again")
        return
    file = config_path(config)
    yield Finding("settings", "ok", f"{file} is valid" if file else "no roost.toml; the defaults are used")
    yield from _profiles(settings)
    yield from _data(settings)
    try:
        path = sqlite_path(store_url(settings))
    except RoostError as error:
        yield Finding("store", "problem", str(error), "correct `store` or `data` in the settings")
        return
    yield from _store(settings, path)
    yield from _host(settings)
    yield from _server(settings)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return Finding("python", "problem", f"{version} is too old", "install Python 3.11 or newer")
    return Finding("python", "ok", version)


def _sqlite() -> Finding:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        return Finding("sqlite", "problem", f"{sqlite3.sqlite_version} is too old", "use a Python with SQLite 3.35")
    return Finding("sqlite", "ok", sqlite3.sqlite_version)


def _extras() -> Iterator[Finding]:
    missing = [name for name in ("streamlit", "fastapi", "uvicorn", "sse_starlette") if find_spec(name) is None]
    if missing:
        yield Finding("pages", "warn", f"not installed: {', '.join(missing)}", "pip install 'roost[ui]'")
    else:
        yield Finding("pages", "ok", "installed")
    if find_spec("psycopg") is None:
        yield Finding("postgresql", "ok", "not installed; only needed for stores on PostgreSQL")
    else:
        yield Finding("postgresql", "ok", "installed")


def _variables() -> Iterator[Finding]:
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    for name in sorted(os.environ):
        if not name.startswith(PREFIX) or name in OTHER_VARIABLES or name.partition("__")[0] in known:
            continue
        near = difflib.get_close_matches(name, known, 1)
        yield Finding(
            "settings", "warn", f"the variable {name} is not known", f"did you mean {near[0]}?" if near else ""
        )


def _profiles(settings: Settings) -> Iterator[Finding]:
    sys.path.insert(0, str(settings.folder))
    try:
        shelf = Shelf(None, settings.profile_list(), settings.default_profile, models=models_folder(settings.data))
    except RoostError as error:
        yield Finding("profiles", "problem", str(error), "name an existing one as default_profile")
        return
    shelf.open(ThreadHost())
    good = []
    for profile in shelf.names():
        try:
            shelf.loaded(profile) or shelf.load(profile)
            good.append(profile.name)
        except RoostError as error:
            key, named = ("agent", profile.agent or "") if profile.brain == ADK else ("brain", profile.brain)
            advice = error.advice if isinstance(error, BrainFailed) else None
            fix = advice or _mending(error, named.partition(":")[0], key)
            yield Finding("profiles", "problem", f"{profile.name}: {error}", fix)
    yield Finding("profiles", "ok", ", ".join(good))
    chosen = shelf.profile(shelf.default)
    yield Finding("default profile", "ok", f"{chosen.name}: {chosen.description}".removesuffix(": "))
    if shelf.without_model is None:
        yield Finding("model", "ok", "there is one on this machine")
    else:
        yield Finding("model", "ok", f"none on this machine: {shelf.without_model}")


def _mending(error: RoostError, module: str, key: str) -> str:
    if is_absent(error.__cause__, module):
        return f"put the module there, install it, set PYTHONPATH, or correct `{key}` in the settings"
    if error.__cause__ is not None:
        return "mend it there, and look again"
    return f"correct `{key}` in the settings, or what it names"


def _data(settings: Settings) -> Iterator[Finding]:
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


def _store(settings: Settings, path: Path | None) -> Iterator[Finding]:
    if path is None:
        yield from _server_store(settings)
    elif not path.exists():
        if path.parent.is_dir():
            yield Finding("store", "ok", f"{path} is made at the first start")
        else:
            yield Finding("store", "problem", f"the folder {path.parent} does not exist", "create it")
    else:
        yield _file(path)


def _file(path: Path) -> Finding:
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)
        try:
            answer = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            database.close()
    except sqlite3.Error as error:
        return Finding(
            "store", "problem", f"{path} cannot be read: {error}", "restore it from a backup, or move it away"
        )
    if answer != "ok":
        return Finding("store", "problem", f"{path} is damaged: {answer}", "restore it from a backup")
    return Finding("store", "ok", f"{path} can be read")


def _server_store(settings: Settings) -> Iterator[Finding]:
    from roost.hosts.threads import RealClock
    from roost.wiring import database

    try:
        server = database(store_url(settings), RealClock().now)
        server.connect(read_only=True).close()
        server.release()
        yield Finding("store", "ok", "the database answers")
    except Exception as error:  # each driver has its own errors
        text = str(error) if isinstance(error, RoostError) else f"cannot be reached ({type(error).__name__})"
        yield Finding("store", "problem", text, "start the database, or correct `store` in the settings")


def _host(settings: Settings) -> Iterator[Finding]:
    try:
        refuse_strangers(settings)
    except RoostError as error:
        yield Finding("host", "problem", str(error), f'set host = "{HOME}" in the settings, or leave it out')


def _server(settings: Settings) -> Iterator[Finding]:
    found = running(settings)
    if found is None:
        yield Finding("server", "ok", "not running; `roost up` starts it")
        if settings.is_loopback:
            yield _port(settings)
        return
    with connect(found.url, found.token) as service:
        try:
            health = service.health()
        except RoostError:
            fix = f"if process {found.pid} is gone, start it again with `roost up`; else stop it first"
            yield Finding("server", "warn", f"{found.url} does not answer", fix)
            return
    if health.problem or health.workers < health.expected:
        text = health.problem or f"{health.workers} of {health.expected} workers are up"
        yield Finding(
            "server", "problem", f"{found.url}: {text}", "look into roost.log, then stop it and start it again"
        )
    else:
        yield Finding("server", "ok", f"{found.url}, {health.workers} workers up, {health.restarts} restarts")


def _port(settings: Settings) -> Finding:
    try:
        check_free(settings.host, settings.port)
    except RoostError as error:
        return Finding("port", "problem", str(error), f"roost up --port {settings.port + 1}")
    return Finding("port", "ok", f"{settings.port} is free")
