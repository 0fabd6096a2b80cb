"""Pages with Streamlit's own server: the script of `roost ui`, or of a plain `streamlit run` of this file.

They use the same security middleware as `roost up`. Streamlit first imports the file to configure its server, and then
runs it for each run of a page.
"""

from __future__ import annotations

import os

import streamlit as st
from starlette.middleware import Middleware
from streamlit import config

import roost
from roost.api.auth import COOKIE, of_this_process
from roost.api.pages import mounted
from roost.api.security import SecurityMiddleware
from roost.errors import Unavailable
from roost.service import AgentService
from roost.settings import load
from roost.ui import access
from roost.ui import app as pages


def middleware() -> list[Middleware]:
    """Return the middleware of the pages; print the sign-in link if started by `roost ui`."""
    config.set_option("runner.fastReruns", False)  # also for a plain `streamlit run`: see `roost.ui.config`
    settings, identity = load(), of_this_process()
    if port := os.environ.get("ROOST_UI_PORT"):
        print(f"  Sign in with  http://localhost:{port}/enter?code={identity.invite()}", flush=True)
    return [Middleware(SecurityMiddleware, identity=identity, settings=settings)]


def service() -> AgentService:
    """Open the service of this process by the settings. Raise Unavailable if users have to sign in."""
    service, settings = roost.open(), load()
    if mounted.requires_sign_in(service, settings):
        service.close()
        raise Unavailable("users of this Roost have to sign in, which these pages cannot do: start `roost up` instead")
    return service


@st.cache_resource(show_spinner=False)
def host() -> None:
    """Open the service once, and let the pages of this process use it."""
    opened, identity = service(), of_this_process()
    access.host(
        opened,
        lambda cookies: identity.user_of_cookie(cookies.get(COOKIE)),
        identity.local_user,
        connections=mounted.connections(opened, load()),
    )


if __name__ == "__main__":
    from roost.api.pages import standalone  # imported once, while this file runs for each run of a page

    pages.draw(standalone.host)
elif __name__ == "standalone":  # the name under which `streamlit run` imports it
    app = st.App(__file__, middleware=middleware())
