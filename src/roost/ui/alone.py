"""The pages with Streamlit's own server: `roost ui`, or a plain `streamlit run` of `app.py`.

The same door as in `roost up` stands before them: it gives browsers their cookie and keeps strangers out.
"""

from __future__ import annotations

import os

from starlette.middleware import Middleware

import roost
from roost.api.auth import of_this_process
from roost.api.door import Door
from roost.service import AgentService
from roost.settings import load


def middleware() -> list[Middleware]:
    """What stands before the pages. `roost ui` has also the link printed that signs in."""
    settings, identity = load(), of_this_process()
    if port := os.environ.get("ROOST_UI_PORT"):
        print(f"  Sign in with  http://localhost:{port}/enter?code={identity.invite()}", flush=True)
    return [Middleware(Door, identity=identity, limits=settings.limits, hosts=settings.hosts)]


def service() -> AgentService:
    """The service of this process, as the settings say."""
    return roost.open()
