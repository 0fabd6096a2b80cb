"""`roost doctor`: what is wrong, and how to mend it."""

from __future__ import annotations

import difflib
import os
import shutil
import sqlite3
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from roost.brains.profiles import ADK, Shelf, is_absent
from roost.cli.checkups import Finding, data, store
from roost.cli.find import running, store_url
from roost.cli.ports import HOME, check_free, refuse_strangers
from roost.cli.talks import print_json
from roost.cli.text import line
from roost.client import connect
from roost.errors import BrainFailed, RoostError
from roost.hosts.threads import ThreadHost
from roost.ports import Profile
from roost.settings import OTHER_VARIABLES, PREFIX, Settings, config_path, load
from roost.wiring import models_folder, read_secrets, sqlite_path

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35)


def run(config: Path | None, options: dict[str, Any], *, as_json: bool) -> int:
    """Print all findings; 1 if there is a problem."""
    findings = list(look(config, options))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            _print(f"{finding.status:<8} {finding.what}: {line(finding.text)}", indent=9)
            if finding.fix:
                _print(f"{'':<8} → {line(finding.fix)}", indent=11)
    return 1 if any(finding.status == "problem" for finding in findings) else 0


def _print(text: str, *, indent: int) -> None:
    """In a terminal as wide as it is; through a pipe in one line, for whoever looks for something in it."""
    if sys.stdout.isatty():
        folds = textwrap.TextWrapper(max(40, shutil.get_terminal_size().columns), subsequent_indent=" " * indent)
        folds.break_long_words = folds.break_on_hyphens = False  # paths and commands can be copied
        text = folds.fill(text)
    print(text)


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
    shelf = None
    try:
        sys.path.insert(0, str(settings.folder))
        shelf = Shelf(None, settings.profile_list(), settings.default_profile, models=models_folder(settings.data))
    except RoostError as error:
        yield Finding("profiles", "problem", str(error), "name an existing one as default_profile")
    else:
        yield from _profiles(shelf)
    yield from data(settings)
    try:
        path = sqlite_path(store_url(settings))
    except RoostError as error:
        yield Finding("store", "problem", str(error), "correct `store` or `data` in the settings")
        return
    yield from store(settings, path, shelf)
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


def _named(profile: Profile) -> str:
    return f"{profile.name} ({profile.label})" if profile.label else profile.name


def _profiles(shelf: Shelf) -> Iterator[Finding]:
    shelf.open(ThreadHost())
    good = []
    for profile in shelf.names():
        try:
            shelf.check(profile)
            good.append(profile.name)
        except RoostError as error:
            key, named = ("agent", profile.agent or "") if profile.brain == ADK else ("brain", profile.brain)
            advice = error.advice if isinstance(error, BrainFailed) else None
            fix = advice or _mending(error, named.partition(":")[0], key)
            yield Finding("profiles", "problem", f"{profile.name}: {error}", fix)
    yield Finding("profiles", "ok", ", ".join(good))
    chosen = shelf.profile(shelf.default)
    yield Finding("default profile", "ok", f"{_named(chosen)}: {chosen.description}".removesuffix(": "))
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
