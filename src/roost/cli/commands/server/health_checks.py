"""Checks of `roost doctor`: data folder, MCP servers, store, agents and dead letters."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from roost.brains.profiles import ProfileRegistry
from roost.cli.app.connect import store_url
from roost.cli.commands.server.ports import require_sign_in
from roost.core.values.secrets import Redactor
from roost.errors import InUse, RoostError
from roost.hosts.pending import drive
from roost.hosts.threads import ThreadHost
from roost.ports import Row
from roost.ports.servers import ServerConfig
from roost.settings import Settings
from roost.stores import space
from roost.stores.wal import ALARM
from roost.wiring import data_folder, tool_servers

MEGABYTE = 1024 * 1024
UNUSED = 64 * MEGABYTE
"""Free bytes in a store that are worth a rebuild."""
AGENTS = "SELECT agent_id, config FROM agents ORDER BY agent_id"
LETTERS = "SELECT count(*) FROM dead_letters"
ACCOUNTS = "SELECT count(*) FROM accounts"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check: its name, `ok`, `warn` or `problem`, a description and a fix."""

    what: str
    status: str
    text: str
    fix: str = ""


def check_data_folder(settings: Settings) -> Iterator[Finding]:
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
        yield Finding("data folder", status, f"{folder}: only {free} MB free", "free space on that disk")
    else:
        yield Finding("data folder", "ok", f"{folder}: writable, {free:,} MB free")
    secret = folder / "secret"
    if secret.exists() and stat.S_IMODE(secret.stat().st_mode) & 0o077:
        yield Finding("secret", "warn", f"other users can read {secret}", f"chmod 600 {secret}")


def check_mcp_servers(settings: Settings) -> Iterator[Finding]:
    """Connect each MCP server and list its tools, as a turn would."""
    configs = settings.servers()
    if configs and find_spec("mcp") is None:
        yield Finding("mcp", "problem", "MCP servers need an extra", "pip install 'roost[llm]'")
        return
    redactor = Redactor(os.environ, settings.hidden())
    for config in configs:
        yield _mcp(config, redactor)


def _mcp(config: ServerConfig, redactor: Redactor) -> Finding:
    what, absent = f"mcp {config.name}", [name for name in config.environment if name not in os.environ]
    [server] = tool_servers(ThreadHost(), [config], redactor)
    try:
        tools = drive(server.tools())
    except RoostError as error:
        fix = f"correct [mcp.{config.name}] in roost.toml, or start what it names"
        return Finding(what, "problem", str(error), f"set {', '.join(absent)}; or {fix}" if absent else fix)
    finally:
        server.close()
    names = ", ".join(tool.name.removeprefix(f"{config.name}.") for tool in tools)
    if absent:
        return Finding(what, "warn", f"answers; not set: {', '.join(absent)}", "set those that the server needs")
    return Finding(what, "ok", f"answers, with {len(tools)} tools: {names:.200}" if tools else "answers, with no tools")


def check_store(settings: Settings, path: Path | None, registry: ProfileRegistry | None) -> Iterator[Finding]:
    if path is None:
        yield from _server_store(settings, registry)
    elif not path.exists():
        if path.parent.is_dir():
            yield Finding("store", "ok", f"{path} is created at the first start")
            yield _sign_in(settings, 0)
        else:
            yield Finding("store", "problem", f"the folder {path.parent} does not exist", "create it")
    else:
        yield from _file(settings, path, registry)


