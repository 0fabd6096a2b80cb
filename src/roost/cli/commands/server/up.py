"""`roost up` and `roost serve`: API and agents in one process, with or without pages."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import sleep
from types import FrameType
from typing import Any, NoReturn

import uvicorn

from roost import log
from roost.api.app import create_app
from roost.api.auth import Identity, identity
from roost.api.server import config as server_config
from roost.api.server import raise_descriptor_limit
from roost.api.tls import Certificate
from roost.cli.app.connect import already_running, retry_while_in_use
from roost.cli.commands.server.ports import bind, local_url, page_url, require_encryption, require_sign_in
from roost.cli.render.text import single_line
from roost.core.limits.limits import Limits
from roost.core.values.secrets import Redactor
from roost.errors import RoostError, Unavailable
from roost.hosts.pending import drive
from roost.runtime.cluster.membership import Ending
from roost.service import AgentService
from roost.settings import Settings
from roost.wiring import announce, data_folder, from_settings, read_secrets

GRACE = 0.2
"""Seconds that open connections get to close after all agents have stopped."""
LEAVING = 0.9
"""Seconds reserved for what is stopped after the agents: connections, pages, the interpreter."""
LAST_RESORT = 5.0
"""Seconds after which the process exits even if a thread does not end."""
REJOINING = "ROOST_REJOINING"
"""Variable of a process that replaces itself because it has lost its lease: it waits for the database."""
NATS_PATIENCE = 3.0
"""Seconds to wait for the first attempt to connect to NATS, which may be down."""
REJOIN_PAUSE = 1.0
TICK = 1.0
"""Seconds between two updates of the `date` header, by uvicorn a tenth of it."""

logger = logging.getLogger("roost.up")


class Server(uvicorn.Server):
    """Uvicorn server that stops the agents first, so that answers reach their readers before connections close."""

    _loop: asyncio.AbstractEventLoop | None = None
    _exiting: asyncio.Event

    def __init__(
        self,
        config: uvicorn.Config,
        service: AgentService,
        drain: float,
        following: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        super().__init__(config)
        self._service = service
        self._drain_time = drain
        self._following = following
        """Task that runs beside the server: it follows the renewals of the certificate."""
        self._ending = False
        self.lost_lease = False
        """True if this node of a cluster has lost its lease: it starts anew."""
        if service.roost.membership is not None:
            service.roost.membership.listen(self._leave)

    def _leave(self, ending: Ending) -> None:
        if ending is Ending.LOST:
            self.lost_lease = self._ending = self.should_exit = True
        elif not self._ending:
            self.handle_exit(signal.SIGTERM, None)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._ending:
            _say("\nExiting now; unfinished answers continue at the next start.\n")
            os._exit(130)
        self._ending = True
        _say(f"\nStopping: answers have up to {self._drain_time:g} s to finish (Ctrl-C again to exit at once) …\n")
        threading.Thread(target=self._drain, name="roost-drain", daemon=True).start()

    def load_brains(self) -> None:
        """Load all brains before the first answers, so that their author sees errors in the terminal."""
        brains = self._service.roost.context.brains
        if not brains.is_chosen:
            _say("  No model is configured: the guide, a small script, answers. `roost doctor` says how to add one.\n")
        for profile in brains.names():
            try:
                if brains.loaded(profile) is None:
                    brains.load(profile)
            except RoostError as error:
                _say(f"  Profile {profile.name!r} cannot answer: {single_line(str(error))}\n")

    @property
    def should_exit(self) -> bool:
        """Return whether the server has to exit; any thread may set it."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._should_exit = value
        if value and self._loop is not None:
            with suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._exiting.set)

    async def main_loop(self) -> None:
        """Tick each second, instead of ten times, and when the server is asked to exit."""
        following = asyncio.create_task(self._following(), name="certificate") if self._following else None
        self._exiting, self._loop = asyncio.Event(), asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._exiting.wait(), TICK)
        if following is not None:
            following.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        cut = asyncio.get_running_loop().call_later(GRACE, self._cut_off)
        await super().shutdown(sockets)
        cut.cancel()

    def _cut_off(self) -> None:
        """Abort connections whose clients have stopped reading."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    def _drain(self) -> None:
        try:
            self._service.close()
        except Exception:
            logger.exception("closing the service failed")
        finally:
            self.should_exit = True


def run(settings: Settings, *, browser: bool = True, reload: bool = False, pages: bool = True) -> None:
    """Start the server and run until a signal arrives. Raise RoostError if it cannot start."""
    require_encryption(settings)
    certificate = Certificate(*settings.tls_files) if settings.tls_files else None
    raise_descriptor_limit()
    data = data_folder(settings.data)
    read_secrets(settings)  # before the log is set up, which redacts them
    redactor = log.set_up(data / "roost.log", level=settings.log, hidden=settings.hidden())
    secret = settings.secret.get_secret_value() if settings.secret else None
    who = identity(data, secret, settings.user)
    redactor.hide(who.token)
    is_rejoining = os.environ.pop(REJOINING, None) is not None
    while True:
        try:
            _bind_and_serve(settings, who, certificate, redactor, browser=browser, reload=reload, pages=pages)
            break
        except Unavailable as error:
            if not is_rejoining:
                raise
            logger.warning("this node cannot join its cluster yet; trying again: %s", error)
            sleep(REJOIN_PAUSE)
    _end_soon()
    _say("Stopped.\n")


def _bind_and_serve(
    settings: Settings,
    who: Identity,
    certificate: Certificate | None,
    redactor: Redactor,
    *,
    browser: bool,
    reload: bool,
    pages: bool,
) -> None:
    try:
        listeners = bind(settings.host, settings.port)
    except Unavailable as error:
        raise already_running(settings) or error from error
    try:
        _serve(settings, who, listeners, certificate, redactor, browser=browser, reload=reload, pages=pages)
    finally:
        for listener in listeners:
            listener.close()


def _open_service(settings: Settings, limits: Limits, redactor: Redactor, *, reload: bool) -> AgentService:
    def opened() -> AgentService:
        return AgentService(from_settings(settings, limits=limits, reload=reload, redactor=redactor))

    service = retry_while_in_use(opened, meanwhile=lambda: already_running(settings))
    if isinstance(service, Unavailable):
        raise service
    return service


def refuse_wrong_credentials(service: AgentService) -> None:
    """Raise Unavailable if NATS refuses this node. A server that is down does not keep it from starting."""
    membership = service.roost.membership
    if membership is not None and (refusal := membership.mesh.refusal(NATS_PATIENCE)):
        raise Unavailable(refusal)


def reserve_shutdown_time(limits: Limits) -> Limits:
    """Return limits whose `drain` leaves time for the rest of the shutdown."""
    rest = limits.stop_patience + LEAVING
    return replace(limits, drain=max(limits.drain - rest, limits.drain / 2))


def _serve(
    settings: Settings,
    who: Identity,
    listeners: list[socket.socket],
    certificate: Certificate | None,
    redactor: Redactor,
    *,
    browser: bool,
    reload: bool,
    pages: bool,
) -> None:
    limits = reserve_shutdown_time(settings.limits)
    service = _open_service(settings, limits, redactor, reload=reload)
    server = None
    try:
        port = listeners[0].getsockname()[1]
        refuse_wrong_credentials(service)
        require_sign_in(settings, has_accounts=drive(service.asynchronous.users.exist()))
        app = create_app(service, settings, who, pages=pages)
        announcing = partial(_announce, service, settings, port, who, certificate)
        announcing()
        following = partial(certificate.follow, announcing) if certificate else None
        server = Server(server_config(app, settings, certificate), service, limits.drain, following)
        link = f"{page_url(settings, port)}/enter?code={who.invite()}" if pages else None
        greeting = threading.Thread(target=_greet, args=(server, page_url(settings, port), link, browser), daemon=True)
        greeting.start()
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # not under nohup
            signal.signal(signal.SIGHUP, server.handle_exit)
        server.run(sockets=listeners)
    finally:
        if server is not None and server.lost_lease:
            _start_anew(service, limits)
        service.close()


def _start_anew(service: AgentService, limits: Limits) -> NoReturn:
    """Replace this process, which has lost its lease. The database may not answer: closing has a limited time."""
    _say("This node has lost its lease; starting it anew …\n")
    closing = threading.Thread(target=service.close, name="roost-close", daemon=True)
    closing.start()
    closing.join(limits.drain + limits.stop_patience + LAST_RESORT)
    command = [sys.executable, *sys.orig_argv[1:]]
    os.execve(sys.executable, command, {**os.environ, REJOINING: "1"})


def _announce(
    service: AgentService, settings: Settings, port: int, who: Identity, certificate: Certificate | None
) -> None:
    """Record how to reach this server, for the command line."""
    shown = {"certificate": certificate.pem} if certificate else {}
    announce(service.roost, url=local_url(settings, port), token=who.token, nonce=who.nonce, **shown)


def _greet(server: Server, url: str, link: str | None, browser: bool) -> None:
    """Print the address and the sign-in link when the server is ready, and open a browser if there is one."""
    while not server.started:
        if server.should_exit:
            return
        threading.Event().wait(0.02)
    _say(f"Roost is running at {url}{'' if link else ', without pages'}\n")
    if link is None:
        _say("  Programs sign in with a token: `roost tokens create NAME`.  Stop with Ctrl-C.\n")
    else:
        _say(f"  Sign in with  {link}\n  (valid once; `roost link` prints another)  Stop with Ctrl-C.\n")
    if link is not None and browser and has_browser():
        webbrowser.open(link)
    server.load_brains()


def has_browser() -> bool:
    """Return True if a browser can be opened for a person at this terminal."""
    if not sys.stdout.isatty() or os.environ.get("SSH_CONNECTION") or os.environ.get("CI"):
        return False
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _say(text: str) -> None:
    """Write to standard output without buffering: safe in a signal handler and visible at once in a pipe."""
    try:
        os.write(1, text.encode())
    except OSError:
        return


def _end_soon() -> None:
    """Exit the process after LAST_RESORT seconds, even if a thread of a page or a library does not end."""
    timer = threading.Timer(LAST_RESORT, os._exit, (0,))
    timer.daemon = True
    timer.start()
