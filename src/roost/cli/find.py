"""Where the command line finds its service: the one that runs, or its own on the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar

from roost import log
from roost.api.auth import local_user
from roost.errors import RoostError, Unavailable
from roost.service import AgentService
from roost.settings import Settings
from roost.stores.sqlite import InUse, LockFile, owner
from roost.wiring import data_folder, default_url, from_settings, read_secrets, sqlite_path

if TYPE_CHECKING:
    from roost.client import RemoteService

    Service = AgentService | RemoteService
else:
    Service = AgentService

T = TypeVar("T")
U = TypeVar("U")
PATIENCE = 5.0
"""Seconds in which another command that has the store may end."""
PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Running:
    """What a running `roost up` wrote into the lock file."""

    url: str
    token: str
    pid: int


def store_url(settings: Settings) -> str:
    return settings.store or default_url(settings.data)


def running(settings: Settings) -> Running | None:
    """The process that says it serves the store; it may have died since."""
    path = sqlite_path(store_url(settings))
    facts: dict[str, Any] = owner(path.with_name(path.name + ".lock")) if path else {}
    try:
        return Running(str(facts["url"]), str(facts["token"]), int(facts["pid"]))
    except (KeyError, ValueError, TypeError):
        return None


def reached(settings: Settings) -> RemoteService | None:
    """A client of the process that serves the store, if there is one and it answers."""
    from roost.client import connect

    found = running(settings)
    if found is None:
        return None
    service = connect(found.url, found.token)
    try:
        service.health()
    except RoostError:
        return None
    return service


def already_up(settings: Settings) -> Unavailable | None:
    """What to tell one who starts a Roost on a store that one serves already; None if none does."""
    service = reached(settings)
    if service is None:
        return None
    with service:
        return Unavailable(
            f"Roost already runs on this store, at {by_name(service.url)}: `roost link` prints a link to it; "
            "stop it first to start it anew, or name another store with --store"
        )


def check_free_store(settings: Settings) -> None:
    """Raise Unavailable, with who has it, if a process has the file of the store."""
    path = sqlite_path(store_url(settings))
    try:
        if path is not None and path.parent.is_dir():
            LockFile(path).release()
    except Unavailable as error:
        raise already_up(settings) or error from error


def by_name(url: str) -> str:
    """By the name the pages are known by: browsers keep a cookie for each name."""
    return url.replace("//127.0.0.1:", "//localhost:")


def service_of(settings: Settings, *, hosting: bool = False) -> Service:
    """Through the process that serves the store, or else on the store itself, when others have let go of it.

    There agents and talks live only if the command waits for them (`hosting`): one that looks or posts does not begin
    what it will not end, nor what another program is set up for.
    """
    remote = reached(settings)
    if remote is not None:
        return remote
    # What goes wrong inside belongs into the log, not between the lines of a talk.
    read_secrets(settings)  # before the log, which hides them
    log.set_up(data_folder(settings.data) / "roost.log", level=settings.log, hidden=settings.hidden(), terminal=False)
    return patiently(
        lambda: AgentService(from_settings(settings, hosting=hosting)), meanwhile=lambda: reached(settings)
    )


def patiently(opened: Callable[[], T], *, meanwhile: Callable[[], U | None]) -> T | U:
    """What is opened as soon as whoever has the store lets go of it, or what is found meanwhile.

    Raises InUse if it is kept for longer than commands take.
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


def user_of(settings: Settings) -> str:
    return local_user(settings.user)
