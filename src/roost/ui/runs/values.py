"""Recorded values as text; long ones are folded."""

from __future__ import annotations

from typing import Any

import streamlit as st

from roost.ui.runs import labels

LONG = 1_500
"""Characters up to which a text is shown at once."""
MOST_LINES = 30
HEIGHT = 420
"""Pixels of a long text, which scrolls inside."""


def draw(name: str, value: Any, *, empty: str = "Nothing.") -> None:
    """Draw a value that agents, tools or people wrote, always as text."""
    text = labels.text(value)
    if not text.strip():
        st.caption(empty)
    elif len(text) <= LONG and text.count("\n") <= MOST_LINES:
        st.code(text, language=None, wrap_lines=True)
    else:
        with st.expander(f"{name}: {len(text):,} characters"):
            st.code(text, language=None, wrap_lines=True, height=HEIGHT)
