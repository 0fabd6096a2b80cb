"""The pages, mounted beside the API: Streamlit as an ASGI application, set up from here."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from roost.api.auth import Identity
from roost.errors import Unavailable
from roost.service import AgentService

if TYPE_CHECKING:
    from streamlit.web.server.starlette import App

SCRIPT = Path(__file__).resolve().parent.parent / "ui" / "app.py"


def options() -> dict[str, object]:
    """How Streamlit is set up, by its names for things."""
    from roost.ui.config import OPTIONS

    return dict(OPTIONS)


def mounted(service: AgentService, identity: Identity) -> App:
    """The pages as an application that can be mounted, for the users that the identity knows."""
    try:
        from streamlit import config
        from streamlit.web.server.starlette import App
    except ImportError as error:
        raise Unavailable("the pages need the extra: pip install 'roost[ui]'") from error
    from roost.ui import access

    log_with_us()
    # Before anything else, whatever a `.streamlit` folder says where the program was started.
    config.get_config_options(force_reparse=True, options_from_flags=options())
    access.host(service, identity.user_of_cookie)
    return App(SCRIPT)


def log_with_us() -> None:
    """Streamlit gives its loggers, and uvicorn's, handlers of their own: have all of them use ours instead."""
    from streamlit import logger as streamlit_logger

    def set_up(logger: logging.Logger) -> None:
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True

    streamlit_logger.setup_formatter = set_up
    streamlit_logger.update_formatter()
