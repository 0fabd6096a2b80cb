"""Pages with Streamlit's own server: `roost ui`, or a plain `streamlit run` of `app.py`.

They use the same security middleware as `roost up`.
"""

from __future__ import annotations

import os

from starlette.middleware import Middleware
from streamlit import config

import roost
from roost.api import pages
from roost.api.auth import of_this_process
from roost.api.security import SecurityMiddleware
from roost.connections.connections import Connections
from roost.service import AgentService
from roost.settings import load


def middleware() -> list[Middleware]:
    """Return the middleware of the pages; print the sign-in link if started by `roost ui`."""
    config.set_option("runner.fastReruns", False)  # also for a plain `streamlit run`: see `roost.ui.config`
    settings, identity = load(), of_this_process()
    if port := os.environ.get("ROOST_UI_PORT"):
        print(f"  Sign in with  http://localhost:{port}/enter?code={identity.invite()}", flush=True)
    return [Middleware(SecurityMiddleware, identity=identity, limits=settings.limits, hosts=settings.hosts)]


def service() -> AgentService:
    """Open the service of this process by the settings."""
    return roost.open()


def connections(service: AgentService) -> Connections:
    return pages.connections(service, load())
