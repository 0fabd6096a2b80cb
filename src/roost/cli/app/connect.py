"""Connecting to the service: to the running server, or else to a service of this process on the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from socket import gethostname
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

from roost import log
from roost.api.auth import kept_secret, local_token, local_user
from roost.errors import InUse, RoostError, Unavailable
from roost.service import AgentService
from roost.settings import Settings
from roost.stores.sqlite import LockFile, owner
from roost.wiring import data_folder, default_url, from_settings, read_secrets, sqlite_path

if TYPE_CHECKING:
    from roost.client import RemoteService

    Service = AgentService | RemoteService
else:
    Service = AgentService

T = TypeVar("T")
U = TypeVar("U")
PATIENCE = 5.0
"""Seconds to wait for another command that holds the store."""
PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Running:
    """Address of a running `roost up`, as announced in the lock file or in the database."""

    url: str
    token: str
    pid: int


def store_url(settings: Settings) -> str:
    return settings.store or default_url(settings.data)


def announced_server(settings: Settings) -> Running | None:
    """Return the server that announced itself for this store; it may have ended since."""
    path = sqlite_path(store_url(settings))
    facts = owner(path.with_name(path.name + ".lock")) if path else _announced(settings)
    try:
        return Running(str(facts["url"]), str(facts["token"]), int(facts["pid"]))
    except (KeyError, ValueError, TypeError):
        return None


def _announced(settings: Settings) -> dict[str, Any]:
    """Read the announcement in the database. The token is derived from the secret that both processes share."""
    from roost.stores.postgres import owner as owner_of_server

    facts = owner_of_server(store_url(settings))
    if facts.get("host") != gethostname() or not isinstance(facts.get("nonce"), str):
        return {}
    secret = settings.secret.get_secret_value().encode() if settings.secret else None
    return {**facts, "token": local_token(secret or kept_secret(data_folder(settings.data)), facts["nonce"])}


def connect_running(settings: Settings) -> RemoteService | None:
    """Return a client of the running server, or None if there is none or it does not answer."""
    from roost.client import connect

    found = announced_server(settings)
    if found is None:
        return None
    service = connect(found.url, found.token)
    try:
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
    path = sqlite_path(store_url(settings))
    try:
        if path is not None and path.parent.is_dir():
            LockFile(path).release()
    except Unavailable as error:
        raise already_running(settings) or error from error


def with_localhost(url: str) -> str:
    """Use the host name of the pages: browsers keep cookies per name."""
    return url.replace("//127.0.0.1:", "//localhost:")


def open_service(settings: Settings, *, hosting: bool = False) -> Service:
    """Connect to the running server, or open the store in this process when it is free.

    In this process agents and talks run only with `hosting`, for commands that wait for them. Commands that read or
    post must not start work that they would not finish, or that needs the settings of another program.
    """
    remote = connect_running(settings)
    if remote is not None:
        return remote
    # Log to the file only: log lines must not appear between the lines of a talk.
    read_secrets(settings)  # before the log is set up, which redacts them
    file = data_folder(settings.data) / "roost.log"
    redactor = log.set_up(file, level=settings.log, hidden=settings.hidden(), terminal=False)
    return retry_while_in_use(
        lambda: AgentService(from_settings(settings, hosting=hosting, redactor=redactor)),
        meanwhile=lambda: connect_running(settings),
    )


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
    return local_user(settings.user)
