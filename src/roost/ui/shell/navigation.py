"""Pages by their paths, and links between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NoReturn
from urllib.parse import urlencode

import streamlit as st

from roost.ui.callbacks import uninterrupted


class Route(StrEnum):
    """Page, by its path."""

    TALKS = ""
    AGENTS = "agents"
    MEETINGS = "meetings"
    MAIL = "mail"
    APPROVALS = "approvals"
    RUNS = "runs"
    MONITOR = "monitor"


TITLES = {
    Route.TALKS: "Talks",
    Route.AGENTS: "Agents",
    Route.MEETINGS: "Meetings",
    Route.MAIL: "Mail",
    Route.APPROVALS: "Approvals",
    Route.RUNS: "Runs",
    Route.MONITOR: "Monitor",
}
ICONS = {
    Route.TALKS: ":material/chat:",
    Route.AGENTS: ":material/smart_toy:",
    Route.MEETINGS: ":material/groups:",
    Route.MAIL: ":material/mail:",
    Route.APPROVALS: ":material/verified_user:",
    Route.RUNS: ":material/receipt_long:",
    Route.MONITOR: ":material/monitoring:",
}
_PAGES, _OPENED = "pages", "opened_page"


def run(draw: Mapping[Route, Callable[[], None]]) -> None:
    """Draw the page that the URL names."""
    pages = {
        route: st.Page(function, title=TITLES[route], url_path=route or None, default=route is Route.TALKS)
        for route, function in draw.items()
    }
    st.session_state[_PAGES] = pages
    opened = st.navigation([*pages.values()], position="hidden")
    st.session_state[_OPENED] = opened.url_path
    opened.run()


def place() -> dict[str, Any]:
    """Return the path and the query of the page that is drawn. A name is in it once for each of its values."""
    query = [(name, value) for name in st.query_params for value in st.query_params.get_all(name)]
    return {"path": st.session_state[_OPENED], "query": query}


def shown() -> list[tuple[Route, str]]:
    """Return the pages that exist, with their titles."""
    return [(route, TITLES[route]) for route in st.session_state[_PAGES]]


def is_shown(route: Route) -> bool:
    """Return whether a page exists."""
    return route in st.session_state[_PAGES]


def link(route: Route, label: str | None = None, *, icon: bool = True, **query: str) -> None:
    """Draw a link to a page; it opens without loading the application again."""
    st.page_link(
        st.session_state[_PAGES][route],
        label=TITLES[route] if label is None else label,
        icon=ICONS[route] if icon else None,
        query_params=query or None,
    )


def go(route: Route, **query: str) -> NoReturn:
    """Show a page instead of this one."""
    st.switch_page(st.session_state[_PAGES][route], query_params=query)


@uninterrupted
def show(**query: str) -> None:
    """Change the query of the URL of this page, from a callback; empty values are left out."""
    st.query_params.from_dict({name: value for name, value in query.items() if value})


def url(route: Route, **query: str) -> str:
    """Return the URL of a page, which can be shared."""
    return f"/{route}" + (f"?{urlencode(query)}" if query else "")


def asked(name: str) -> str | None:
    """Return a part of the query of the URL; None if it is missing or empty."""
    return st.query_params.get(name) or None
