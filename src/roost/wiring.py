"""Builds a running Roost from a URL and settings; the only module that knows every adapter."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any

from roost import keys, redaction, telemetry
from roost.brains.profiles import ProfileRegistry
from roost.cluster.joining import Cluster
from roost.connections import added_profiles
from roost.core.cluster.nodes import LeaseTimes
from roost.core.limits.limits import Limits
from roost.core.meetings.games.registry import register_game
from roost.core.values.secrets import Redactor, passwords_in
from roost.core.webhooks.networks import LOOPBACK, NetworkPolicy
from roost.errors import Invalid, Unavailable
from roost.hosts.store_clock import StoreClock
from roost.hosts.threads import ThreadHost
from roost.outbound.poster import HttpPoster
from roost.ports import Brain, Host, Profile, Tool, ToolServer
from roost.runtime.roost import Roost
from roost.runtime.toolbox import Toolbox
from roost.stores.database import Database
from roost.stores.engine import Engine
from roost.stores.sqlite import Sqlite

if TYPE_CHECKING:
    from roost.connections.connections import Connections
    from roost.ports.servers import ServerConfig
    from roost.settings import Settings  # slow to import, and only needed with settings


def data_folder(named: str | Path | None = None) -> Path:
    """Return the data folder; create it if missing."""
    folder = _data_folder(named)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot create the data folder {str(folder)!r}: set ROOST_DATA to another one") from error
    return folder


def _data_folder(named: str | Path | None) -> Path:
    named = named or os.environ.get("ROOST_DATA")
    base = os.environ.get("XDG_DATA_HOME")
    return Path(named) if named else (Path(base) if base else Path.home() / ".local" / "share") / "roost"


def models_folder(data: str | Path | None = None) -> Path:
    """Return the folder of models, which a download creates."""
    return _data_folder(data) / "models"


def default_url(data: str | Path | None = None) -> str:
    return f"sqlite:///{data_folder(data) / 'roost.db'}"


def sqlite_path(url: str) -> Path | None:
    """Return the file that a URL names, or None if it names a server."""
    if not url.startswith("sqlite:"):
        return None
    if not url.startswith("sqlite:///") or url in ("sqlite:///", "sqlite:///:memory:"):
        raise Invalid(f"the URL {url!r} names no file: use sqlite:///relative.db or sqlite:////absolute.db")
    return Path(url.removeprefix("sqlite:///")).resolve()  # one name per file, also through symbolic links


def database(url: str, now: Callable[[], float], node: str = "", applied: Callable[[str], object] = bool) -> Database:
    """Open the database of a URL, alone or as a node of a cluster; `applied` is called with each migration."""
    path = sqlite_path(url)
    if path is not None:
        if node:
            raise Invalid("a cluster needs PostgreSQL: set `store` to postgresql://host/name on every node")
        return Sqlite(path, now, applied)
    if url.startswith(("postgresql://", "postgres://")):
        try:
            from roost.stores.postgres import Postgres  # an extra
        except ImportError as error:
            raise Unavailable("PostgreSQL needs an extra: pip install 'roost[postgres]'") from error
        return Postgres(url, node, applied)
    raise Invalid(
        f"unknown store URL scheme {url.partition(':')[0]!r:.20}: use sqlite:///file.db or postgresql://host/name"
    )


def open_roost(
    url: str,
    brains: ProfileRegistry,
    limits: Limits,
    host: Host | None = None,
    tools: Sequence[Tool] = (),
    servers: Sequence[ServerConfig] = (),
    *,
    hosting: bool = True,
    hidden: Iterable[str] = (),
    redactor: Redactor | None = None,
    webhook_networks: Iterable[str] = LOOPBACK,
    cluster: Cluster | None = None,
) -> Roost:
    """Open a store and start a Roost on it, alone or as a node of a cluster.

    `redactor` is the one of a log that is already set up for Roost.
    """
    host = host or ThreadHost(None if cluster is None else StoreClock())
    Toolbox(tools)  # raises for invalid tools before anything is opened
    node = "" if cluster is None else host.new_id("node")
    store = Engine(host, database(url, host.clock.now, node), queued=limits.queued_writes)
    end_redacting = None
    if redactor is None:
        redactor = Redactor(os.environ)
        end_redacting = redaction.redact(redactor)
    redactor.hide(*hidden, *passwords_in(url))
    membership = None if cluster is None else cluster.join(host, store, node, brains)
    store.database.is_member = membership is not None
    return Roost(
        host,
        store,
        brains,
        limits,
        telemetry.tracer(os.environ),
        tools=tools,
        redactor=redactor,
        servers=tool_servers(host, servers, redactor),
        poster=HttpPoster(NetworkPolicy.of(webhook_networks)),
        hosting=hosting,
        closed=end_redacting,
        membership=membership,
    )


def read_secrets(settings: Settings | None = None) -> None:
    """Read secrets from the folder of the settings, or from the data folder."""
    folders = [settings.folder if settings else Path()]
    with suppress(Unavailable):  # raised again when the folder is needed
        folders.append(data_folder(settings.data if settings else None))
    keys.read(folders)


def added_profiles_file(data: str | Path | None = None) -> Path:
    return _data_folder(data) / added_profiles.FILE


def connections(roost: Roost, settings: Settings) -> Connections:
    """Return the connections of a running Roost, which go into the files that it reads at its start."""
    from roost.connections.connections import Connections  # only for pages

    folder = data_folder(settings.data)
    secrets = keys.place([settings.folder, folder]) or folder / keys.FILE
    context = roost.context
    return Connections(context.brains, context.redactor, secrets=secrets, profiles=added_profiles_file(settings.data))


def tool_servers(host: Host, configs: Sequence[ServerConfig], redactor: Redactor) -> list[ToolServer]:
    if not configs:
        return []
    from roost.tools.mcp import McpServer  # an extra

    return [McpServer(host, config, redactor.clean) for config in configs]


def is_configured(config: str | Path | None) -> bool:
    """Return whether there are settings to read."""
    matters = ("ROOST_CONFIG", "ROOST_STORE", "ROOST_LIMITS__", "ROOST_PROFILES__", "ROOST_DEFAULT_PROFILE")
    return config is not None or Path("roost.toml").exists() or any(name.startswith(matters) for name in os.environ)


def profiles_of(settings: Settings) -> list[Profile]:
    """Return the profiles of the settings, and those that were added while Roost ran."""
    configured = settings.profile_list()
    named = {profile.name for profile in configured}
    added = added_profiles.read(added_profiles_file(settings.data))
    return [*configured, *(profile for profile in added if profile.name not in named)]


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
    redactor: Redactor | None = None,
) -> Roost:
    """Start a Roost by the settings; arguments override them."""
    read_secrets(settings)
    folder = str(settings.folder)
    if (settings.profiles or settings.tools or settings.games) and folder not in sys.path:
        sys.path.insert(0, folder)
    profiles = ProfileRegistry(
        brains,
        profiles_of(settings),
        default or settings.default_profile,
        reload=reload,
        models=models_folder(settings.data),
    )
    where = url or settings.store or default_url(settings.data)
    from roost.tools.modules import imported, imported_game

    named = [imported(name) for name in settings.tools]
    for name, place in settings.games.items():
        register_game(name, imported_game(place))
    return open_roost(
        where,
        profiles,
        limits or settings.limits,
        tools=[*tools, *named],
        servers=settings.servers(),
        hosting=hosting,
        hidden=settings.hidden(),
        redactor=redactor,
        webhook_networks=settings.allowed_networks,
        cluster=cluster_of(settings, where),
    )


def cluster_of(settings: Settings, url: str) -> Cluster | None:
    """Return how this process joins the cluster of its store; None if it has the store alone."""
    if (given := settings.cluster) is None:
        return None
    try:
        from roost.transports.nats import NatsServers, NatsTransport  # an extra
    except ImportError as error:
        raise Unavailable("a cluster needs an extra: pip install 'roost[nats]'") from error
    from roost.cluster.child_lease import ChildLease

    folder = settings.folder
    ca, cert, key, credentials = (
        file and folder / file for file in (given.ca, given.cert, given.key, given.credentials)
    )
    servers = NatsServers(given.nats, credentials, ca, cert, key)
    times = LeaseTimes(given.lease, given.lease / 3, given.lease / 6)
    return Cluster(
        lambda host, cluster: NatsTransport(host, servers, cluster),
        name=given.name or gethostname(),
        url=settings.url or "",
        times=times,
        lease=lambda node, times, clock: ChildLease(url, node, times, clock),
    )


def announce(roost: Roost, **facts: Any) -> None:
    """Record how to reach this process in the lock file, for processes that find the store in use."""
    announce = getattr(getattr(roost.context.store, "database", None), "announce", None)
    if announce is not None:
        announce(**facts)
