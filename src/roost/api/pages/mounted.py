"""Pages mounted beside the API: Streamlit as an ASGI application."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from roost import wiring
from roost.api.auth import COOKIE, Identity
from roost.api.notices import missing_page
from roost.api.sign_in.mode import SignInMode
from roost.connections.connections import Connections
from roost.errors import NotFound, Unavailable
from roost.hosts.pending import drive
from roost.service import AgentService
from roost.settings import Settings

if TYPE_CHECKING:
    from streamlit.web.server.starlette import App

AT_ROOT = "<script>window.__streamlit = {BACKEND_BASE_URL: `${location.origin}/`}</script>"
"""Tells Streamlit where its server is, which it would otherwise look for below the path of a page first."""
FOLDERS = ("/_stcore/", "/component/", "/media/", "/static/")
"""Folders of Streamlit."""
SCRIPT = Path(__file__).resolve().parents[2] / "ui" / "app.py"


class KnownPages:
    """Pages at the paths that they have; Streamlit itself shows its page at any path."""

    def __init__(self, pages: ASGIApp) -> None:
        from streamlit.file_util import get_static_dir

        from roost.ui.shell.navigation import Route

        folder = Path(get_static_dir())
        self._pages = pages
        self._files = {"/", *(f"/{file.name}" for file in folder.iterdir() if file.is_file())}
        self._routes = {f"/{route}" for route in Route if route}
        self._page = (folder / "index.html").read_text(encoding="utf-8").replace("<script", f"{AT_ROOT}<script", 1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if scope["type"] == "http" and path in self._routes:
            return await HTMLResponse(self._page, headers={"Cache-Control": "no-cache"})(scope, receive, send)
        if scope["type"] != "http" or path in self._files or path.startswith(FOLDERS):
            return await self._pages(scope, receive, send)
        if "text/html" in Headers(scope=scope).get("accept", ""):
            return await missing_page()(scope, receive, send)
        raise NotFound("no such page: see / for the talks, /docs for the docs and /docs/api for the API")


def options() -> dict[str, object]:
    """Return Streamlit's options by its names."""
    from roost.ui.config import OPTIONS

    return dict(OPTIONS)


def connections(service: AgentService, settings: Settings) -> Connections:
    """Return the connections of models, for the pages of the local user."""
    return wiring.connections(service.roost, settings)


def requires_sign_in(service: AgentService, settings: Settings) -> bool:
    """Return whether visitors have to sign in, as far as it is known now."""
    return SignInMode(settings).is_on or drive(service.asynchronous.users.exist())


def mounted(service: AgentService, identity: Identity, settings: Settings, stream: str, mode: SignInMode) -> App:
    """Return the pages as an application to mount, for users known by their cookie, with the URL of the live stream."""
    try:
        from streamlit import config
        from streamlit.web.server.starlette import App
    except ImportError as error:
        raise Unavailable("the pages need an extra: pip install 'roost[ui]'") from error
    from roost.ui import access

    log_with_us()
    # Set first, so that a `.streamlit` folder in the working directory has no effect.
    config.get_config_options(force_reparse=True, options_from_flags=options())
    access.host(
        service,
        lambda cookies: identity.user_of_cookie(cookies.get(COOKIE)),
        identity.local_user,
        stream=stream,
        connections=connections(service, settings),
        has_accounts=lambda: mode.is_on,
        proxy_header=settings.proxy_user_header,
    )
    return App(SCRIPT)


def log_with_us() -> None:
    """Remove the handlers that Streamlit adds to its own and uvicorn's loggers, so that they use ours."""
    from streamlit import logger as streamlit_logger

    def set_up(logger: logging.Logger) -> None:
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True

    streamlit_logger.setup_formatter = set_up
    streamlit_logger.update_formatter()