def _file(settings: Settings, path: Path, registry: ProfileRegistry | None) -> Iterator[Finding]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)) as database:
            answer = database.execute("PRAGMA quick_check(1)").fetchone()[0]
            made = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'agents'").fetchone()
            agents, letters = [database.execute(sql).fetchall() if made else [] for sql in (AGENTS, LETTERS)]
            has_table = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'accounts'").fetchone()
            unused = 0 if space.can_shrink(database) else space.free(database)
            [(accounts,)] = database.execute(ACCOUNTS).fetchall() if has_table else [(0,)]
        journal = path.with_name(f"{path.name}-wal")
        if journal.exists() and (size := journal.stat().st_size) >= ALARM:
            text = f"{journal} has {size // 10**6:,} MB: a reader prevents a checkpoint"
            yield Finding("journal", "problem", text, "stop the program that keeps a read transaction open")
    except sqlite3.Error as error:
        text, fix = f"{path} cannot be read: {error}", "restore it from a backup, or move it"
        yield Finding("store", "problem", text, fix)
        return
    if answer != "ok":
        yield Finding("store", "problem", f"{path} is damaged: {answer}", "restore it from a backup")
        return
    yield Finding("store", "ok", f"{path} can be read")
    if unused >= UNUSED:
        text = f"{path} has {unused // 10**6:,} MB that it cannot give back: an older Roost has created it"
        yield Finding("space", "warn", text, "stop Roost, run `roost backup FILE`, then `roost restore FILE --yes`")
    yield _sign_in(settings, accounts)
    yield from _agents(agents, registry)
    yield from _letters(letters)


def _sign_in(settings: Settings, accounts: int) -> Finding:
    """Report who has to sign in, and how."""
    try:
        require_sign_in(settings, has_accounts=accounts > 0)
        settings.client_secret()
    except RoostError as error:
        return Finding("sign-in", "problem", str(error), "`roost users add NAME --admin` adds an account")
    ways = [f"{accounts:,} accounts" if accounts != 1 else "1 account"] if accounts else []
    ways += [f"provider {settings.oidc.shown}"] if settings.oidc else []
    ways += [f"header {settings.proxy_user_header} of a proxy"] if settings.proxy_user_header else []
    if not ways:
        return Finding("sign-in", "ok", "not required: there are no accounts, and only this machine is served")
    return Finding("sign-in", "ok", f"required: {', '.join(ways)}")


def _agents(rows: Iterable[Row], registry: ProfileRegistry | None) -> Iterator[Finding]:
    """Report agents whose profile is not in these settings."""
    waiting: dict[str, list[str]] = {}
    for agent_id, config in rows if registry is not None else ():
        waiting.setdefault(json.loads(config)["profile"], []).append(agent_id)  # also if written by a newer version
    for profile, agents in sorted(waiting.items()):
        if not profile or (registry is not None and registry.has(profile)):
            continue
        some = ", ".join(agents[:3]) + (f" and {len(agents) - 3:,} more" if len(agents) > 3 else "")
        yield Finding(
            "agents",
            "warn",
            f"{some}: the profile {profile!r} is not in these settings, so their work waits",
            f"add [profiles.{profile}] to roost.toml, start Roost where it is configured, or give them "
            f"another one: roost agents set {agents[0]} --profile NAME",
        )


def _letters(rows: Iterable[Row]) -> Iterator[Finding]:
    for (count,) in rows:
        if count:
            what = "1 dead letter" if count == 1 else f"{count:,} dead letters"
            fix = "`roost dead-letters ls` shows the reasons; retry or drop them"
            yield Finding("dead letters", "warn", f"{what}: work that could not be handled", fix)


def _server_store(settings: Settings, registry: ProfileRegistry | None) -> Iterator[Finding]:
    from roost.hosts.threads import RealClock
    from roost.stores.postgres_connection import PostgresConnection
    from roost.wiring import database

    url = store_url(settings)
    try:
        with suppress(InUse):  # by the running server
            database(url, RealClock().now).release()
        with closing(PostgresConnection(url, read_only=True)) as connection:
            agents, letters = connection.read(AGENTS), connection.read(LETTERS)
            [(accounts,)] = connection.read(ACCOUNTS)
        yield Finding("store", "ok", "the database answers")
        yield _sign_in(settings, accounts)
        yield from _agents(agents, registry)
        yield from _letters(letters)
    except Exception as error:  # each driver has its own errors
        text = str(error) if isinstance(error, RoostError) else f"cannot be reached ({type(error).__name__})"
        yield Finding("store", "problem", text, "start the database, or correct `store` in the settings")
