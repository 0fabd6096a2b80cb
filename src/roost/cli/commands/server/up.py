"""`roost up`: pages, API and agents in one process."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import webbrowser
from dataclasses import replace
from types import FrameType

import uvicorn

from roost import log
from roost.api.app import create_app
from roost.api.auth import Identity, identity
from roost.api.server import config as server_config
from roost.api.server import raise_descriptor_limit
from roost.cli.app.connect import already_running, retry_while_in_use
from roost.cli.commands.server.ports import bind, require_loopback
from roost.cli.render.text import single_line
from roost.core.limits.limits import Limits
from roost.core.values.secrets import Redactor
from roost.errors import RoostError, Unavailable
from roost.service import AgentService
from roost.settings import Settings
from roost.wiring import announce, data_folder, from_settings, read_secrets

GRACE = 0.2
"""Seconds that open connections get to close after all agents have stopped."""
LEAVING = 0.9
"""Seconds reserved for what is stopped after the agents: connections, pages, the interpreter."""
LAST_RESORT = 5.0
"""Seconds after which the process exits even if a thread does not end."""

logger = logging.getLogger("roost.up")


class Server(uvicorn.Server):
    """Uvicorn server that stops the agents first, so that answers reach their readers before connections close."""

    def __init__(self, config: uvicorn.Config, service: AgentService, drain: float) -> None:
        super().__init__(config)
        self._service = service
        self._drain_time = drain
        self._ending = False

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
    require_loopback(settings)
    raise_descriptor_limit()
    data = data_folder(settings.data)
    read_secrets(settings)  # before the log is set up, which redacts them
    redactor = log.set_up(data / "roost.log", level=settings.log, hidden=settings.hidden())
    secret = settings.secret.get_secret_value() if settings.secret else None
    who = identity(data, secret, settings.user)
    redactor.hide(who.token)
    try:
        listeners = bind(settings.host, settings.port)
    except Unavailable as error:
        raise already_running(settings) or error from error
    try:
        _serve(settings, who, listeners, redactor, browser=browser, reload=reload, pages=pages)
    finally:
        for listener in listeners:
            listener.close()
    _end_soon()
    _say("Stopped.\n")


def _open_service(settings: Settings, limits: Limits, redactor: Redactor, *, reload: bool) -> AgentService:
    def opened() -> AgentService:
        return AgentService(from_settings(settings, limits=limits, reload=reload, redactor=redactor))

    service = retry_while_in_use(opened, meanwhile=lambda: already_running(settings))
    if isinstance(service, Unavailable):
        raise service
    return service


def reserve_shutdown_time(limits: Limits) -> Limits:
    """Return limits whose `drain` leaves time for the rest of the shutdown."""
    rest = limits.stop_patience + LEAVING
    return replace(limits, drain=max(limits.drain - rest, limits.drain / 2))


def _serve(
    settings: Settings,
    who: Identity,
    listeners: list[socket.socket],
    redactor: Redactor,
    *,
    browser: bool,
    reload: bool,
    pages: bool,
) -> None:
    limits = reserve_shutdown_time(settings.limits)
    service = _open_service(settings, limits, redactor, reload=reload)
    try:
        port = listeners[0].getsockname()[1]
        app = create_app(service, settings, who, pages=pages)
        config = server_config(app, settings)
        address = f"[{settings.host}]" if ":" in settings.host else settings.host
        announce(service.roost, url=f"http://{address}:{port}", token=who.token, nonce=who.nonce)
        server = Server(config, service, limits.drain)
        link = f"http://localhost:{port}/enter?code={who.invite()}"
        greeting = threading.Thread(target=_greet, args=(server, port, link, browser), daemon=True)
        greeting.start()
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # not under nohup
            signal.signal(signal.SIGHUP, server.handle_exit)
        server.run(sockets=listeners)
    finally:
        service.close()


def _greet(server: Server, port: int, link: str, browser: bool) -> None:
    """Print the address and the sign-in link when the server is ready, and open a browser if there is one."""
    while not server.started:
        if server.should_exit:
            return
        threading.Event().wait(0.02)
    _say(
        f"Roost is running at http://localhost:{port}\n"
        f"  Sign in with  {link}\n"
        "  (valid once; `roost link` prints another)  Stop with Ctrl-C.\n"
    )
    if browser and has_browser():
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
