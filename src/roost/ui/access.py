"""Access of pages to the service of this process and to the user of the browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import streamlit as st

from roost.api.auth import COOKIE, of_this_process, user_of_cookie
from roost.connections.connections import Connections
from roost.errors import Unavailable
from roost.service import AgentService
from roost.ui.live.views import Views

Identify = Callable[[str | None], str | None]


@dataclass(frozen=True, slots=True)
class _Hosted:
    service: AgentService
    identify: Identify
    operator: str | None = None
    """The local user, who runs this program."""
    stream: str | None = None
    """URL of the live stream."""
    views: Views = field(default_factory=Views)
    """Views of messages, for pages that poll."""
    connections: Connections | None = None
    """Connections of models, for the local user."""


_hosted: _Hosted | None = None


def host(
    service: AgentService,
    identify: Identify,
    operator: str | None = None,
    *,
    stream: str | None = None,
    connections: Connections | None = None,
) -> None:
    """Set the service of the pages of this process, the function that identifies users by cookie, and the local user.

    The server calls it before pages run, gives each browser a cookie, and serves the live stream at `stream`.
    """
    global _hosted  # Streamlit runs page scripts without arguments.
    _hosted = _Hosted(service, identify, operator, stream, connections=connections)


def current() -> tuple[AgentService, str]:
    """Return the service, and the user of this browser; raise Unavailable if there is no cookie."""
    hosted = _hosted or _own()
    user = hosted.identify(st.context.cookies.get(COOKIE))
    if user is None:
        raise Unavailable("This browser is not signed in yet: allow cookies for this page and load it again.")
    return hosted.service, user


def is_operator(user: str) -> bool:
    """Return whether this is the local user, who runs this program and may see its code."""
    return user == (_hosted or _own()).operator


def stream() -> str | None:
    """Return the URL of the live stream, if the server of the pages has one."""
    return (_hosted or _own()).stream


def views() -> Views:
    """Return the views of messages that all pages of this process share."""
    return (_hosted or _own()).views


def connections() -> Connections | None:
    """Return the connections of models, which only the local user may use."""
    return (_hosted or _own()).connections


@st.cache_resource(show_spinner=False)
def _own() -> _Hosted:
    """Create the service once, if no server hosts the pages (a plain `streamlit run`)."""
    from roost.ui import standalone

    service = standalone.service()
    return _Hosted(service, user_of_cookie, of_this_process().local_user, connections=standalone.connections(service))
