"""Live part of a page: the browser asks for a new run of the page when something has changed."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from roost.errors import RoostError
from roost.ui.callbacks import uninterrupted
from roost.ui.design import components
from roost.ui.elements import element
from roost.ui.shell import actions, navigation
from roost.ui.shell.visit import Visit

KEY = "refresh"
_DRAWN = "drawn_state"

_mount = element("roost_refresh", __file__, "refresh")


def draw(visit: Visit, part: Callable[[], None], *, meeting: str | None = None, every: float = 0.0) -> None:
    """Draw what may change while the page is open; `meeting`: it also changes with each entry of this meeting.

    `every`: it is also drawn again after these seconds, while somebody looks at it.

    A page calls this once. What is typed elsewhere on the page is kept.
    """
    watch = {"meeting": meeting} if meeting else {}
    drawn, place = st.session_state.get(_DRAWN, ""), navigation.place()
    data = {"stream": visit.stream, "watch": watch, "drawn": drawn, "every": every, "place": place}
    _mount(key=KEY, data=data, on_refresh_change=_remember)
    actions.notices()
    try:
        part()
    except RoostError as error:
        components.notice(error)


@uninterrupted
def _remember() -> None:
    """Keep what the browser knows of the state that is drawn: it asks again until the page says so."""
    asked = st.session_state.get(KEY)  # None if the page was left meanwhile
    st.session_state[_DRAWN] = str(asked.refresh or "") if asked is not None else ""
