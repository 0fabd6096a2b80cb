"""A callback runs to its end, although the browser asks for the next run of the page meanwhile."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def page(held: bool) -> None:
    """A button whose callback is overtaken by a request for the next run; runs as a script."""
    from typing import Any

    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    from roost.ui.callbacks import uninterrupted

    def click() -> None:
        context: Any = get_script_run_ctx()
        runner = context.session_state._yield_callback.__self__
        runner.request_rerun(RerunData(widget_states=None))
        st.session_state["first"] = True
        st.session_state["second"] = True

    st.button("Go", key="go", on_click=uninterrupted(click) if held else click)


@pytest.mark.parametrize("held", [True, False])
def test_a_callback_is_done_whole_if_it_is_held(held: bool) -> None:
    app = AppTest.from_function(page, kwargs={"held": held}).run()
    app.button(key="go").click().run()
    done = [name for name in ("first", "second") if name in app.session_state]
    assert done == (["first", "second"] if held else [])
