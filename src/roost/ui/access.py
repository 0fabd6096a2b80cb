"""Access of pages to the service of this process and to the user of the browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import streamlit as st

from roost.connections.connections import Connections
from roost.errors import Unavailable
from roost.service import AgentService
from roost.ui.messages.views import Views
from roost.ui.shell.visit import Visit

Identify = Callable[[Mapping[str, str]], str | None]
"""Returns the user of the cookies of a browser."""


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
    has_accounts: Callable[[], bool] = lambda: False
    """Tells whether users sign in, and have an account page."""
    proxy_header: str | None = None
    """Header in which a proxy names the users that it has signed in."""


_hosted: _Hosted | None = None


def host(
    service: AgentService,
    identify: Identify,
    operator: str | None = None,
    *,
    stream: str | None = None,
    connections: Connections | None = None,
    has_accounts: Callable[[], bool] = lambda: False,
    proxy_header: str | None = None,
) -> None:
    """Set the service of the pages of this process, the function that identifies users by cookies, and the local user.

    The server calls it before pages run, gives each browser a cookie, and serves the live stream at `stream`.
    """
    global _hosted  # Streamlit runs page scripts without arguments.
    _hosted = _Hosted(
        service,
        identify,
        operator,
        stream,
        connections=connections,
        has_accounts=has_accounts,
        proxy_header=proxy_header,
    )


def current() -> tuple[AgentService, str]:
    """Return the service, and the user of this browser; raise Unavailable if there is no cookie."""
    user = _host().identify(st.context.cookies)
    if user is None:
        raise Unavailable("This browser is not signed in yet: allow cookies for this page and load it again.")
    return _host().service, user


def visit() -> Visit:
    """Return who looks at the page, and of which service; raise Unavailable if there is no cookie."""
    hosted = _host()
    service, user = current()
    header = hosted.proxy_header
    return Visit(
        service,
        user,
        is_operator=user == hosted.operator,
        stream=hosted.stream,
        has_accounts=hosted.has_accounts(),
        can_sign_out=header is None or header not in st.context.headers,
    )


def views() -> Views:
    """Return the views of messages that all pages of this process share."""
    return _host().views


def connections() -> Connections | None:
    """Return the connections of models, which only the local user may use."""
    return _host().connections


def _host() -> _Hosted:
    if _hosted is None:
        raise Unavailable("no server hosts these pages: start `roost up`")
    return _hosted
