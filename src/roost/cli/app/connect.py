"""Connecting to the service: to the running server, or else to a service of this process on the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

from roost.errors import Forbidden, InUse, RoostError, Unavailable

if TYPE_CHECKING:
    from roost.client import AsyncRemoteService, RemoteService
    from roost.service import AgentService
    from roost.settings import Settings

    Service = AgentService | RemoteService
else:
    Service = Any  # commands import this module for their help and for completion, which must be quick

T = TypeVar("T")
U = TypeVar("U")
PATIENCE = 5.0
"""Seconds to wait for another command that holds the store."""
PAUSE = 0.05
AWAY = 1.5
"""Seconds for which the announced server may be away; one that restarts has another token."""


@dataclass(frozen=True, slots=True)
class Running:
    """Address of a running server: announced in the lock file or in the database, or chosen with `--server`."""

    url: str
    token: str
    pid: int = 0
    """Process on this machine; 0 if it runs elsewhere."""
    ca_file: Path | None = None
    certificate: str | None = None
    """Certificate that a server on this machine has announced: it is trusted, whatever names it has."""

    def connect(self, patience: float | None = None) -> RemoteService:
        from roost.client import RemoteService

        return RemoteService(
            self.url, self.token, ca_file=self.ca_file, certificate=self.certificate, patience=patience
        )

    def aconnect(self, patience: float | None = None) -> AsyncRemoteService:
        from roost.client import AsyncRemoteService

        return AsyncRemoteService(
            self.url, self.token, ca_file=self.ca_file, certificate=self.certificate, patience=patience
        )


def store_url(settings: Settings) -> str:
    from roost.wiring import default_url

    return settings.store or default_url(settings.data)


def announced_server(settings: Settings) -> Running | None:
    """Return the chosen server, or the one that announced itself for this store; it may have ended since."""
    from roost.cli.app.logins import token_of
    from roost.stores.sqlite import owner
    from roost.wiring import sqlite_path

    if settings.server:
        return Running(settings.server, token_of(settings), ca_file=settings.ca_file)
    path = sqlite_path(store_url(settings))
    facts = owner(path.with_name(path.name + ".lock")) if path else _announced(settings)
    try:
        shown = facts.get("certificate")
        return Running(str(facts["url"]), str(facts["token"]), int(facts["pid"]), certificate=shown and str(shown))
    except (KeyError, ValueError, TypeError):
        return None


def _announced(settings: Settings) -> dict[str, Any]:
    """Read the announcement in the database. The token is derived from the secret that both processes share."""
    from roost.api.auth import kept_secret, local_token
    from roost.stores.postgres import owner as owner_of_server
    from roost.wiring import data_folder

    facts = owner_of_server(store_url(settings))
    if facts.get("host") != gethostname() or not isinstance(facts.get("nonce"), str):
        return {}
    secret = settings.secret.get_secret_value().encode() if settings.secret else None
    return {**facts, "token": local_token(secret or kept_secret(data_folder(settings.data)), facts["nonce"])}


def connect_running(settings: Settings) -> RemoteService | None:
    """Return a client of the running server, or None if there is none or it does not answer.

    A server that was chosen is not checked here: its errors are those of the command.
    """
    found = announced_server(settings)
    if found is None:
        return None
    service = found.connect(AWAY)
    try:
        if not settings.server:
            service.health()
    except RoostError:
        return None
    return service


def already_running(settings: Settings) -> Unavailable | None:
    """Return the error for starting a second server on this store; None if none is running."""
    service = connect_running(settings)
    if service is None:
        return None
    with service:
        return Unavailable(
            f"Roost is already running on this store at {with_localhost(service.url)}. `roost link` prints a sign-in "
            "link. Stop it before you start it again, or use another store with --store"
        )


def check_free_store(settings: Settings) -> None:
    """Raise Unavailable, naming the holder, if a process holds the file of the store."""
    from roost.stores.sqlite import LockFile
    from roost.wiring import sqlite_path

    path = sqlite_path(store_url(settings))
    try:
        if path is not None and path.parent.is_dir():
            LockFile(path).release()
    except Unavailable as error:
        raise already_running(settings) or error from error


def with_localhost(url: str) -> str:
    """Use the host name of the pages: browsers keep cookies per name."""
    return url.replace("//127.0.0.1:", "//localhost:")


def public_url(settings: Settings, service: Service) -> str:
    """Return the URL of the server as people reach it; empty if it is not known."""
    from roost.client import RemoteService

    if settings.url and not settings.server:
        return settings.url
    return with_localhost(service.url) if isinstance(service, RemoteService) else ""


def open_service(settings: Settings, *, hosting: bool = False) -> Service:
    """Connect to the running server, or open the store in this process when it is free.

    In this process agents and talks run only with `hosting`, for commands that wait for them. Commands that read or
    post must not start work that they would not finish, or that needs the settings of another program.
    """
    from roost import log
    from roost.service import AgentService
    from roost.wiring import data_folder, from_settings, read_secrets

    remote = connect_running(settings)
    if remote is not None:
        return remote
    if settings.cluster is not None:
        raise Unavailable(
            "no node of the cluster answers on this machine: start one with `roost node`, or name one with --server URL"
        )
    # Log to the file only: log lines must not appear between the lines of a talk.
    read_secrets(settings)  # before the log is set up, which redacts them
    file = data_folder(settings.data) / "roost.log"
    redactor = log.set_up(file, level=settings.log, hidden=settings.hidden(), terminal=False)
    return retry_while_in_use(
        lambda: AgentService(from_settings(settings, hosting=hosting, redactor=redactor)),
        meanwhile=lambda: connect_running(settings),
    )


def is_local(service: Service) -> bool:
    """Return whether the service runs in this process."""
    from roost.service import AgentService

    return isinstance(service, AgentService)


def retry_while_in_use(opened: Callable[[], T], *, meanwhile: Callable[[], U | None]) -> T | U:
    """Call `opened` until the store is free and return its result, or return what `meanwhile` finds.

    Raise InUse if the store is held for longer than PATIENCE.
    """
    until = monotonic() + PATIENCE
    while True:
        try:
            return opened()
        except InUse:
            if (found := meanwhile()) is not None:
                return found
            if monotonic() >= until:
                raise
        sleep(PAUSE)


def current_user(settings: Settings) -> str:
    """Return the user of the command: the owner of the token on another server, else the local user."""
    from roost.api.auth import local_user

    found = announced_server(settings) if settings.server else None
    return _owner(found) if found else local_user(settings.user)


def _owner(server: Running) -> str:
    with server.connect() as service:
        try:
            return service.me().user_id
        except Forbidden as error:
            raise Forbidden(f"{error}. `roost login {server.url}` signs in again") from None
