"""Search field of the sidebar, and the messages that it finds."""

from __future__ import annotations

import streamlit as st

from roost.core.talks.search import Hit
from roost.errors import RoostError
from roost.service import AgentService
from roost.ui import page_url
from roost.ui.text import as_sentence, plain

SHOWN = 20
EXCERPT = 160
"""Characters of an excerpt."""


def begin(query: str) -> None:
    """Search for this from now on."""
    st.session_state["searched"] = query


def field() -> str:
    """Draw the field; return what is searched for.

    A query that was begun elsewhere is set in the run that draws the field: a run before it may be cut off.
    """
    begun = st.session_state.get("searched")
    if begun is not None:
        st.session_state["search"] = begun
    query = st.text_input("Search your talks", key="search", placeholder="Search", label_visibility="collapsed")
    st.session_state.pop("searched", None)
    return (query or "").strip()


def hits(service: AgentService, user: str, query: str) -> None:
    """Draw the messages that contain the words, each with its talk, which a click opens."""
    try:
        found = service.search(user, query, limit=SHOWN).hits
    except RoostError as error:
        st.caption(as_sentence(error))
        return
    if not found:
        st.caption("No message contains these words.")
    for number, hit in enumerate(found):
        with st.container(key=f"hit_{number}", gap=None):
            st.button(
                plain(hit.title or "New talk"),
                key=f"hit_{number}_{hit.talk_session_id}_{hit.seq}",
                type="tertiary",
                width="stretch",
                wrap=False,
                on_click=page_url.open_message,
                args=(hit.talk_session_id, hit.seq),
            )
            st.caption(_marked(hit))


def _marked(hit: Hit) -> str:
    """Return the excerpt in Markdown, with the matched words in bold."""
    parts, end = [], 0
    for start, stop in hit.ranges:
        if stop > EXCERPT:
            break
        parts += [_piece(hit.excerpt[end:start]), f"**{plain(hit.excerpt[start:stop])}**"]
        end = stop
    shown = "".join([*parts, _piece(hit.excerpt[end:EXCERPT])]).strip()
    return f"{shown}…" if len(hit.excerpt) > EXCERPT else shown


def _piece(text: str) -> str:
    """Return a piece of text in Markdown, with the spaces around it."""
    return f"{' ' * text[:1].isspace()}{plain(text)}{' ' * text[-1:].isspace()}" if text.strip() else " " * bool(text)
