"""`roost up`: everything in one process, until it is told to stop."""

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
from roost.cli.find import already_up, patiently
from roost.cli.ports import bind, refuse_strangers
from roost.cli.text import line
from roost.core.limits import Limits
from roost.errors import RoostError, Unavailable
from roost.service import AgentService
from roost.settings import Settings
from roost.wiring import announce, data_folder, from_settings, read_secrets

GRACE = 0.2
"""Seconds that open connections get to end by themselves, once all agents are at rest."""
LEAVING = 0.9
"""Seconds for all that comes after the agents: connections, pages, Python itself."""
LAST_RESORT = 5.0
"""Seconds after which the process ends even if somebody's thread will not."""

logger = logging.getLogger("roost.up")


class Server(uvicorn.Server):
    """Uvicorn, but agents first: answers may end, watched by whoever watches, before connections are closed."""

    def __init__(self, config: uvicorn.Config, service: AgentService, drain: float) -> None:
        super().__init__(config)
        self._service = service
        self._drain_time = drain
        self._ending = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._ending:
            _say("\nLeaving now; unfinished answers are taken up at the next start.\n")
            os._exit(130)
        self._ending = True
        _say(f"\nStopping: answers get up to {self._drain_time:g} s to end (Ctrl-C again to leave at once) …\n")
        threading.Thread(target=self._drain, name="roost-drain", daemon=True).start()

    def load_brains(self) -> None:
        """Have them at hand for the first answers; whoever started this can mend one that fails, and is told where."""
        brains = self._service.roost.shop.brains
        if not brains.is_chosen and brains.without_model:
            _say(f"  You talk with the guide, a script: {line(brains.without_model)}\n")
        for profile in brains.names():
            try:
                if brains.loaded(profile) is None:
                    brains.load(profile)
            except RoostError as error:
                _say(f"  The profile {profile.name!r} will not answer: {line(str(error))}\n")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        cut = asyncio.get_running_loop().call_later(GRACE, self._cut_off)
        await super().shutdown(sockets)
        cut.cancel()

    def _cut_off(self) -> None:
        """Whoever still holds a connection reads no more: what is not sent yet would never be."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    def _drain(self) -> None:
        try:
            self._service.close()
        except Exception:
            logger.exception("closing has failed")
        finally:
            self.should_exit = True


def run(settings: Settings, *, browser: bool = True, reload: bool = False, pages: bool = True) -> None:
    """Start everything and serve until a signal comes; raises what stands in the way, in one sentence."""
    refuse_strangers(settings)
    data = data_folder(settings.data)
    read_secrets(settings)  # before the log, which hides them
    redactor = log.set_up(data / "roost.log", level=settings.log, hidden=settings.hidden())
    secret = settings.secret.get_secret_value() if settings.secret else None
    who = identity(data, secret, settings.user)
    redactor.hide(who.token)
    try:
        listeners = bind(settings.host, settings.port)
    except Unavailable as error:
        raise already_up(settings) or error from error
    try:
        _serve(settings, who, listeners, browser=browser, reload=reload, pages=pages)
    finally:
        for listener in listeners:
            listener.close()
    _end_soon()
    _say("Stopped.\n")


def _opened(settings: Settings, limits: Limits, *, reload: bool) -> AgentService:
    def opened() -> AgentService:
        return AgentService(from_settings(settings, limits=limits, reload=reload))

    service = patiently(opened, meanwhile=lambda: already_up(settings))
    if isinstance(service, Unavailable):
        raise service
    return service


def shortened(limits: Limits) -> Limits:
    """So that all of the closing takes no longer than `drain`: answers get what the rest of it does not need."""
    rest = limits.stop_patience + LEAVING
    return replace(limits, drain=max(limits.drain - rest, limits.drain / 2))


def _serve(
    settings: Settings, who: Identity, listeners: list[socket.socket], *, browser: bool, reload: bool, pages: bool
) -> None:
    limits = shortened(settings.limits)
    service = _opened(settings, limits, reload=reload)
    try:
        port = listeners[0].getsockname()[1]
        app = create_app(service, settings, who, pages=pages)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=1,
            ws="websockets-sansio", ws_max_size=settings.limits.message_bytes * 2 + 1024 * 1024,
            limit_concurrency=2_000, h11_max_incomplete_event_size=64 * 1024,
        )  # fmt: skip
        address = f"[{settings.host}]" if ":" in settings.host else settings.host
        announce(service.roost, url=f"http://{address}:{port}", token=who.token)
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
    """Once it answers: where it is, and the link that signs in; then the browser, where there is one."""
    while not server.started:
        if server.should_exit:
            return
        threading.Event().wait(0.02)
    _say(
        f"Roost is up at http://localhost:{port}\n"
        f"  Sign in with  {link}\n"
        "  (works once; `roost link` makes another)  Stop with Ctrl-C.\n"
    )
    if browser and has_browser():
        webbrowser.open(link)
    server.load_brains()


def has_browser() -> bool:
    """Whether a person sits here with a browser."""
    if not sys.stdout.isatty() or os.environ.get("SSH_CONNECTION") or os.environ.get("CI"):
        return False
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _say(text: str) -> None:
    """Straight to the terminal: safe inside a signal handler, and seen at once through a pipe."""
    try:
        os.write(1, text.encode())
    except OSError:
        return


def _end_soon() -> None:
    """A thread that does not end (of a page, of a library) must not keep the process."""
    timer = threading.Timer(LAST_RESORT, os._exit, (0,))
    timer.daemon = True
    timer.start()
