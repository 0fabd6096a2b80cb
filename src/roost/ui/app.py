"""Entry point of the pages. Streamlit runs it as a script; `streamlit run` first imports it to configure its server."""

from __future__ import annotations

import time

import streamlit as st

from roost.errors import RoostError
from roost.ui import access, talk
from roost.ui.design import components
from roost.ui.text import as_sentence

LOOK_AGAIN = 3.0
TRIES, BETWEEN = 6, 0.5
"""How often a page that was drawn before is drawn again, and the seconds in between, before it shows an error."""


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


def main() -> None:
    components.set_up()
    try:
        service, user = access.current()
        operator = access.is_operator(user)
        talk.page(
            service,
            user,
            is_operator=operator,
            stream=access.stream(),
            views=access.views(),
            connections=access.connections(),
        )
        st.session_state["tries"] = TRIES
    except RoostError as error:
        _keep_page()
        st.error(as_sentence(error))
        st.button("Try again", key="load_again")  # any click runs the page again
        _come_back()


if __name__ == "__main__":
    main()
elif __name__ == "app":  # the name under which `streamlit run` imports it
    from roost.ui import standalone

    app = st.App(__file__, middleware=standalone.middleware())
