"""Search field of the sidebar, and the talks and messages that it finds."""

from __future__ import annotations

from collections.abc import Container, Sequence

import streamlit as st

from roost.core.talks.search import Hit, Matcher, parsed
from roost.core.talks.talk import Talk
from roost.errors import RoostError
from roost.service import AgentService
from roost.ui import page_url
from roost.ui.text import as_sentence, plain

SHOWN = 20
TITLES = 500
"""Talks whose titles are compared, last used first."""
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
    query = st.text_input("Search your talks", key="search", placeholder="Search talks", label_visibility="collapsed")
    st.session_state.pop("searched", None)
    return (query or "").strip()


def hits(service: AgentService, user: str, query: str) -> None:
    """Draw the talks with the words in their title, and the messages that contain them; a click opens either."""
    try:
        found = service.search(user, query, limit=SHOWN).hits
        talks = service.list_sessions(user, limit=TITLES)
    except RoostError as error:
        st.caption(as_sentence(error))
        return
    titled = _with_title(talks, query, {hit.talk_session_id for hit in found})
    if not found and not titled:
        st.caption("No talk and no message contains these words.")
    for number, talk in enumerate(titled):
        with st.container(key=f"hit_talk_{number}", gap=None):
            _button(talk.title, talk.talk_session_id, None)
    for number, hit in enumerate(found):
        with st.container(key=f"hit_{number}", gap=None):
            _button(hit.title, hit.talk_session_id, hit.seq)
            st.caption(_marked(hit))


def _with_title(talks: Sequence[Talk], query: str, found: Container[str]) -> list[Talk]:
    """Return the talks with all words in their title, without those whose messages were found."""
    terms = parsed(query)
    matcher = Matcher(terms)
    matching = [talk for talk in talks if terms and talk.talk_session_id not in found and matcher.excerpt(talk.title)]
    return matching[:SHOWN]


def _button(title: str, talk_id: str, seq: int | None) -> None:
    st.button(
        plain(title or "New talk"),
        key=f"hit_{talk_id}_{seq}",
        type="tertiary",
        width="stretch",
        wrap=False,
        on_click=page_url.open_talk if seq is None else page_url.open_message,
        args=(talk_id,) if seq is None else (talk_id, seq),
    )


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
