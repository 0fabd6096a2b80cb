"""The entry of the pages. Streamlit runs it as a script; `streamlit run` first imports it to learn how to serve it."""

from __future__ import annotations

import streamlit as st

from roost.errors import RoostError
from roost.ui import access, parts, talk
from roost.ui.text import told

LOOK_AGAIN = 3.0


@st.fragment(run_every=LOOK_AGAIN)
def _come_back() -> None:
    """Run the page again by itself: what was wrong may have passed, as when the program was restarted."""
    if st.session_state.pop("waits_to_come_back", False):
        st.rerun()
    st.session_state["waits_to_come_back"] = True


def main() -> None:
    parts.set_up()
    try:
        service, user = access.current()
        talk.page(service, user)
    except RoostError as error:
        st.error(told(error))
        st.button("Try again", key="load_again")  # any click runs the page again
        _come_back()


if __name__ == "__main__":
    main()
elif __name__ == "app":  # the name under which `streamlit run` imports it
    from roost.ui import alone

    app = st.App(__file__, middleware=alone.middleware())
