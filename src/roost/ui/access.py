"""What a page works with: the one service of this process, and the user whose browser it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from roost.api.auth import COOKIE, user_of_cookie
from roost.errors import Unavailable
from roost.service import AgentService

Identify = Callable[[str | None], str | None]


@dataclass(frozen=True, slots=True)
class _Hosted:
    service: AgentService
    identify: Identify


_hosted: _Hosted | None = None


def host(service: AgentService, identify: Identify) -> None:
    """Give the pages of this process their service, and the way to tell users by their cookie.

    Called by the server before pages run; the server also sees to it that each browser has a cookie.
    """
    global _hosted  # Streamlit runs page scripts without arguments: this is how they are given any.
    _hosted = _Hosted(service, identify)


def current() -> tuple[AgentService, str]:
    """The service, and the user of this browser. Raises Unavailable with a sentence for people."""
    hosted = _hosted or _own()
    user = hosted.identify(st.context.cookies.get(COOKIE))
    if user is None:
        raise Unavailable("This browser is not signed in yet: allow cookies for this page and load it again.")
    return hosted.service, user


@st.cache_resource(show_spinner=False)
def _own() -> _Hosted:
    """Made once, when nobody hosts the pages (a plain `streamlit run`)."""
    from roost.ui import alone

    return _Hosted(alone.service(), user_of_cookie)
