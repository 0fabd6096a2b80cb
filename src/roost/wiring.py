"""From a URL and settings to a running Roost; alone knows every adapter."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roost import keys, telemetry
from roost.brains.profiles import Shelf
from roost.core.limits import Limits
from roost.core.secrets import Redactor
from roost.errors import Invalid, Unavailable
from roost.hosts.threads import ThreadHost
from roost.ports import Brain, Brains, Host, Statements, Tool, ToolServer
from roost.runtime.roost import Roost
from roost.runtime.tools import Toolbox
from roost.stores.engine import Database, Engine
from roost.stores.sqlite import Sqlite
from roost.stores.statements import (
    agents,
    approvals,
    diary,
    events,
    inbox,
    letters,
    mail,
    meetings,
    memories,
    messages,
    retention,
    runbook,
    runs,
    steps,
    talks,
    tasks,
    timers,
    watching,
)

if TYPE_CHECKING:
    from roost.ports.servers import ServerConfig
    from roost.settings import Settings  # costs its time only where something is set

STATEMENTS = Statements(
    talks=talks, messages=messages, runs=runs, agents=agents, inbox=inbox, tasks=tasks, timers=timers, mail=mail,
    events=events, letters=letters, memories=memories, diary=diary, watching=watching, retention=retention,
    steps=steps, approvals=approvals, runbook=runbook, meetings=meetings,
)  # fmt: skip


def data_folder(named: str | Path | None = None) -> Path:
    """Where things are kept when nothing else is said; made when needed."""
    folder = _data_folder(named)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"the data folder {str(folder)!r} cannot be made: set ROOST_DATA to another one") from error
    return folder


def _data_folder(named: str | Path | None) -> Path:
    named = named or os.environ.get("ROOST_DATA")
    base = os.environ.get("XDG_DATA_HOME")
    return Path(named) if named else (Path(base) if base else Path.home() / ".local" / "share") / "roost"


def models_folder(data: str | Path | None = None) -> Path:
    """Where models are kept; made by who puts one there."""
    return _data_folder(data) / "models"


def default_url(data: str | Path | None = None) -> str:
    return f"sqlite:///{data_folder(data) / 'roost.db'}"


def sqlite_path(url: str) -> Path | None:
    """The file a URL names, or None if it names a server."""
    if not url.startswith("sqlite:"):
        return None
    if not url.startswith("sqlite:///") or url in ("sqlite:///", "sqlite:///:memory:"):
        raise Invalid(f"the URL {url!r} names no file: use sqlite:///relative.db or sqlite:////absolute.db")
    return Path(url.removeprefix("sqlite:///")).resolve()  # one name for one file, whatever leads to it


def database(url: str, now: Callable[[], float]) -> Database:
    path = sqlite_path(url)
    if path is not None:
        return Sqlite(path, now)
    if url.startswith(("postgresql://", "postgres://")):
        try:
            from roost.stores.postgres import Postgres  # an extra
        except ImportError as error:
            raise Unavailable("PostgreSQL needs the extra: pip install 'roost[postgres]'") from error
        return Postgres(url)
    raise Invalid(
        f"URLs that begin with {url.partition(':')[0]!r:.20} are not known: use sqlite:///file.db or postgresql://host/name"
    )


def open_roost(
    url: str, brains: Brains, limits: Limits, host: Host | None = None, tools: Sequence[Tool] = (),
    servers: Sequence[ServerConfig] = (), *, hosting: bool = True, hidden: Iterable[str] = (),
) -> Roost:  # fmt: skip
    host = host or ThreadHost()
    Toolbox(tools)  # what is wrong with them is told before anything is opened
    store = Engine(host, database(url, host.clock.now), queued=limits.queued_writes)
    return Roost(
        host, store, STATEMENTS, brains, limits, telemetry.tracer(os.environ), tools=tools,
        redactor=Redactor(os.environ, hidden), servers=_servers(host, servers), hosting=hosting,
    )  # fmt: skip


def read_secrets(settings: Settings | None = None) -> None:
    """From where they are kept: beside the settings, or in the data folder."""
    folders = [settings.folder if settings else Path()]
    with suppress(Unavailable):  # told when it is needed
        folders.append(data_folder(settings.data if settings else None))
    keys.read(folders)


def _servers(host: Host, configs: Sequence[ServerConfig]) -> list[ToolServer]:
    if not configs:
        return []
    from roost.tools.mcp import McpServer  # an extra

    return [McpServer(host, config) for config in configs]


def is_configured(config: str | Path | None) -> bool:
    """Whether there are settings to be read."""
    matters = ("ROOST_CONFIG", "ROOST_STORE", "ROOST_LIMITS__", "ROOST_PROFILES__", "ROOST_DEFAULT_PROFILE")
    return config is not None or Path("roost.toml").exists() or any(name.startswith(matters) for name in os.environ)


def from_settings(
    settings: Settings,
    *,
    url: str | None = None,
    brains: Mapping[str, Brain] | None = None,
    default: str | None = None,
    limits: Limits | None = None,
    reload: bool = False,
    tools: Sequence[Tool] = (),
    hosting: bool = True,
) -> Roost:
    """A running Roost as it was set up; what is given here goes before the settings."""
    read_secrets(settings)
    folder = str(settings.folder)
    if (settings.profiles or settings.tools) and folder not in sys.path:
        sys.path.insert(0, folder)
    shelf = Shelf(
        brains, settings.profile_list(), default or settings.default_profile, reload=reload,
        models=models_folder(settings.data),
    )  # fmt: skip
    where = url or settings.store or default_url(settings.data)
    from roost.tools.modules import imported

    named = [imported(name) for name in settings.tools]
    return open_roost(
        where, shelf, limits or settings.limits, tools=[*tools, *named], servers=settings.servers(), hosting=hosting,
        hidden=settings.hidden(),
    )  # fmt: skip


def announce(roost: Roost, **facts: Any) -> None:
    """Tell those who find the store in use how to reach this process, where there is a place for it."""
    tell = getattr(getattr(roost.shop.store, "database", None), "announce", None)
    if tell is not None:
        tell(**facts)
