"""`roost doctor`: diagnose problems and suggest fixes."""

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

from roost.api.tls import Certificate
from roost.brains.profiles import ADK, ProfileRegistry, is_absent
from roost.cli.app.connect import announced_server, current_user, store_url
from roost.cli.app.options import load_settings
from roost.cli.commands.server.health_checks import Finding, check_data_folder, check_mcp_servers, check_store
from roost.cli.commands.server.ports import LOOPBACK, check_port_free, require_encryption
from roost.cli.render.output import print_json
from roost.cli.render.text import single_line
from roost.core.values.secrets import Redactor
from roost.errors import BrainFailed, RoostError
from roost.hosts.threads import ThreadHost
from roost.ports import Profile
from roost.settings import OTHER_VARIABLES, PREFIX, Settings, config_path
from roost.wiring import models_folder, profiles_of, read_secrets, sqlite_path

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35)


def run(config: Path | None, options: dict[str, Any], *, as_json: bool) -> int:
    """Print all findings; return 1 if there is a problem."""
    findings = list(run_checks(config, options))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            _print(f"{finding.status:<8} {finding.what}: {single_line(finding.text)}", indent=9)
            if finding.fix:
                _print(f"{'':<8} → {single_line(finding.fix)}", indent=11)
    return 1 if any(finding.status == "problem" for finding in findings) else 0


def _print(text: str, *, indent: int) -> None:
    """Print a text wrapped to the terminal, or in one line in a pipe, where it can be searched."""
    if sys.stdout.isatty():
        folds = textwrap.TextWrapper(max(40, shutil.get_terminal_size().columns), subsequent_indent=" " * indent)
        folds.break_long_words = folds.break_on_hyphens = False  # so that paths and commands can be copied
        text = folds.fill(text)
    print(text)


def run_checks(config: Path | None, options: dict[str, Any]) -> Iterator[Finding]:
    yield _python()
    yield _sqlite()
    yield from _extras()
    yield from _variables()
    try:
        settings = load_settings(config, **options)
        read_secrets(settings)
    except RoostError as error:
        for sentence in str(error).splitlines():
            yield Finding("settings", "problem", sentence, "correct it, then run `roost doctor` again")
        return
    file = config_path(config)
    yield Finding("settings", "ok", f"{file} is valid" if file else "no roost.toml; using defaults")
    if settings.server:
        yield from _chosen_server(settings, settings.server)
        return
    registry = None
    try:
        sys.path.insert(0, str(settings.folder))
        registry = ProfileRegistry(
            None, profiles_of(settings), settings.default_profile, models=models_folder(settings.data)
        )
    except RoostError as error:
        yield Finding("profiles", "problem", str(error), "name an existing one as default_profile")
    else:
        yield from _profiles(registry)
    yield from check_mcp_servers(settings)
    yield from check_data_folder(settings)
    try:
        path = sqlite_path(store_url(settings))
    except RoostError as error:
        yield Finding("store", "problem", str(error), "correct `store` or `data` in the settings")
        return
    yield from check_store(settings, path, registry)
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
    missing = [name for name in ("streamlit", "fastapi", "uvicorn", "websockets") if find_spec(name) is None]
    if missing:
        yield Finding("pages", "warn", f"not installed: {', '.join(missing)}", "pip install 'roost[ui]'")
    else:
        yield Finding("pages", "ok", "installed")
    if find_spec("psycopg") is None:
        yield Finding("postgresql", "ok", "not installed; needed only for PostgreSQL stores")
    else:
        yield Finding("postgresql", "ok", "installed")


def _variables() -> Iterator[Finding]:
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    for name in sorted(os.environ):
        if not name.startswith(PREFIX) or name in OTHER_VARIABLES or name.partition("__")[0] in known:
            continue
        near = difflib.get_close_matches(name, known, 1)
        yield Finding("settings", "warn", f"unknown variable {name}", f"did you mean {near[0]}?" if near else "")


def _named(profile: Profile) -> str:
    return f"{profile.name} ({profile.label})" if profile.label else profile.name


def _profiles(registry: ProfileRegistry) -> Iterator[Finding]:
    redactor = Redactor()
    registry.open(ThreadHost(), redactor)
    good = []
    for profile in registry.names():
        try:
            registry.check(profile)
            good.append(profile.name)
        except RoostError as error:
            key, named = ("agent", profile.agent or "") if profile.brain == ADK else ("brain", profile.brain)
            advice = error.advice if isinstance(error, BrainFailed) else None
            fix = advice or _mending(error, named.partition(":")[0], key)
            text = redactor.clean(f"{profile.name}: {error}")  # a module may raise any text when it is imported
            yield Finding("profiles", "problem", text, fix)
    yield Finding("profiles", "ok", ", ".join(good))
    chosen = registry.profile(registry.default)
    yield Finding("default profile", "ok", f"{_named(chosen)}: {chosen.description}".removesuffix(": "))
    if registry.without_model is None:
        yield Finding("model", "ok", "a local model is installed")
    else:
        yield Finding("model", "ok", f"no local model: {registry.without_model}")


def _mending(error: RoostError, module: str, key: str) -> str:
    if is_absent(error.__cause__, module):
        return f"add the module, install it, set PYTHONPATH, or correct `{key}` in the settings"
    if error.__cause__ is not None:
        return "fix it there, then run `roost doctor` again"
    return f"correct `{key}` in the settings, or what it names"


def _host(settings: Settings) -> Iterator[Finding]:
    try:
        require_encryption(settings)
        if settings.tls_files:
            Certificate(*settings.tls_files)
            yield Finding("tls", "ok", f"{settings.tls_files[0]} is valid")
    except RoostError as error:
        yield Finding("host", "problem", str(error), f'correct it, or set host = "{LOOPBACK}" in the settings')


def _chosen_server(settings: Settings, url: str) -> Iterator[Finding]:
    """Check the server that `--server` names, instead of the store of this machine."""
    try:
        user = current_user(settings)
    except RoostError as error:
        yield Finding("sign-in", "problem", str(error), f"check the URL, then run `roost login {url}`")
        return
    yield Finding("sign-in", "ok", f"{user} at {url}")
    yield from _server(settings)


def _server(settings: Settings) -> Iterator[Finding]:
    found = announced_server(settings)
    if found is None:
        yield Finding("server", "ok", "not running; `roost up` starts it")
        if settings.is_loopback:
            yield _port(settings)
        return
    with found.connect(patience=1) as service:
        try:
            health = service.health()
        except RoostError:
            fix = f"if process {found.pid} has ended, start `roost up` again; else stop it first"
            yield Finding("server", "warn", f"{found.url} does not answer", fix)
            return
    if health.problem or health.workers < health.expected:
        text = health.problem or f"{health.workers} of {health.expected} workers are running"
        yield Finding("server", "problem", f"{found.url}: {text}", "read roost.log, then restart it")
    else:
        yield Finding("server", "ok", f"{found.url}, {health.workers} workers running, {health.restarts} restarts")
    if health.abandoned:
        text = f"{health.abandoned} threads were abandoned because they are blocked, and have not returned"
        yield Finding("threads", "warn", text, "search roost.log for the cause, and restart Roost to free them")


def _port(settings: Settings) -> Finding:
    try:
        check_port_free(settings.host, settings.port)
    except RoostError as error:
        return Finding("port", "problem", str(error), f"roost up --port {settings.port + 1}")
    return Finding("port", "ok", f"{settings.port} is free")
