"""Frame of a page: the sidebar with links to all pages, the title, and what one can do on the page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from roost.ui.design import components
from roost.ui.shell import navigation, signed_in
from roost.ui.shell.navigation import TITLES, Route
from roost.ui.shell.visit import Visit
from roost.ui.text import plain

MOST_WAITING = 200
"""Approvals that are counted."""
LOGO = b64encode((Path(__file__).parents[1] / "logo.svg").read_bytes()).decode()


def draw(visit: Visit, route: Route, title: str = "", actions: Callable[[], None] | None = None) -> None:
    """Draw everything around the content of a page; `actions` draws the buttons beside the title."""
    with st.sidebar:
        brand()
        service, user = visit.service, visit.user
        page_links(service.mail.unread_count(user), len(service.approvals.list(user, limit=MOST_WAITING)))
        signed_in.draw(visit.user, has_account=visit.has_accounts, can_sign_out=visit.can_sign_out)
    with st.container(key="title", horizontal=True, vertical_alignment="center"):
        st.title(plain(title or TITLES[route]), anchor=False)
        if actions is not None:
            actions()
    components.behaviour(route)


def brand() -> None:
    with st.container(key="brand"):
        st.html(f'<img src="data:image/svg+xml;base64,{LOGO}" alt=""><span>Roost</span>')


def page_links(unread: int, waiting: int) -> None:
    """Draw links to all pages, with the numbers of what waits there."""
    counts = {Route.MAIL: count(unread), Route.APPROVALS: count(waiting, MOST_WAITING)}
    with st.container(key="page_links", gap=None):
        for route, title in navigation.shown():
            number = counts.get(route)
            with st.container(key=f"{'waits' if number else 'link'}_{route}"):  # a phone marks what waits
                navigation.link(route, f"{title} · {number}" if number else title)


def count(number: int, most: int | None = None) -> str:
    """Return a number as far as it is known: `200+` if it is the most that were counted; empty for none."""
    if not number:
        return ""
    return f"{number:,}+" if most is not None and number >= most else f"{number:,}"
