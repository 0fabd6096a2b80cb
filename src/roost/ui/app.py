"""Entry point of the pages, which Streamlit runs as a script."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from roost.errors import RoostError
from roost.ui import access, talk
from roost.ui.agents import agents_page
from roost.ui.approvals import approvals_page
from roost.ui.design import components
from roost.ui.mail import mail_page
from roost.ui.meetings import meetings_page
from roost.ui.monitor import monitor_page
from roost.ui.runs import runs_page
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.text import as_sentence

LOOK_AGAIN = 3.0
TRIES, BETWEEN = 6, 0.5
"""Number of times a page that was drawn before is drawn again, and the seconds in between, before it shows an error."""


def _talks(visit: Visit) -> None:
    talk.page(
        visit.service,
        visit.user,
        is_operator=visit.is_operator,
        stream=visit.stream,
        views=access.views(),
        connections=access.connections(),
        has_accounts=visit.has_accounts,
        can_sign_out=visit.can_sign_out,
    )


DRAWN: dict[Route, Callable[[Visit], None]] = {
    Route.TALKS: _talks,
    Route.AGENTS: agents_page.page,
    Route.MEETINGS: meetings_page.page,
    Route.MAIL: mail_page.page,
    Route.APPROVALS: approvals_page.page,
    Route.RUNS: runs_page.page,
    Route.MONITOR: monitor_page.page,
}


@st.fragment(run_every=LOOK_AGAIN)
def _come_back() -> None:
    """Reload the page periodically: the error may be gone, for example after a restart of the server."""
    if st.session_state.pop("waits_to_come_back", False):
        st.rerun()
    st.session_state["waits_to_come_back"] = True


def _keep_page() -> None:
    """Draw the page again after a moment, if it was drawn before.

    A run that ends so leaves everything as it is in the browser: while the server closes, the history stays.
    """
    tries = st.session_state.get("tries", 0)
    if tries:
        st.session_state["tries"] = tries - 1
        time.sleep(BETWEEN)
        st.rerun()


def _page(route: Route, host: Callable[[], None]) -> Callable[[], None]:
    """Return the function that draws a page, or the reason why it cannot be drawn."""

    def page() -> None:
        components.set_up(is_wide=route is not Route.TALKS)
        try:
            host()
            DRAWN[route](access.visit())
            st.session_state["tries"] = TRIES
        except RoostError as error:
            _keep_page()
            st.error(as_sentence(error))
            st.button("Try again", key="load_again")  # any click runs the page again
            _come_back()

    return page


def draw(host: Callable[[], None] = lambda: None) -> None:
    """Draw the page that the URL names. `host` sets the service of the pages, if no server has done so."""
    navigation.run({route: _page(route, host) for route in DRAWN})


if __name__ == "__main__":
    draw()
