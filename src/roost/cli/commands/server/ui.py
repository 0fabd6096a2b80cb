"""`roost ui`: only the pages, with Streamlit's own server."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import roost
from roost.cli.app.connect import check_free_store
from roost.cli.commands.server.ports import check_port_free, require_loopback
from roost.errors import Unavailable
from roost.settings import Settings

SCRIPT = Path(roost.__file__).resolve().parent / "api" / "pages" / "standalone.py"


def arguments(settings: Settings) -> list[str]:
    """Return the arguments of Streamlit's command line: `run` with the options of the pages."""
    from roost.ui.config import OPTIONS

    options = {**OPTIONS, "server.port": settings.port, "server.address": settings.host}
    flags = [f"--{name}={_flag(value)}" for name, value in options.items() if not isinstance(value, list)]
    return ["run", str(SCRIPT), *flags]


def run(settings: Settings, config: Path | None) -> None:
    if find_spec("streamlit") is None:
        raise Unavailable("the pages need an extra: pip install 'roost[ui]'")
    require_loopback(settings)
    check_free_store(settings)
    check_port_free(settings.host, settings.port)
    given = {"ROOST_CONFIG": config and str(config.absolute()), "ROOST_STORE": settings.store}
    os.environ.update({name: value for name, value in given.items() if value})
    os.environ["ROOST_UI_PORT"] = str(settings.port)
    from streamlit.web.cli import main

    # The server passes SIGTERM on when it has ended: then the service is closed, and not cut off.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    main(arguments(settings), prog_name="streamlit")


def _flag(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
