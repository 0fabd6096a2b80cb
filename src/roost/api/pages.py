"""Pages mounted beside the API: Streamlit as an ASGI application."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from roost import wiring
from roost.api.auth import Identity
from roost.api.notices import missing_page
from roost.connections.connections import Connections
from roost.errors import NotFound, Unavailable
from roost.service import AgentService
from roost.settings import Settings

if TYPE_CHECKING:
    from streamlit.web.server.starlette import App

FOLDERS = ("/_stcore/", "/component/", "/media/", "/static/")
"""Folders of Streamlit."""
SCRIPT = Path(__file__).resolve().parent.parent / "ui" / "app.py"


class KnownPages:
    """Pages at the paths that they have; Streamlit itself shows its page at any path."""

    def __init__(self, pages: ASGIApp) -> None:
        from streamlit.file_util import get_static_dir

        self._pages = pages
        self._files = {"/", *(f"/{file.name}" for file in Path(get_static_dir()).iterdir() if file.is_file())}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if scope["type"] != "http" or path in self._files or path.startswith(FOLDERS):
            return await self._pages(scope, receive, send)
        if "text/html" in Headers(scope=scope).get("accept", ""):
            return await missing_page()(scope, receive, send)
        raise NotFound("no such page: see / for the talks, /docs for the docs and /api/v1/openapi.json for the API")


def options() -> dict[str, object]:
    """Return Streamlit's options by its names."""
    from roost.ui.config import OPTIONS

    return dict(OPTIONS)


def connections(service: AgentService, settings: Settings) -> Connections:
    """Return the connections of models, for the pages of the local user."""
    return wiring.connections(service.roost, settings)


def mounted(service: AgentService, identity: Identity, settings: Settings, stream: str) -> App:
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
        service, identity.user_of_cookie, identity.local_user, stream=stream, connections=connections(service, settings)
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
